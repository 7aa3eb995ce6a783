"""Write the generated reference: `.env.example`, pages below docs/reference and JSON Schemas.

Run `python scripts/write_reference.py` after a change of settings, commands, errors, docstrings or
data classes. With `--check` nothing is written: the script prints the files that are out of date,
and the exit code is 1 if there are any.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from reference.commands import describe_commands
from reference.data_model import build_schemas, describe_model
from reference.errors import describe_errors
from reference.library import describe_package
from reference.settings import describe_env, describe_settings

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs" / "reference"


def generate() -> dict[Path, str]:
    """Return the text of each generated file by its path."""
    files = {
        ROOT / ".env.example": describe_env(),
        FOLDER / "settings.md": describe_settings(),
        FOLDER / "commands.md": describe_commands(),
        FOLDER / "errors.md": describe_errors(),
        FOLDER / "api-retrieval.md": describe_package("rag_pipeline.retrieval"),
        FOLDER / "api-answering.md": describe_package("rag_pipeline.answering"),
    }
    for name, text in describe_model().items():
        files[FOLDER / f"{name}.md"] = text
    for name, schema in build_schemas().items():
        text = json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        files[FOLDER / "schemas" / f"{name}.schema.json"] = text
    return files


def main() -> int:
    """Write the files that changed, or name them with `--check`; return the exit code."""
    stale = [
        (path, text)
        for path, text in generate().items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    if "--check" in sys.argv[1:]:
        for path, _ in stale:
            print(f"{path.relative_to(ROOT)} is out of date", file=sys.stderr)
        return 1 if stale else 0
    for path, text in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
