"""From settings to the services they ask for; the one place that picks an adapter.

Belongs here: which adapter serves which setting, and what is missing. Does not belong here: how an
adapter works. Each branch imports its own adapter, so that no process loads a client it does not
use.
"""

# ruff: noqa: PLC0415  # see above: imports are the branches' own

from __future__ import annotations

from typing import TYPE_CHECKING

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.settings import EmbeddingProvider

if TYPE_CHECKING:
    from rag_pipeline.core.ports import ChatModel, CollectionCatalog, Embedder
    from rag_pipeline.core.settings import Settings


def connect_embedder(settings: Settings) -> Embedder:
    """Build the embedder that EMBEDDING_PROVIDER asks for; asks no service and loads no weights.

    Raises:
        ConfigurationError: The provider's key is not set, or EMBEDDING_MODEL is not one of its own.
        MissingDependencyError: The provider's package is not installed.
    """
    from rag_pipeline.adapters.local_embedder import LocalEmbedder

    if settings.provider is EmbeddingProvider.LOCAL and settings.embedding_model:
        raise ConfigurationError(
            "EMBEDDING_MODEL",
            f"the local provider has one model of its own, not {settings.embedding_model}",
            "Leave it empty, or set OPENAI_API_KEY to embed by a service",
        )
    return LocalEmbedder()


def connect_catalog(settings: Settings) -> CollectionCatalog:
    """Build the catalog of the collection: on the server at QDRANT_URL, else embedded in DATA_DIR.

    No server is asked and no file opened before the catalog is used.
    """
    from rag_pipeline.adapters.edge_catalog import EdgeCatalog

    root = settings.state_dir / "store" / settings.qdrant_collection
    return EdgeCatalog(root, settings.qdrant_collection, settings.store_lock_timeout_s)


def connect_chat_model(settings: Settings) -> ChatModel | None:
    """Build the model that writes answers; None where no key is set and no server of one's own named.

    A server at OPENAI_BASE_URL may ask for no key: ANSWER_MODEL alone is enough for it.
    """
    key = settings.openai_api_key.get_secret_value()
    if not key and not (settings.openai_base_url and settings.answer_model):
        return None
    from rag_pipeline.adapters.chat_model import OpenAIChatModel

    return OpenAIChatModel(
        model=settings.answer_model,
        api_key=key,
        base_url=settings.openai_base_url,
        timeout_s=settings.answer_timeout_s,
        max_tokens=settings.answer_max_tokens,
    )
