"""The declaration of each setting: type, default, bounds, meaning, and which part reads it.

`scripts/write_reference.py` writes `.env.example` and docs/reference/settings.md from them. The
text below a setting is its meaning for users. The comment above a group of settings is its heading,
with the parts of the program that read them unless the text below a setting names others.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from rag_pipeline.core.errors import ConfigurationError
from rag_pipeline.core.models import ChunkLimits, EmbeddingText, SiteSettings
from rag_pipeline.core.settings import rules
from rag_pipeline.core.settings.file import SetValues, check_env_file, find_settings_file
from rag_pipeline.core.state_dirs import find_state_dir


class EmbeddingProvider(StrEnum):
    """The provider that embeds texts; `AUTO` is resolved by `adapters.connect.choose_provider`."""

    AUTO = "auto"
    LOCAL = "local"
    OPENAI = "openai"
    COHERE = "cohere"


class Settings(BaseSettings):
    """The settings of a process. A field has the name of its environment variable in lower case."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8-sig", extra="ignore", frozen=True
    )

    # --- Folders ---

    docs_dir: rules.BySite[rules.Folder] = Path("website/docs")
    """The folder with the book's Markdown files: the docs folder of a Docusaurus site.

    Read by: ingestion, evaluation, the Dagster sensor `docs_changes`.
    """

    data_dir: rules.BySite[rules.Folder] = Path("data")
    """The folder for everything that the program stores: the database, the embedded vector store
    and logs. Each docs folder gets a subfolder of its own.

    Read by: every command.
    """

    dagster_home: rules.Place = ""
    """The folder in which Dagster stores its runs, events and schedules. If empty, it is a folder
    below `DATA_DIR`, set up from `dagster.yaml`.

    Read by: ingestion, evaluation, `make dev`.
    """

    database_url: rules.Address = ""
    """The Postgres database with the ledger, the cached embeddings, the locks and the question log,
    for workers on several machines: `postgresql://user@host/rag`. Needs the extra `postgres`. If
    empty, they are in a SQLite file below `DATA_DIR`.

    Read by: ingestion, `serve`.
    """

    state_name: rules.Name = ""
    """The name of the book's state at `DATABASE_URL`, such as `textbook`. Give the same name on
    each machine that indexes the book, and another one to each other book.

    Read by: ingestion, `serve`.
    """

    # --- Vector store --- Read by: indexing, retrieval.

    qdrant_url: rules.Address = ""
    """The address of a Qdrant server or of Qdrant Cloud, such as `http://127.0.0.1:6333`. If empty,
    the program uses a store embedded in the process, below `DATA_DIR`."""

    qdrant_api_key: SecretStr = SecretStr("")
    """The API key of the Qdrant server. A secret: do not commit it."""

    qdrant_collection: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")] = "textbook_chunks"
    """The name of the collection: at most 100 letters, digits, `-` and `_`."""

    qdrant_timeout_s: rules.TimeoutS = 10.0
    """Timeout of the Qdrant server in seconds, for a silence and for a whole response."""

    qdrant_shard_number: Annotated[int, Field(ge=0, le=1000)] = 0
    """The number of shards of a new collection on a cluster of Qdrant servers, a multiple of its
    nodes. 0: the server's default. After a change run `rag-pipeline ingest --rebuild`."""

    qdrant_replication_factor: Annotated[int, Field(ge=0, le=100)] = 0
    """The number of copies of each shard of a new collection. 0: the server's default."""

    qdrant_quantization: rules.Quantization = rules.Quantization.NONE
    """The vectors of a new collection that the Qdrant server also keeps in memory as 8-bit
    integers: `none`, `dense`, `windows` or `all`. Scores of windows are then approximate."""

    qdrant_bulk_loading: bool = False
    """Let the Qdrant server build the graph of a new collection after all documents were written,
    and not with each batch. Until then, searches compare all vectors."""

    store_lock_timeout_s: Annotated[float, Field(ge=0, le=600)] = 10.0
    """Seconds to wait for the embedded store while another process has it open."""

    # --- The website that citations link to --- Read by: parsing.

    site_base_url: rules.BySite[rules.BaseUrl] = None
    """The address of the site: `url` and `baseUrl` of docusaurus.config joined, such as
    `https://example.org/book/`. A path such as `/book/` gives links without a host. If empty, it is
    read from the `docusaurus.config` file of the docs folder's site."""

    site_route_base_path: rules.BySite[rules.Route] = None
    """`routeBasePath` of the docs plugin; `/` if the docs are the root of the site. If empty, it is
    read from the same file."""

    site_trailing_slash: rules.BySite[rules.TrailingSlash] = None
    """`trailingSlash` of docusaurus.config; `open` if the site does not set it. If empty, it is
    read from the same file."""

    site_markdown_format: rules.BySite[rules.Format] = None
    """`markdown.format` of docusaurus.config. With `detect`, `.md` files are CommonMark and `.mdx`
    files are MDX. If empty, it is read from the same file. Also `mdx` or `md`."""

    site_manifest: rules.BySite[rules.FileUnset] = None
    """The `rag-manifest.json` that docusaurus-theme-robotutor writes when the site is built. With
    it, addresses and anchors of unchanged pages are those of the built site."""

    component_text: rules.BySite[rules.ComponentText] = ""
    """Exceptions from the rule which attributes of the site's own components are text, separated by
    commas: `Badge.type` is text, `-Card.tag` and everything in `-Chart` are not. `*` stands for any
    component."""

    index_unlisted: rules.BySite[bool] = False
    """Index the pages with `unlisted: true` in their front matter. The site hides them from its
    sidebar, its search and from search engines, so by default they are not quoted.

    Read by: ingestion.
    """

    sources: rules.BySite[rules.Sources] = None
    """The folders of a site that has more than one: docs folders, versions, locales, a blog,
    Markdown pages. A JSON list, or the tables `[[sources]]` of rag-pipeline.toml, which
    `rag-pipeline init` writes. If empty, only `DOCS_DIR` is indexed. `[]` also removes the pages of
    other folders from the index.

    Read by: ingestion, parsing.
    """

    # --- Embedding --- Read by: embedding, retrieval.

    embedding_provider: EmbeddingProvider = EmbeddingProvider.AUTO
    """The service that embeds texts. `auto` is the service that the existing collection was built
    with; before the first ingestion it is `openai` if `OPENAI_API_KEY` is set, otherwise `local`. A
    collection contains the vectors of one model: after a change run `rag-pipeline ingest
    --rebuild`."""

    embedding_model: str = ""
    """The embedding model. If empty, the provider's default. The local provider has
    `all-MiniLM-L6-v2-textbook` (its default, fine-tuned on questions to textbooks) and
    `all-MiniLM-L6-v2` (as published)."""

    embedding_dim: Annotated[int, Field(ge=0, le=65_536)] = 0
    """The number of dimensions to request from the model. 0: the model's own."""

    embedding_text: rules.BySite[EmbeddingText] = EmbeddingText.HEADING_PATH
    """The headings that are embedded before the text of a chunk: `text` (none), `title` (the
    document's title), `section` (the chunk's own heading) or `heading-path` (the title and all
    headings down to the chunk's own). The stored and cited text does not change. After a change the
    next ingest embeds only the texts that differ.

    Read by: chunking.
    """

    embedding_batch_size: Annotated[int, Field(ge=1, le=2048)] = 100
    """The highest number of texts in one request to an embedding service.

    Read by: embedding.
    """

    embedding_max_tokens: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """The highest number of tokens in one text for an embedding service. A longer text is embedded
    in parts. 0: the limit of the provider's own models. A text that the service refuses as too long
    is cut in any case."""

    embedding_query_prefix: str = ""
    """Text before each question that an embedding service gets, such as `query: `, for models that
    were trained with it."""

    embedding_document_prefix: str = ""
    """Text before each text of the book that an embedding service gets, such as `passage: `. After
    a change run `rag-pipeline ingest --rebuild`."""

    embedding_timeout_s: rules.TimeoutS = 30.0
    """Timeout of an embedding service in seconds, for a silence and for a whole response."""

    openai_api_key: SecretStr = SecretStr("")
    """The API key of OpenAI, or of a service with the same API. A secret: do not commit it.

    Read by: embedding, retrieval, answering.
    """

    openai_base_url: str = ""
    """The address of a service with OpenAI's API. If empty, OpenAI's own.

    Read by: embedding, retrieval, answering.
    """

    cohere_api_key: SecretStr = SecretStr("")
    """The API key of Cohere. A secret: do not commit it."""

    cohere_base_url: str = ""
    """The address of a service with Cohere's API. If empty, Cohere's own."""

    # --- Ingestion --- Read by: ingestion.

    embedding_prices: rules.Prices = {
        "text-embedding-3-small": 0.02,
        "text-embedding-3-large": 0.13,
        "text-embedding-ada-002": 0.10,
        "embed-english-v3.0": 0.10,
    }
    """US dollars per million tokens by model, as a JSON object. The ingestion report computes its
    cost from it; a model without a price costs 0.

    Read by: ingestion (report and asset metadata).
    """

    ingest_run_docs: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """The highest number of documents in one run. A larger ingestion is split into runs."""

    doc_partitions_limit: Annotated[int, Field(ge=0, le=100_000)] = 10_000
    """The highest number of documents that have a Dagster partition each. A run of a larger book
    records only the summary in `book_index`.

    Read by: the Dagster assets.
    """

    asset_owners: str = ""
    """Who is responsible for the index in the Dagster UI, separated by commas: e-mail addresses or
    teams, such as `ada@example.org, team:robotics`. It must be an environment variable.

    Read by: the Dagster assets.
    """

    max_deleted_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """The largest share of the indexed documents that one run deletes, if DATABASE_URL is set,
    against a checkout that is partial or old. Up to 5 documents and moved ones do not count. 1: no
    limit."""

    ingest_lock_timeout_s: Annotated[float, Field(ge=0, le=86_400)] = 60.0
    """Seconds to wait for another ingestion of the same docs folder to end."""

    # --- Answering --- Read by: answering.

    answer_model: str = ""
    """The chat model that writes answers. If empty, `gpt-4o-mini` if `OPENAI_API_KEY` is set,
    otherwise none: answers then consist of passages quoted from the book. A local server at
    `OPENAI_BASE_URL` needs no key."""

    answer_timeout_s: rules.TimeoutS = 30.0
    """Seconds until the first token of an answer, retries included, and from each token to the
    next."""

    answer_max_tokens: Annotated[int, Field(ge=16, le=32_000)] = 800
    """The highest number of tokens in one answer, a model's hidden reasoning included."""

    answer_context_tokens: Annotated[int, Field(ge=1_024, le=2_000_000)] = 8_192
    """The size of the model's context. Instructions, sources, earlier turns and the answer fit in
    it. If a server says that its context is smaller, that size counts."""

    answer_temperature: Annotated[float, Field(ge=0, le=2)] = 0.0
    """The sampling temperature. 0 repeats the same answer."""

    answer_ungrounded: Literal["drop", "mark"] = "drop"
    """What happens to a sentence of the model that is not in the sources: `drop` leaves it out,
    `mark` shows it with a mark."""

    answer_extra: dict[str, Any] = {}
    """Further fields of the request to the model, as a JSON object, such as `{"reasoning_effort":
    "low"}`. `null` leaves a field out."""

    answer_headers: SecretStr = SecretStr("")
    """Further headers of the request to the model, as a JSON object. A secret if it contains a key:
    do not commit it."""

    # --- The voice of the assistant --- Read by: answering.

    assistant_source: Annotated[str, Field(min_length=1, max_length=60)] = "book"
    """What the source of the answers is called: `book`, `textbook`, `documentation`, `handbook`,
    `manual`, `guide` or another name. In a language other than English, write another name with its
    article."""

    assistant_name: Annotated[str, Field(min_length=1, max_length=60)] = "RoboTutor"
    """The name of the assistant."""

    assistant_audience: Annotated[str, Field(min_length=1, max_length=200)] = "a university student"
    """For whom a model writes, such as `a system administrator`."""

    assistant_instructions: Annotated[str, Field(max_length=2_000)] = ""
    """Further instructions for a model about its style. They cannot change the rules that keep
    answers in the sources."""

    assistant_language: Literal["en", "de", "es", "fr"] = "en"
    """The language of refusals, notices and fixed replies."""

    assistant_tells_solutions: bool = False
    """Tell the solutions on pages of the type `quiz`. If false, an answer contains the question of
    a quiz with its section, and neither a model nor a reader gets the text below a label such as
    `Answer`. Searches, and sections that agents read, are not changed."""

    # --- Chunking --- Read by: chunking.

    chunk_min_tokens: rules.BySite[rules.Tokens] = 200
    """The smallest piece that a longer section is split into, in cl100k_base tokens. A section that
    is smaller than this stays whole."""

    chunk_target_tokens: rules.BySite[rules.Tokens] = 500
    """The size that longer sections are split evenly into; between the minimum and the maximum."""

    chunk_max_tokens: rules.BySite[rules.Tokens] = 800
    """The highest number of tokens in a chunk. Only a single code block or table that cannot be
    split may be longer."""

    chunk_overlap_tokens: rules.BySite[Annotated[int, Field(ge=0, le=8000)]] = 50
    """The tokens that a chunk repeats from the chunk before it in the same section, or 0. Below
    `CHUNK_MIN_TOKENS`."""

    # --- Evaluation ---

    evaluation_test_set: rules.BySite[rules.Place] = ""
    """The JSON file of questions for evaluations that name none. If empty, the questions about the
    textbook that come with this package; another book needs its own.

    Read by: `rag-pipeline evaluate`, `rag-pipeline sweep`, the asset `retrieval_evaluation`.
    """

    # --- Retrieval --- Read by: retrieval.

    dedup_threshold: rules.BySite[Annotated[float, Field(gt=0, le=1)]] = 0.95
    """Two results whose texts have at least this cosine similarity are shown once."""

    semantic_weight: rules.BySite[rules.Share] = 0.8
    """The weight of the embeddings in the score. BM25 has the rest."""

    window_weight: rules.BySite[rules.Share] = 0.7
    """Within the weight of the embeddings, the share of the windows (four words of a chunk,
    embedded on their own). The whole chunk's embedding has the rest. A service's model has no
    windows, so this has no effect there."""

    document_weight: rules.BySite[rules.Share] = 0.2
    """How much the three best candidates of a document raise the scores of all its candidates."""

    selected_text_threshold: rules.BySite[rules.Share] = 0.38
    """The share of a question's words, weighted by length, from which a selected text counts as an
    answer to it. A similar meaning can replace the words.

    Read by: retrieval (selected-text mode).
    """

    store_idle_s: Annotated[float, Field(ge=0, le=3600)] = 600.0
    """Seconds without a query after which the embedded store is closed. It is closed at once if
    another process waits for it."""

    # --- Question log ---

    log_questions: bool = False
    """Keep the text of questions in the question log. If false, an entry has no question. Other
    logs never contain questions.

    Read by: `rag-pipeline serve`.
    """

    question_log_url: rules.Address = ""
    """The database with the answers that were given and their ratings, such as
    `postgresql://user@host/robotutor`. If empty, an SQLite file below `DATA_DIR`.

    Read by: `rag-pipeline serve`, the assets `answer_feedback` and `unanswered_questions`.
    """

    question_log_days: Annotated[int, Field(ge=0, le=3650)] = 90
    """The number of days after which entries are deleted. 0: nothing is logged.

    Read by: `rag-pipeline serve`, the assets `answer_feedback` and `unanswered_questions`.
    """

    # --- RoboTutor, the service --- Read by: `rag-pipeline serve`.

    serve_origins: str = ""
    """The origins of other websites whose pages may call the service, separated by commas, such as
    `https://book.example.org`. If empty, only pages of the service itself may call it."""

    serve_hosts: str = ""
    """The host names under which the service is reached, separated by commas, such as
    `tutor.example.org`. Requests for other hosts are refused. This machine's own names, such as
    `localhost`, and the value of `--host` are always allowed."""

    serve_api_key: SecretStr = SecretStr("")
    """The key that each request must send as `Authorization: Bearer KEY`. If empty, no key is
    needed. A secret: do not commit it."""

    serve_client_rate: str = "30/minute"
    """The highest rate of questions of one client, such as `30/minute` or `5/second;200/hour`. If
    empty, there is no limit."""

    serve_total_rate: str = "600/minute"
    """The highest rate of questions of all clients together. If empty, there is no limit."""

    serve_client_answers: Annotated[int, Field(ge=1, le=1000)] = 2
    """The number of questions of one client that are answered at the same time. Others of the
    client wait. Increase it if many readers share one address."""

    serve_rate_url: rules.Address = ""
    """The place where several processes count requests together, such as `redis://127.0.0.1:6379`.
    If empty, each process counts its own."""

    serve_trusted_proxies: str = ""
    """The addresses of reverse proxies, separated by commas, whose `X-Forwarded-For` header names
    the client. If empty, the header is ignored."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  # not used
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources of values: arguments, environment, `.env`, then `rag-pipeline.toml`.

        The file is the one of the docs folder that one of the other sources names.
        """
        sources = (init_settings, SetValues(env_settings), SetValues(dotenv_settings))
        named = (source().get("docs_dir") for source in sources)
        docs_dir = next((value for value in named if value is not None), None)
        file = find_settings_file(settings_cls, docs_dir)
        return sources if file is None else (*sources, file)

    @property
    def state_dir(self) -> Path:
        """The folder below DATA_DIR with the state of this docs folder only."""
        return find_state_dir(self.docs_dir, self.data_dir)

    @model_validator(mode="after")
    def _check_chunk_sizes(self) -> Self:
        if not self.chunk_min_tokens <= self.chunk_target_tokens <= self.chunk_max_tokens:
            problem = "CHUNK_MIN_TOKENS <= CHUNK_TARGET_TOKENS <= CHUNK_MAX_TOKENS is not true"
            raise ValueError(problem)
        if self.chunk_overlap_tokens >= self.chunk_min_tokens:
            problem = "CHUNK_OVERLAP_TOKENS must be smaller than CHUNK_MIN_TOKENS"
            raise ValueError(problem)
        return self

    @property
    def site(self) -> SiteSettings:
        """The settings from which page addresses are built, with Docusaurus's own defaults."""
        own = {name: getattr(self, f"site_{name}") for name in rules.SITE_FIELDS}
        known = {name: value for name, value in own.items() if value not in {None, rules.OPEN}}
        return SiteSettings(
            **known, component_text=self.component_text, index_unlisted=self.index_unlisted
        )

    @property
    def unset_site_fields(self) -> tuple[str, ...]:
        """The fields of `SiteSettings` for which no value is set."""
        return tuple(name for name in rules.SITE_FIELDS if getattr(self, f"site_{name}") is None)

    def fill_site(self, site: SiteSettings) -> Self:
        """Return a copy in which the unset fields of the site have the values of `site`."""
        unset = self.unset_site_fields
        return self.model_copy(update={f"site_{name}": getattr(site, name) for name in unset})

    @property
    def chunk_limits(self) -> ChunkLimits:
        """The sizes of chunks, and which of their headings are embedded."""
        return ChunkLimits(
            self.chunk_min_tokens,
            self.chunk_target_tokens,
            self.chunk_max_tokens,
            self.chunk_overlap_tokens,
            self.embedding_text,
        )


