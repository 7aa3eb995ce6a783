"""Where stage outputs rest: one file a stage and document, on a local folder or any store that
UPath reaches.

    <root>/<stage>/<file key of the document>.json or .npz

Each JSON output names its document.
"""

from collections.abc import Collection
from contextlib import suppress

from upath import UPath

from rag_pipeline.adapters.state.files import list_names, remove_abandoned, write_bytes_atomically
from rag_pipeline.core.ids import DocId, make_file_key
from rag_pipeline.core.models import Stage

_KEPT = (Stage.DISCOVERED, Stage.PARSED, Stage.CHUNKS, Stage.EMBEDDINGS)


class UPathArtifactStore:
    """An `ArtifactStore`.

    Args:
        root: Folder or URL such as `s3://bucket/prefix`; folders are made on first use.
    """

    def __init__(self, root: UPath) -> None:
        """Keep the root; nothing is made or asked before the first call."""
        self._root = root

    def write(self, stage: Stage, doc_id: DocId, data: bytes) -> None:
        """Write so that a reader sees the output before or the new one."""
        path = self._path(stage, doc_id)
        write_bytes_atomically(path, data, durable=False)  # a damaged output is made anew

    def read(self, stage: Stage, doc_id: DocId) -> bytes | None:
        """Read an output; None where there is none."""
        try:
            return self._path(stage, doc_id).read_bytes()
        except FileNotFoundError:
            return None

    def remove(self, doc_id: DocId) -> None:
        """Remove all outputs of a document."""
        for stage in _KEPT:
            self._path(stage, doc_id).unlink(missing_ok=True)

    def keep_only(self, doc_ids: Collection[DocId]) -> None:
        """Remove the outputs of all other documents, but for those of the last hour: a run may have
        begun since the caller looked. Listing an object store costs more than it would free.
        """
        keys = {make_file_key(doc_id) for doc_id in doc_ids}
        for stage in _KEPT:
            folder = self._root / stage.value
            for name in list_names(folder):
                if name.partition(".")[0] not in keys and not name.startswith("."):
                    with suppress(OSError):
                        remove_abandoned(folder / name)

    def _path(self, stage: Stage, doc_id: DocId) -> UPath:
        suffix = "npz" if stage is Stage.EMBEDDINGS else "json"
        return self._root / stage.value / f"{make_file_key(doc_id)}.{suffix}"
