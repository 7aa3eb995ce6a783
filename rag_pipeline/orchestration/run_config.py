"""The run config of an ingestion, as the launchpad of the Dagster UI shows it."""

from collections.abc import Collection

import dagster as dg
import pydantic

from rag_pipeline.core.errors import ConfigurationError


class IngestConfig(dg.Config):
    """Run config of an ingestion.

    The defaults ingest everything that changed.
    """

    doc_ids: list[str] | None = pydantic.Field(
        default=None,
        description=(
            "Paths of documents to index even if they are unchanged, relative to the docs folder. "
            "Without this list, every new or changed document is indexed and every deleted "
            "document is removed."
        ),
    )
    delete_ids: list[str] = pydantic.Field(
        default_factory=list,
        description="Documents to remove if their files no longer exist. Only with doc_ids.",
    )
    plan: str = pydantic.Field(
        default="",
        description=(
            "Hash of the documents, settings and collection that the run was planned for. A run "
            "that finds others changes nothing and fails. Only with doc_ids."
        ),
    )
    rewrite: bool = pydantic.Field(
        default=False,
        description="Write all points of doc_ids again, even unchanged ones. Only with doc_ids.",
    )
    rebuild: bool = pydantic.Field(
        default=False,
        description=(
            "Build a new collection of all documents, then switch to it. Only without doc_ids."
        ),
    )
    reread: bool = pydantic.Field(
        default=False,
        description=(
            "Read every file, even if its size and modification time are unchanged. Only without "
            "doc_ids."
        ),
    )


def refuse_fields(config: IngestConfig, names: Collection[str], situation: str) -> None:
    """Refuse a run config that sets fields without an effect in its run.

    Args:
        config: The run config.
        names: Names of the fields that have no effect.
        situation: What takes their effect away, such as `with doc_ids`.

    Raises:
        ConfigurationError: One of the fields is set; the message names all that are set.
    """
    default = IngestConfig()
    given = [
        name
        for name in IngestConfig.model_fields
        if name in names and getattr(config, name) != getattr(default, name)
    ]
    if given:
        remedy = "Remove it from the run config, or start a run of its own for it"
        raise ConfigurationError(", ".join(given), f"does not work {situation}", remedy)
