"""Write docs/reference/payload.md from the declarations in rag_pipeline/core/payload.py.

Run `python scripts/write_payload_reference.py` after a change of the declarations.
With `--check`, nothing is written; the exit code is 1 if the page is out of date.
"""

from __future__ import annotations

import sys
from pathlib import Path

from rag_pipeline.core.payload import FILTERS, INDEXED_FIELDS, PAYLOAD_FIELDS

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "payload.md"

INTRODUCTION = """\
# Payload

The fields that the store keeps with every point. `scripts/write_payload_reference.py` writes this
page from the declarations in `rag_pipeline/core/payload.py`.

Shown fields appear in the `metadata` of results: in `ScoredChunk`, and with `--json` in the output
of `rag-pipeline search` and `rag-pipeline query`. The stores index "indexed" fields by keyword.

| Field | Type | Comes from | Shown | Indexed | Filter | Description |
|---|---|---|---|---|---|---|
"""

ORIGINS = {
    "chunk": "the chunk",
    "document": "the document",
    "writing": "the writing of the point",
}


def describe_payload() -> str:
    """Return the text of the page."""
    rows = []
    for field in PAYLOAD_FIELDS:
        flags = FILTERS[field.name].flags if field.name in FILTERS else ()
        cells = (
            f"`{field.name}`",
            field.kind.label,
            ORIGINS[field.declared.source],
            "yes" if field.shown else "no",
            "yes" if field.name in INDEXED_FIELDS else "no",
            ", ".join(f"`{flag}`" for flag in flags),
            field.declared.description,
        )
        rows.append(f"| {' | '.join(cells)} |\n")
    return INTRODUCTION + "".join(rows)


def main() -> int:
    """Write the page, or check it; return the exit code."""
    page = describe_payload()
    if "--check" in sys.argv[1:]:
        current = PAGE.read_text(encoding="utf-8") if PAGE.is_file() else ""
        return 0 if current == page else 1
    PAGE.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
