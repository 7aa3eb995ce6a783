"""Run the `rag-pipeline` command as if some packages were not installed.

Usage: `python -m rag_pipeline_tests.end_to_end.without PACKAGES COMMAND ...`, where PACKAGES are
names of modules, separated by commas.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


class Without:
    """A finder of modules that does not find those of some packages.

    Args:
        finder: The finder that knows all modules.
        packages: Names of the packages that are not found.
    """

    def __init__(self, finder: Any, packages: Sequence[str]) -> None:  # noqa: ANN401  # any finder
        self._finder = finder
        self._packages = packages

    def find_spec(self, name: str, *arguments: object) -> object:
        """Return the module's specification, or None if its package is left out."""
        if name.partition(".")[0] in self._packages:
            return None
        return self._finder.find_spec(name, *arguments)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # any attribute
        """Return an attribute of the finder, such as the one that finds distributions."""
        return getattr(self._finder, name)


if __name__ == "__main__":
    packages = sys.argv[1].split(",")
    sys.meta_path[:] = [Without(finder, packages) for finder in sys.meta_path]
    sys.argv[:] = ["rag-pipeline", *sys.argv[2:]]

    from rag_pipeline.cli import main

    main()
