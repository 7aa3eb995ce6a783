"""The one place that picks an adapter for a setting.

Each branch imports its own adapter, so that no process loads a client it does not use.
"""

# ruff: noqa: PLC0415  # see above: imports are the branches' own

from __future__ import annotations

import threading
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from rag_pipeline.adapters.stores.builds import forget_nothing
from rag_pipeline.core.errors import ConfigurationError, StoreLockedError
from rag_pipeline.core.protocols.services import Services
from rag_pipeline.core.settings import EmbeddingProvider

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from pydantic import SecretStr

    from rag_pipeline.adapters.embedders.local import LocalEmbedder
    from rag_pipeline.adapters.embedders.service import ServiceEmbedder
    from rag_pipeline.adapters.stores.builds import Forget
    from rag_pipeline.core.protocols.chat import ChatModel
    from rag_pipeline.core.protocols.embedding import Embedder
    from rag_pipeline.core.protocols.stores import CollectionCatalog
    from rag_pipeline.core.settings import Settings


def connect_embedder(settings: Settings) -> Embedder:
    """Build the embedder that EMBEDDING_PROVIDER asks for; asks no service and loads no weights.

    A service has the module `embedders/NAME.py` with its class as `EMBEDDER`, and the settings
    NAME_API_KEY and NAME_BASE_URL.

    Raises:
        ConfigurationError: The provider's key is not set, or the model or its dimension is not one
            of its own.
        MissingDependencyError: The provider's package is not installed.
    """
    provider = settings.provider
    if provider is EmbeddingProvider.LOCAL:
        return _connect_local(settings)
    key_setting, url_setting = f"{provider}_api_key", f"{provider}_base_url"
    key = _read_key(key_setting.upper(), getattr(settings, key_setting))
    base_url = read_url(url_setting.upper(), getattr(settings, url_setting))
    module = import_module(f"rag_pipeline.adapters.embedders.{provider}")
    build: type[ServiceEmbedder] = module.EMBEDDER
    return build(
        model=settings.embedding_model,
        dim=settings.embedding_dim,
        api_key=key,
        base_url=base_url,
        batch_size=settings.embedding_batch_size,
        timeout_s=settings.embedding_timeout_s,
    )


def load_model_early(settings: Settings) -> None:
    """Begin to load a local model in a thread, while the caller imports what else it needs.

    A service has nothing to load. Raises as `connect_embedder`.
    """
    if settings.provider is EmbeddingProvider.LOCAL:
        threading.Thread(target=_connect_local(settings).load, name="load-model").start()


def connect_catalog(settings: Settings, forget: Forget = forget_nothing) -> CollectionCatalog:
    """Build the catalog of the collection: on the server at QDRANT_URL, else embedded in DATA_DIR.

    No server is asked and no file opened before the catalog is used.

    Args:
        settings: Where the collection lies.
        forget: Called with the id of a build before the catalog deletes it.

    Raises:
        ConfigurationError: QDRANT_URL or QDRANT_API_KEY cannot be used.
    """
    if settings.qdrant_url:
        url = read_url("QDRANT_URL", settings.qdrant_url)
        secret = settings.qdrant_api_key.get_secret_value().strip()
        key = _read_key("QDRANT_API_KEY", settings.qdrant_api_key) if secret else ""
        from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog
        from rag_pipeline.adapters.stores.qdrant_connection import connect_server

        connection = connect_server(url, api_key=key, timeout_s=settings.qdrant_timeout_s)
        return QdrantCatalog(connection, settings.qdrant_collection, forget)
    from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog

    root = settings.state_dir / "store" / settings.qdrant_collection
    return EdgeCatalog(root, settings.qdrant_collection, settings.store_lock_timeout_s, forget)