def load_settings(**overrides: Any) -> Settings:  # noqa: ANN401  # field values of many types; pydantic checks each
    """Read the settings from the arguments, then the environment, then `.env`, then the defaults.

    Args:
        **overrides: Values by field name. A value of None counts as not given.

    Raises:
        ConfigurationError: A value has a wrong type or is out of its bounds (the message names the
            setting and never contains a secret), or `.env` is not encoded in UTF-8 or has a line
            that cannot be read.
    """
    try:
        given = {name: value for name, value in overrides.items() if value is not None}
        if not check_env_file({name.upper() for name in Settings.model_fields}):
            given.setdefault("_env_file", "")
        return Settings(**given)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0]) if first["loc"] else "CHUNK_*_TOKENS"
        problem = first["msg"].removeprefix("Value error, ").rstrip(".")
        field = Settings.model_fields.get(name)  # None for a rule about several settings
        is_shown = field is not None and field.annotation != SecretStr
        if is_shown and first["type"] != "value_error":
            problem = f"{first['input']!r:.40} is not valid: {problem[0].lower()}{problem[1:]}"
        remedy = "See .env.example for its meaning and the allowed values"
        raise ConfigurationError(name.upper(), problem, remedy) from None
    except UnicodeDecodeError:
        raise ConfigurationError(
            ".env", "the file is not encoded in UTF-8", "Save it as UTF-8"
        ) from None
