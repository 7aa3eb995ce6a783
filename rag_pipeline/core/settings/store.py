"""The declaration of the settings of the vector store."""

from __future__ import annotations

from pydantic import SecretStr

from rag_pipeline.core.settings import rules
from rag_pipeline.core.settings.folders import FolderSettings


class StoreSettings(FolderSettings):
    """The settings of the folders and of the vector store."""

    qdrant_url: rules.Address = rules.STORE.setting(
        "",
        "The address of a Qdrant server or of Qdrant Cloud, such as `http://127.0.0.1:6333`. If "
        "empty, the program uses a store embedded in the process, below `DATA_DIR`.",
    )
    qdrant_api_key: SecretStr = rules.STORE.setting(
        SecretStr(""), "The API key of the Qdrant server. A secret: do not commit it."
    )
    qdrant_collection: str = rules.STORE.setting(
        "textbook_chunks",
        "The name of the collection: at most 100 letters, digits, `-` and `_`.",
        bounds={"pattern": r"^[A-Za-z0-9_-]{1,100}$"},
    )
    qdrant_timeout_s: float = rules.STORE.setting(
        10.0,
        "Timeout of the Qdrant server in seconds, for a silence and for a whole response.",
        bounds=rules.TIMEOUT_S,
    )
    qdrant_shard_number: int = rules.STORE.setting(
        0,
        "The number of shards of a new collection on a cluster of Qdrant servers, a multiple of "
        "its nodes. 0: the server's default. After a change run `rag-pipeline ingest --rebuild`.",
        bounds={"ge": 0, "le": 1000},
    )
    qdrant_replication_factor: int = rules.STORE.setting(
        0,
        "The number of copies of each shard of a new collection. 0: the server's default.",
        bounds={"ge": 0, "le": 100},
    )
    qdrant_quantization: rules.Quantization = rules.STORE.setting(
        rules.Quantization.NONE,
        "The vectors of a new collection that the Qdrant server also keeps in memory as 8-bit "
        "integers: `none`, `dense`, `windows` or `all`. Scores of windows are then approximate.",
    )
    qdrant_bulk_loading: bool = rules.STORE.setting(
        default=False,
        meaning="Let the Qdrant server build the graph of a new collection after all documents "
        "were written, and not with each batch. Until then, searches compare all vectors.",
    )
    store_lock_timeout_s: float = rules.STORE.setting(
        10.0,
        "Seconds to wait for the embedded store while another process has it open.",
        bounds={"ge": 0, "le": 600},
    )
