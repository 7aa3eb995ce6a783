"""Creation of the adapters that the settings select, and what is recorded of their collection.

Each function imports only the adapters that it creates, so that no process loads an unused client.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from rag_pipeline.adapters.http import read_headers, read_key, read_url
from rag_pipeline.adapters.stores.builds import Forget, TakeLock, name_book
from rag_pipeline.core.errors import (
    ConfigurationError,
    RagPipelineError,
    StoreDamagedError,
    StoreError,
    StoreLockedError,
    StoreUnavailableError,
)
from rag_pipeline.core.protocols import Services
from rag_pipeline.core.settings import EmbeddingProvider, Settings
from rag_pipeline.core.settings.rules import OWN_DOCS_DIR, OWN_SITE
from rag_pipeline.core.state_dirs import DATABASE_NAME, describe_indexes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rag_pipeline.adapters.database.ledger import BookState
    from rag_pipeline.adapters.embedders.local import LocalEmbedder
    from rag_pipeline.adapters.embedders.service import ServiceEmbedder
    from rag_pipeline.core.models import SiteSettings
    from rag_pipeline.core.protocols import (
        ChatModel,
        CollectionCatalog,
        Embedder,
        IngestionProgress,
    )


# ruff: noqa: PLC0415  # each function imports only the adapters that it creates

_LEAST_COLLECTION_WAIT_S: Final = 60.0  # deleting old builds may take seconds


def choose_provider(
    settings: Settings, catalog: CollectionCatalog | None = None
) -> EmbeddingProvider:
    """Return the embedding provider of the settings, with `auto` resolved.

    `auto` is the provider that the existing collection was built with, so that an API key for
    written answers does not change the embeddings. Without a collection that can be read, it is
    OpenAI if OPENAI_API_KEY is set, and otherwise the local model.

    Raises:
        StoreUnavailableError: The store does not answer, and a key is set, so that the provider of
            the collection is unknown.
        ConfigurationError: The same, because the collection is damaged.
    """
    if settings.embedding_provider is not EmbeddingProvider.AUTO:
        return settings.embedding_provider
    has_key = bool(settings.openai_api_key.get_secret_value())
    catalog = catalog or connect_catalog(settings)
    try:
        collection_id = catalog.current_id()
        space = catalog.read_space(collection_id) if collection_id else None
        if space is not None and space.model.provider in set(EmbeddingProvider):
            return EmbeddingProvider(space.model.provider)
    except StoreUnavailableError:
        if has_key:
            raise
    except StoreDamagedError as error:
        if has_key:
            problem = f"its value `auto` means the collection's provider, but {error}"
            remedy = "Before that, set EMBEDDING_PROVIDER to the provider of the collection"
            raise ConfigurationError("EMBEDDING_PROVIDER", problem, remedy) from error
    except (StoreError, ConfigurationError):
        pass  # shows again when the collection is opened, with all that is known about it
    return EmbeddingProvider.OPENAI if has_key else EmbeddingProvider.LOCAL


def connect_embedder(settings: Settings, catalog: CollectionCatalog | None = None) -> Embedder:
    """Create the embedder that the settings select, without loading a model.

    The function sends no request to an embedding service. If EMBEDDING_PROVIDER is `auto`, it reads
    from the collection which model the collection was built with.

    Each provider except `local` is a service with a module `embedders/NAME.py`, where NAME is the
    name of the provider. The function creates the class that this module calls `EMBEDDER`, and
    passes it the settings NAME_API_KEY and NAME_BASE_URL.

    Raises:
        ConfigurationError: The provider's API key is missing, its key or URL is not valid, or the
            provider does not offer the configured model or dimension.
        MissingDependencyError: The provider's package is not installed.
        StoreUnavailableError: See `choose_provider`.
    """
    provider = choose_provider(settings, catalog)
    if provider is EmbeddingProvider.LOCAL:
        return _connect_local(settings)
    key_setting, url_setting = f"{provider}_api_key", f"{provider}_base_url"
    key = read_key(key_setting.upper(), getattr(settings, key_setting))
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
        max_tokens=settings.embedding_max_tokens,
        query_prefix=settings.embedding_query_prefix,
        document_prefix=settings.embedding_document_prefix,
    )


@cache  # to look for the packages takes a tenth of the time of an answer
def connect_selection_embedder() -> Embedder | None:
    """Create the local model that compares questions with selected texts, without loading it.

    It is the same model for every provider, because the bounds of selected-text mode hold for its
    cosines. None if ONNX Runtime or the tokenizer is not installed.
    """
    if any(find_spec(name) is None for name in ("onnxruntime", "tokenizers")):
        return None
    from rag_pipeline.adapters.embedders.local import TEXTBOOK, LocalEmbedder

    return LocalEmbedder(TEXTBOOK)


def load_model_early(settings: Settings) -> None:
    """Start to load the local embedding model in a background thread.

    The caller can import other modules meanwhile. If the settings select an embedding service,
    nothing happens, because there is no model to load. Errors show when the embedder is connected.
    """

    def load() -> None:
        with suppress(RagPipelineError):
            if choose_provider(settings) is EmbeddingProvider.LOCAL:
                _connect_local(settings).load()

    threading.Thread(target=load, name="load-model").start()


def connect_catalog(
    settings: Settings, forget: Forget = lambda _: None, lock: TakeLock = nullcontext
) -> CollectionCatalog:
    """Create the catalog that manages the builds (versions) of the configured collection.

    The collection is on the Qdrant server at QDRANT_URL. If QDRANT_URL is empty, it is in the
    embedded store in DATA_DIR. No request is sent and no file is opened before the catalog is used.

    Args:
        settings: Settings with the name and the place of the collection.
        forget: Function that is called with a build's id before it is deleted, to delete its files
            outside the store (ledger and stage outputs).
        lock: Function that returns the lock to create, switch or delete builds.

    Raises:
        ConfigurationError: QDRANT_URL or QDRANT_API_KEY is not valid.
    """
    if settings.qdrant_url:
        url = read_url("QDRANT_URL", settings.qdrant_url)
        secret = settings.qdrant_api_key.get_secret_value().strip()
        key = read_key("QDRANT_API_KEY", settings.qdrant_api_key) if secret else ""
        from rag_pipeline.adapters.stores.qdrant_catalog import QdrantCatalog, read_layout
        from rag_pipeline.adapters.stores.qdrant_connection import connect_server

        connection = connect_server(url, api_key=key, timeout_s=settings.qdrant_timeout_s)
        layout = read_layout(settings)
        return QdrantCatalog(connection, settings.qdrant_collection, forget, layout, lock)
    from rag_pipeline.adapters.stores.edge_catalog import EdgeCatalog

    root = settings.state_dir / "store" / settings.qdrant_collection
    return EdgeCatalog(
        root,
        settings.qdrant_collection,
        settings.store_lock_timeout_s,
        forget,
        lambda: describe_indexes(settings.docs_dir, settings.data_dir),
        lock,
    )


def connect_services(settings: Settings) -> Services:
    """Create the services that an ingestion uses: embedder, cache, catalog, ledger and lock.

    No store is opened, no service is called and no model is loaded. The state is in the book's
    folder in DATA_DIR, except that the database is at DATABASE_URL, if it is set:

        state.sqlite                ledger, embeddings by text and model, site, question log
        store/<collection name>/    embedded store
        locks/                      files that running processes lock

    Raises:
        ConfigurationError: A required key or model is missing or not valid, DATABASE_URL is not
            valid, or STATE_NAME is missing.
        MissingDependencyError: The package of the embedding provider or of Postgres is not
            installed.
    """
    from rag_pipeline.adapters.database.ledger import open_book_state
    from rag_pipeline.adapters.database.vectors import SqlEmbeddingCache
    from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
    from rag_pipeline.adapters.local_files import hold_lock, remove_partial_files

    state = open_book_state(settings)
    book = name_book(settings.qdrant_collection)
    longest_s = settings.ingest_lock_timeout_s

    def connect(chosen: Settings) -> CollectionCatalog:
        name = f"collection {chosen.qdrant_collection}"
        hold = state.collection_locks.hold
        wait_s = max(_LEAST_COLLECTION_WAIT_S, longest_s)
        return connect_catalog(chosen, state.drop_ledger, lambda: hold(name, wait_s))

    @contextmanager
    def lock(timeout_s: float | None = None) -> Iterator[None]:
        with state.locks.hold("book", longest_s if timeout_s is None else timeout_s):
            state.record_book(book, settings.docs_dir, settings.data_dir)
            yield

    catalog = connect(settings)

    def sweep() -> None:
        catalog.sweep()
        for name in catalog.find_cells():
            with suppress(StoreLockedError), hold_lock(locate_cell_lock(settings, name), 0.0):
                connect(settings.model_copy(update={"qdrant_collection": name})).drop()
        remove_partial_files(settings.state_dir)

    return Services(
        embedder=connect_embedder(settings, catalog),
        sparse=Bm25Encoder(),
        cache=SqlEmbeddingCache(state.database, state.state_name),
        catalog=catalog,
        open_ledger=state.open_ledger,
        lock=lock,
        announce=state.announce,
        sweep=sweep,
        run_locks=state if state.state_name else None,
    )


def locate_cell_lock(settings: Settings, collection: str) -> Path:
    """Return the path of the lock file of one sweep cell.

    A sweep cell is one combination of settings that `rag-pipeline sweep` compares with others. The
    lock is held while the cell's collection is built and evaluated.

    Args:
        settings: Settings of the book.
        collection: Name of the cell's collection.
    """
    return settings.state_dir / "locks" / f"{collection}.lock"


def connect_chat_model(settings: Settings) -> ChatModel | None:
    """Create the chat model that writes answers, or return None if no model is configured.

    OPENAI_API_KEY is enough to configure a model. Without a key, both OPENAI_BASE_URL and
    ANSWER_MODEL must be set, because a local server may need no key.

    Raises:
        ConfigurationError: OPENAI_API_KEY, OPENAI_BASE_URL or ANSWER_HEADERS is not valid.
    """
    has_key = bool(settings.openai_api_key.get_secret_value().strip())
    key = read_key("OPENAI_API_KEY", settings.openai_api_key) if has_key else ""
    if not key and not (settings.openai_base_url and settings.answer_model):
        return None
    from rag_pipeline.adapters.chat_model import OpenAIChatModel

    return OpenAIChatModel(
        model=settings.answer_model,
        api_key=key,
        base_url=read_url("OPENAI_BASE_URL", settings.openai_base_url, has_query=True),
        timeout_s=settings.answer_timeout_s,
        max_tokens=settings.answer_max_tokens,
        context_tokens=settings.answer_context_tokens,
        temperature=settings.answer_temperature,
        extra=settings.answer_extra,
        headers=read_headers("ANSWER_HEADERS", settings.answer_headers),
    )


def _connect_local(settings: Settings) -> LocalEmbedder:
    from rag_pipeline.adapters.embedders.local import TEXTBOOK, LocalEmbedder

    embedder = LocalEmbedder(settings.embedding_model or TEXTBOOK)
    if settings.embedding_dim not in {0, embedder.model.dim}:
        problem = f"the local model has {embedder.model.dim} dimensions"
        raise ConfigurationError("EMBEDDING_DIM", problem, "Set it to 0")
    return embedder


def read_recorded_site(
    settings: Settings, catalog: CollectionCatalog | None = None
) -> SiteSettings | None:
    """Return the site settings that the links of the current collection were built with.

    Returns None if they are not known: nothing was ingested with this DATA_DIR, the store or the
    database cannot be read, or the state is at DATABASE_URL, on which no question depends.
    """
    state = _open_own_state(settings)
    if state is None:
        return None
    try:
        collection_id = (catalog or connect_catalog(settings)).current_id()
        recorded = state.open_ledger(collection_id).read_site() if collection_id else None
    except RagPipelineError:
        return None  # shows again when the collection is opened
    finally:
        state.database.close()
    return recorded.site if recorded else None


def read_running_ingestion(settings: Settings) -> IngestionProgress | None:
    """Return how far the running ingestion of a book is; None if no ingestion is known to run."""
    state = _open_own_state(settings)
    with suppress(StoreError):
        return state.read_progress() if state else None
    return None


def choose_site(settings: Settings, catalog: CollectionCatalog | None = None) -> SiteSettings:
    """Return the site settings for questions; those of the collection replace unset ones.

    Raises:
        ConfigurationError: A site setting differs from the one that the links were built with.
    """
    recorded = read_recorded_site(settings, catalog)
    if settings.docs_dir.resolve() == OWN_DOCS_DIR:
        settings = settings.fill_site(OWN_SITE)
    if recorded is None:
        return settings.site
    chosen = settings.fill_site(recorded).site
    for name in ("base_url", "route_base_path", "trailing_slash"):
        wanted, built = getattr(chosen, name), getattr(recorded, name)
        if wanted != built:
            setting, before = f"SITE_{name.upper()}", _show(built)
            problem = (
                f"the value is {_show(wanted)}, but the links of the index were built with {before}"
            )
            remedy = (
                f"Set {setting}={before}, or run `rag-pipeline ingest` to change the links, which "
                "embeds no text again"
            )
            raise ConfigurationError(setting, problem, remedy)
    return chosen


def _open_own_state(settings: Settings) -> BookState | None:
    """Return the state in the book's folder; None if it is missing or at DATABASE_URL."""
    if settings.database_url or not (settings.state_dir / DATABASE_NAME).is_file():
        return None
    from rag_pipeline.adapters.database.ledger import open_book_state

    return open_book_state(settings)


def _show(value: object) -> str:
    """Return a value as it is written in `.env`."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else str(value) or "/"
