"""The declaration of the settings that say where files are: the docs folder and all state."""

from __future__ import annotations

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from rag_pipeline.core.settings import rules
from rag_pipeline.core.state_dirs import find_state_dir


class FolderSettings(BaseSettings):
    """The settings of folders. A field has the name of its environment variable in lower case."""

    model_config = SettingsConfigDict(
        env_file=".env", env_file_encoding="utf-8-sig", extra="ignore", frozen=True
    )

    docs_dir: rules.Folder = rules.FOLDERS.setting(
        Path("website/docs"),
        "The folder with the book's Markdown files: the docs folder of a Docusaurus site.",
        read_by="ingestion, evaluation, the Dagster sensor `docs_changes`",
        by_site=True,
    )
    data_dir: rules.Folder = rules.FOLDERS.setting(
        Path("data"),
        "The folder for everything that the program stores: the database, the embedded vector "
        "store and logs. Each docs folder gets a subfolder of its own.",
        read_by="every command",
        by_site=True,
    )
    dagster_home: rules.Place = rules.FOLDERS.setting(
        "",
        "The folder in which Dagster stores its runs, events and schedules. If empty, it is a "
        "folder below `DATA_DIR`, set up from `dagster.yaml`.",
        read_by="ingestion, evaluation, `make dev`",
    )
    database_url: rules.Address = rules.FOLDERS.setting(
        "",
        "The Postgres database with the ledger, the cached embeddings, the locks and the question "
        "log, for workers on several machines: `postgresql://user@host/rag`. Needs the extra "
        "`postgres`. If empty, they are in a SQLite file below `DATA_DIR`.",
        read_by="ingestion, `serve`",
    )
    state_name: rules.Name = rules.FOLDERS.setting(
        "",
        "The name of the book's state at `DATABASE_URL`, such as `textbook`. Give the same name on "
        "each machine that indexes the book, and another one to each other book.",
        read_by="ingestion, `serve`",
    )

    @property
    def state_dir(self) -> Path:
        """The folder below DATA_DIR with the state of this docs folder only."""
        return find_state_dir(self.docs_dir, self.data_dir)
