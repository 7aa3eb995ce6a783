"""Storage of stage outputs: one file per stage and document, in a folder or an object store.

The path of an output is

    <root>/<stage>/<file key of the document>.json or .npz

The parts of a large output after the first have `.1`, `.2` and so on before the ending. The file
key is a hash of the document's id. Each JSON output contains the id itself.
"""

from collections.abc import Collection
from contextlib import suppress
from itertools import count

from upath import UPath

from rag_pipeline.adapters.state.files import list_names, remove_abandoned, write_bytes_atomically
from rag_pipeline.core.ids import DocId, make_file_key
from rag_pipeline.core.models import Stage

_IN_PARTS = {Stage.EMBEDDINGS}
_KEPT = (Stage.DISCOVERED, Stage.PARSED, Stage.CHUNKS, Stage.EMBEDDINGS)


class UPathArtifactStore:
    """A store of stage outputs (artifacts), in a local folder or on an object store.

    Args:
        root: Folder, or URL such as `s3://bucket/prefix`. Folders are created by the first write.
    """

    def __init__(self, root: UPath) -> None:
        self._root = root

    def write(self, stage: Stage, doc_id: DocId, data: bytes, part: int = 0) -> None:
        """Write the output of a stage for a document, in place of an existing output.

        A large output is written in parts, from 0 upwards. Old parts after `part` are deleted. A
        reader sees either the complete old part or the complete new one.
        """
        path = self._path(stage, doc_id, part)
        write_bytes_atomically(path, data, durable=False)  # a damaged output is computed again
        if stage in _IN_PARTS:
            self._remove_parts(stage, doc_id, part + 1)

    def read(self, stage: Stage, doc_id: DocId, part: int = 0) -> bytes | None:
        """Return a part of the output of a stage for a document, or None if it is missing."""
        try:
            return self._path(stage, doc_id, part).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, doc_id: DocId) -> None:
        """Delete the outputs of all stages for a document, if they exist."""
        for stage in _KEPT:
            self._path(stage, doc_id).unlink(missing_ok=True)
            if stage in _IN_PARTS:
                self._remove_parts(stage, doc_id, 1)

    def keep_only(self, doc_ids: Collection[DocId]) -> None:
        """Delete the outputs of all documents except the given ones.

        Outputs of the last hour stay too, because another run may have written them after the
        caller listed its documents. Files that cannot be deleted are skipped. On an object store
        nothing is deleted, because listing the objects would cost more than it frees.
        """
        keys = {make_file_key(doc_id) for doc_id in doc_ids}
        for stage in _KEPT:
            folder = self._root / stage.value
            for name in list_names(folder):
                if name.partition(".")[0] not in keys and not name.startswith("."):
                    with suppress(OSError):
                        remove_abandoned(folder / name)

    def _remove_parts(self, stage: Stage, doc_id: DocId, first: int) -> None:
        for part in count(first):
            path = self._path(stage, doc_id, part)
            if not path.exists():
                return
            path.unlink(missing_ok=True)

    def _path(self, stage: Stage, doc_id: DocId, part: int = 0) -> UPath:
        suffix = "npz" if stage is Stage.EMBEDDINGS else "json"
        name = f"{make_file_key(doc_id)}.{part}" if part else make_file_key(doc_id)
        return self._root / stage.value / f"{name}.{suffix}"