def connect_services(settings: Settings) -> Services:
    """Build the services of an ingestion; opens no store, asks no service and loads no weights.

    State lies below the book's folder in DATA_DIR, or at STATE_URL for workers that share no disk:

        artifacts/<collection id>/  stage outputs
        ledger/<collection id>/     what is really indexed
        cache.sqlite                embeddings by text and model; the folder cache/ at STATE_URL
        store/<collection name>/    the embedded store, always in DATA_DIR

    Raises:
        ConfigurationError: A key or model that the settings need is missing, or STATE_URL cannot
            be used.
    """
    from upath import UPath

    from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
    from rag_pipeline.adapters.state.artifacts import UPathArtifactStore
    from rag_pipeline.adapters.state.files import open_root, remove_partial_files, remove_tree
    from rag_pipeline.adapters.state.ledger import FileLedger
    from rag_pipeline.adapters.state.locks import hold_lock
    from rag_pipeline.adapters.state.object_cache import ObjectEmbeddingCache
    from rag_pipeline.adapters.state.sqlite_cache import SqliteEmbeddingCache

    state_dir = settings.state_dir
    shared = open_root(settings.state_url) / state_dir.name if settings.state_url else None
    root = shared or UPath(state_dir)

    def forget(collection_id: str) -> None:
        for kind in ("artifacts", "ledger"):
            remove_tree(root / kind / collection_id)

    catalog = connect_catalog(settings, forget)

    def sweep() -> None:
        catalog.sweep()
        for name in catalog.find_cells():
            with suppress(StoreLockedError), hold_lock(locate_cell_lock(settings, name), 0.0):
                cell = settings.model_copy(update={"qdrant_collection": name})
                connect_catalog(cell, forget).drop()
        remove_partial_files(state_dir)

    def lock(timeout_s: float | None = None) -> AbstractContextManager[None]:
        wait_s = settings.ingest_lock_timeout_s if timeout_s is None else timeout_s
        return hold_lock(state_dir / "ingest.lock", wait_s)

    return Services(
        embedder=connect_embedder(settings),
        sparse=Bm25Encoder(),
        cache=ObjectEmbeddingCache(shared / "cache")
        if shared
        else SqliteEmbeddingCache(state_dir / "cache.sqlite"),
        catalog=catalog,
        open_artifacts=lambda collection_id: UPathArtifactStore(root / "artifacts" / collection_id),
        open_ledger=lambda collection_id: FileLedger(root / "ledger" / collection_id),
        lock=lock,
        sweep=sweep,
    )


def locate_cell_lock(settings: Settings, collection: str) -> Path:
    """Return the lock file that is held while a sweep builds and evaluates a design."""
    return settings.state_dir / "cells" / f"{collection}.lock"


def connect_chat_model(settings: Settings) -> ChatModel | None:
    """Build the model that writes answers; None if neither a key nor a server of one's own is set.

    A server at OPENAI_BASE_URL may ask for no key: ANSWER_MODEL alone is enough for it.
    """
    has_key = bool(settings.openai_api_key.get_secret_value().strip())
    key = _read_key("OPENAI_API_KEY", settings.openai_api_key) if has_key else ""
    if not key and not (settings.openai_base_url and settings.answer_model):
        return None
    from rag_pipeline.adapters.chat_model import OpenAIChatModel

    return OpenAIChatModel(
        model=settings.answer_model,
        api_key=key,
        base_url=read_url("OPENAI_BASE_URL", settings.openai_base_url),
        timeout_s=settings.answer_timeout_s,
        max_tokens=settings.answer_max_tokens,
    )


def _connect_local(settings: Settings) -> LocalEmbedder:
    from rag_pipeline.adapters.embedders.local import TEXTBOOK, LocalEmbedder

    embedder = LocalEmbedder(settings.embedding_model or TEXTBOOK)
    if settings.embedding_dim not in {0, embedder.model.dim}:
        problem = f"the local model has {embedder.model.dim} dimensions"
        raise ConfigurationError("EMBEDDING_DIM", problem, "Set it to 0")
    return embedder


def _read_key(setting: str, secret: SecretStr) -> str:
    """Return a key that fits into a header; an HTTP client's own complaint would show the key."""
    key = secret.get_secret_value().strip()
    if not key:
        raise ConfigurationError(setting, "it is not set", "Set it in the environment or in .env")
    if not (key.isascii() and key.isprintable()) or " " in key:
        problem = "it contains characters that no key has"
        raise ConfigurationError(setting, problem, "Copy it again, without quotes or line breaks")
    return key


def read_url(setting: str, url: str) -> str:
    """Return an address with its scheme, or an empty text; no part of a wrong one is shown.

    Raises:
        ConfigurationError: The address is not valid. The message names the setting or option.
    """
    stripped = url.strip()
    if stripped and not stripped.startswith(("http://", "https://")):
        problem = "it does not begin with http:// or https://"
        raise ConfigurationError(setting, problem, "Give the whole address, such as http://host:1")
    try:
        parts = urlsplit(stripped)
        is_usable = not stripped or bool(parts.hostname and parts.port != 0)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise ConfigurationError(setting, "it is not a valid address", "Example: http://host:1")
    if parts.query or parts.fragment:
        problem = "it contains more than an address (? or #)"
        raise ConfigurationError(setting, problem, "Leave that out; a key has its own setting")
    return stripped
