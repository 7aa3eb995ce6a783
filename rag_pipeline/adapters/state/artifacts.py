"""Storage of stage outputs: one file per stage and document, in a folder or an object store.

The path of an output is

    <root>/<stage>/<file key of the document>.json

The file key is a hash of the document's id. Each output contains the id itself. Vectors are not
stored here: the embedding cache has the vectors of every text.
"""

from collections.abc import Collection
from contextlib import suppress

from upath import UPath

from rag_pipeline.adapters.state.files import (
    list_names,
    read_file,
    remove_abandoned,
    remove_file,
    remove_tree,
    write_bytes_atomically,
)
from rag_pipeline.core.ids import DocId, make_file_key
from rag_pipeline.core.models import Stage

_KEPT = (Stage.PARSED, Stage.CHUNKS)
_FORMERLY_KEPT = (Stage.DISCOVERED, Stage.EMBEDDINGS)  # written by earlier versions, read by none


class UPathArtifactStore:
    """A store of stage outputs (artifacts), in a local folder or on an object store.

    Args:
        root: Folder, or URL such as `s3://bucket/prefix`. Folders are created by the first write.
    """

    def __init__(self, root: UPath) -> None:
        self._root = root

    def write(self, stage: Stage, doc_id: DocId, data: bytes) -> None:
        """Write the output of a stage for a document, in place of an existing output.

        A reader sees either the complete old output or the complete new one.
        """
        path = self._path(stage, doc_id)
        write_bytes_atomically(path, data, durable=False)  # a damaged output is computed again

    def read(self, stage: Stage, doc_id: DocId) -> bytes | None:
        """Return the output of a stage for a document, or None if it is missing."""
        try:
            return read_file(self._path(stage, doc_id))
        except FileNotFoundError:
            return None

    def remove(self, doc_id: DocId) -> None:
        """Delete the outputs of all stages for a document, if they exist."""
        for stage in _KEPT:
            remove_file(self._path(stage, doc_id))

    def keep_only(self, doc_ids: Collection[DocId]) -> None:
        """Delete the outputs of all documents except the given ones.

        Outputs of the last hour stay too, because another run may have written them after the
        caller listed its documents. Outputs of stages that only earlier versions stored are
        deleted for all documents. Files that cannot be deleted are skipped. On an object store
        nothing is deleted, because listing the objects would cost more than it frees.
        """
        keys = {make_file_key(doc_id) for doc_id in doc_ids}
        for stage in _KEPT:
            folder = self._root / stage.value
            for name in list_names(folder):
                if name.partition(".")[0] not in keys and not name.startswith("."):
                    with suppress(OSError):
                        remove_abandoned(folder / name)
        for stage in _FORMERLY_KEPT:
            if list_names(self._root / stage.value):
                remove_tree(self._root / stage.value)

    def _path(self, stage: Stage, doc_id: DocId) -> UPath:
        return self._root / stage.value / f"{make_file_key(doc_id)}.json"
