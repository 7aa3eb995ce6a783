"""Three sites with the structure of public Docusaurus sites: configuration, folders and options.

The structure is that of the websites of Jest, React Native and Docusaurus itself, unlike the texts.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FIXTURES: Final = Path(__file__).parents[2] / "fixtures"


@dataclass(frozen=True)
class PublicSite:
    """A site, and what must be found on it.

    Attributes:
        files: The folder of the repository without its Markdown files.
        pages: The Markdown files.
        values: The value of each setting.
        routes: The address of each source below the URL of the site.
        latest: The sources that readers get unless they choose a version.
        notes: A text that each note contains if the configuration is run, in their order.
    """

    files: Path
    pages: list[str]
    values: dict[str, str | bool]
    routes: dict[str, str]
    latest: list[str]
    notes: list[str]

    def write(self, root: Path) -> Path:
        """Write the repository of the site, and return the folder of the site."""
        shutil.copytree(self.files, root, dirs_exist_ok=True)
        (root / ".git").mkdir()
        for page in self.pages:
            path = root / page
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"# {page}\n\nText.\n", encoding="utf-8")
        return root / "website"


_TRUTH: Final = json.loads((_FIXTURES / "public-sites-truth.json").read_text(encoding="utf-8"))

PUBLIC_SITES: Final = {
    name: PublicSite(_FIXTURES / "public-sites" / name, **truth) for name, truth in _TRUTH.items()
}
