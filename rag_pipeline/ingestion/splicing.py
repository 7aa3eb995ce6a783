"""Find the files that a page imports or shows as images, and put imported files into the page.

Each file is parsed on its own, as Docusaurus does: it has its own heading ids, link references and
Markdown format. Its blocks follow the block of the page that shows it.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias
from urllib.parse import quote, unquote, urljoin, urlsplit

from rag_pipeline.core.errors import FrontMatterError
from rag_pipeline.core.models import SITE_FILES, Block, Container, Figure, Heading, SiteSettings
from rag_pipeline.core.site.docusaurus import MARKDOWN_SUFFIXES
from rag_pipeline.core.site.files import MAX_FILE_BYTES, find_page_root, is_inside, read_site_file
from rag_pipeline.core.sources import find_place
from rag_pipeline.core.text.sentences import LineOrigin, PageNotes
from rag_pipeline.ingestion.cards import has_all_cards, is_category, read_cards, write_cards
from rag_pipeline.ingestion.markdown.constructs.code import CODE_TAG, fence_code
from rag_pipeline.ingestion.markdown.openapi import (
    CUT,
    find_references,
    read_props,
    write_component,
)
from rag_pipeline.ingestion.markdown.page import PageContent, read_content
from rag_pipeline.ingestion.markdown.scope import CARD_LIST, DATA, Use, find_imports, read_strings
from rag_pipeline.ingestion.markdown.source import is_mdx, normalize_source, read_front_matter
from rag_pipeline.ingestion.site.docusaurus_config import find_config_in
from rag_pipeline.ingestion.site.manifest import MANIFEST_FILE, describes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rag_pipeline.core.ids import DocId
    from rag_pipeline.core.models import DiscoveredDoc
    from rag_pipeline.core.sources import Source


_STATIC: Final = "static/"
_SCHEME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//")
_AS_WRITTEN: Final = "pathname://"
_SUFFIX: Final = re.compile(r"[?#].*$")


def place_images(blocks: Iterable[Block], place: str) -> tuple[Block, ...]:
    """Return blocks whose images have paths below the site's folder.

    Args:
        blocks: The blocks of one file.
        place: Path of the file below the site's folder.
    """

    def put(image: Figure) -> Figure:
        target = image.address
        if _SCHEME.match(target) or target.startswith(("/", SITE_FILES)):
            return image
        path = posixpath.normpath(posixpath.join(posixpath.dirname(place), unquote(target)))
        return replace(image, address=SITE_FILES + path)

    return _change_images(blocks, put)


def _change_images(
    blocks: Iterable[Block], change: Callable[[Figure], Figure]
) -> tuple[Block, ...]:
    return tuple(
        replace(block, images=tuple(map(change, block.images))) if block.images else block
        for block in blocks
    )


def settle_images(
    blocks: Iterable[Block], base_url: str, site_dir: Path, root: Path
) -> tuple[tuple[Block, ...], list[str]]:
    """Return blocks whose images have their addresses, and the images that are missing.

    Args:
        blocks: Blocks from `place_images`.
        base_url: Base URL of the page's locale.
        site_dir: Folder of the site.
        root: Folder outside which no file counts as an image of the site.
    """
    missing: list[str] = []

    def exists(path: Path) -> bool:
        return path.is_file() and is_inside(path, root)

    def settle(image: Figure) -> Figure:
        target = image.address
        if target.startswith(_AS_WRITTEN):
            below = target.removeprefix(_AS_WRITTEN).lstrip("/")
            return replace(image, address=urljoin(base_url, f"/{below}"))
        if _SCHEME.match(target):
            return image
        path = _SUFFIX.sub("", target)
        if path.startswith("/"):
            path = unquote(path)
            below = path.removeprefix(urlsplit(base_url).path.rstrip("/"))
            found = next((one for one in (path, below) if exists(site_dir / f"static{one}")), "")
            is_missing = not found and (site_dir / "static").is_dir()
            address = urljoin(base_url, quote((found or below).lstrip("/")))
        else:
            path = path.removeprefix(SITE_FILES)
            is_missing = not exists(site_dir / path)
            is_static = path.startswith(_STATIC)
            published = urljoin(base_url, quote(path.removeprefix(_STATIC)))
            address = published if is_static else SITE_FILES + path
        if is_missing:
            missing.append(target.removeprefix(SITE_FILES))
        return replace(image, address=address)

    return _change_images(blocks, settle), [*dict.fromkeys(missing)]


_ENDINGS: Final = ("", ".mjs", ".js", ".jsx", ".ts", ".tsx", ".json")
"""Endings that an import may leave out, in the order in which a build tries them."""

_MOST_BYTES: Final = 32 * 1024**2
"""Bytes of all files that one page imports."""

ImportedFiles: TypeAlias = "Mapping[str, bytes | None]"
"""Content of imported files by path below the site's folder; None for a file that is missing."""


def read_imports(
    place: str, path: Path, content: bytes, built: bytes = b"", source: Source | None = None
) -> dict[str, bytes | None]:
    """Read all files that a page imports, directly or through its partials.

    Only files below the site's folder are read, and only files inside the root of the site.

    Args:
        place: Path of the page below the docs folder, or below the folder of its source.
        path: Path of the page on this machine.
        content: Content of the page.
        built: The page's entry in the manifest of the built site; empty without a manifest.
        source: The source of the page.

    Returns:
        The content of each file, or None if it cannot be read. If the site was built from this
        content, the name of the manifest has the page's entry. Empty without both.
    """
    found: dict[str, bytes | None] = {}
    if built and describes(built, content):
        found[MANIFEST_FILE] = built
    of_spec = is_spec(path.name)
    if shows_cards(content):
        found |= read_cards(place, path, find_page_root(place, path), source)
    if next(_list_targets(content, of_spec=of_spec), None) is None:
        return found
    site_dir, root = find_site_dir(place, path), find_page_root(place, path)
    left = _MOST_BYTES
    pending = [(locate_page(path, site_dir), content)]
    while pending:
        importer, text = pending.pop()
        for target in _list_targets(text, of_spec=of_spec):
            wanted = resolve_import(importer, target)
            if wanted is None or wanted in found:
                continue
            data: bytes | None = None
            for ending in _ENDINGS:
                with suppress(OSError):
                    file = site_dir / f"{wanted}{ending}"
                    data = read_site_file(file, root, min(left, MAX_FILE_BYTES))
                    break
            found[wanted] = data
            left -= len(data or b"")
            if data is not None and (of_spec or wanted.endswith(MARKDOWN_SUFFIXES)):
                pending.append((wanted, data))
    return found


def read_doc_imports(doc: DiscoveredDoc, content: bytes) -> dict[str, bytes | None]:
    """Read all files that a document imports. A page that the site generates imports none."""
    place = find_place(doc.source, doc.doc_id)
    return {} if doc.written else read_imports(place, doc.path, content, doc.built, doc.source)


def shows_cards(content: bytes) -> bool:
    """Return True if a file may list other pages, which may also be none at present."""
    return CARD_LIST.encode() in content


def _list_targets(content: bytes, *, of_spec: bool) -> Iterator[str]:
    """Yield the files that a page imports, or those that a file of an OpenAPI document names."""
    if of_spec:
        yield from (f"./{target}" for target in find_references(normalize_source(content)))
    elif b"import" in content or b"require(" in content:
        yield from find_imports(normalize_source(content))


def is_spec(doc_path: str) -> bool:
    """Return True for an OpenAPI document, which is JSON or YAML and describes no category."""
    return doc_path.endswith((".json", ".yaml", ".yml")) and not is_category(doc_path)


def resolve_import(importer: str, target: str) -> str | None:
    """Return the path of an imported file below the site's folder; None if it is outside.

    Args:
        importer: Path of the importing file below the site's folder.
        target: The file as the statement names it: `./x`, `../x`, `@site/x`, or a file of a package
            in the site's `node_modules`.
    """
    if target.startswith("@site/"):
        path = posixpath.normpath(target.removeprefix("@site/"))
    elif target.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(importer), target))
    elif target.startswith("/"):
        return None
    else:
        path = posixpath.normpath(f"node_modules/{target}")
    return None if path.startswith(("../", "/")) else path


def find_site_dir(place: str, path: Path) -> Path:
    """Return the folder of the site: the nearest folder above the docs with a docusaurus.config.

    Without such a file, it is the folder that contains the docs folder.

    Args:
        place: Path of a page below the docs folder, or below the folder of its source.
        path: Path of the page on this machine.
    """
    docs_dir = Path(os.path.abspath(path))  # noqa: PTH100  # symbolic links must not be resolved
    for _ in place.split("/"):
        docs_dir = docs_dir.parent
    config = find_config_in(docs_dir.parents)
    return docs_dir.parent if config is None else config.parent


def locate_page(path: Path, site_dir: Path) -> str:
    """Return the path of a page below the site's folder, with `/` between its parts."""
    return Path(os.path.relpath(path, site_dir)).as_posix()


def hash_content(content: bytes, imported: ImportedFiles) -> str:
    """Return the SHA-256 of a page's content, and of the files that it imports, if any."""
    digest = hashlib.sha256(content)
    for place in sorted(imported):
        data = imported[place]
        own = "missing" if data is None else hashlib.sha256(data).hexdigest()
        digest.update(f"\0{place}\0{own}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


# Limits of all files that a page shows, so that partials which show each other stay small.
_MOST_CHARACTERS: Final = 2_000_000
_MOST_USES: Final = 500


@dataclass(slots=True)
class Splicer:
    """The state while the files that a page shows are put into it.

    Attributes:
        doc_id: Path of the page below the docs folder, for warnings.
        files: The content of the files that the page imports.
        site: Settings of the site: the syntax of files, and which attributes are text.
        warnings: Files that could not be shown, and directives that were not read.
        left_out: Number of expressions without a known value.
        components: Names of the components with a text that cannot be read.
    """

    doc_id: DocId
    files: ImportedFiles
    site: SiteSettings
    warnings: list[str] = field(default_factory=list)
    left_out: int = 0
    components: list[str] = field(default_factory=list)
    _characters: int = 0
    _uses: int = 0
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def notes(self) -> PageNotes:
        """The parts of the page that could not be read."""
        warnings = tuple(dict.fromkeys(self.warnings))
        return PageNotes(warnings, self.left_out, tuple(dict.fromkeys(self.components)))

    def note(self, content: PageContent, place: str = "the page") -> None:
        """Add what could not be read of the page, or of a file that it shows, to the notes."""
        self.left_out += content.scope.left_out
        self.components += content.scope.unread_tags
        for mark, times in Counter(content.scope.unread).items():
            shown = f"`{mark}`" if times == 1 else f"`{mark}` ({times} times)"
            problem = "which only a plugin of the site can read. Its content is not indexed"
            self.warnings.append(f"{self.doc_id}: {place} contains {shown}, {problem}")

    def splice(self, source: str, content: PageContent, chain: tuple[str, ...]) -> SplicedPage:
        """Return a file with the files that it shows.

        Args:
            source: The normalized text of the file.
            content: The parsed content of the file.
            chain: Paths of the files that are being shown, from the page to this file, below the
                site's folder.
        """
        self.note(content, *chain[1:][-1:])
        shown: dict[int, list[SplicedPage]] = {}
        for at, use in content.uses:
            part = self._read_part(use, chain)
            if part is not None:
                shown.setdefault(at, []).append(part)
        page = SplicedPage(source, self._numbers, [LineOrigin(1, chain[-1], 1)])
        for at, block in enumerate(place_images(content.blocks, chain[-1] or chain[0])):
            shift = (page.length - page.taken, page.lines - page.taken_lines)
            page.add_block(block, content.headings, shift)
            for part in shown.get(at, ()):
                page.add_part(block, part)
        page.add_text(source[page.taken :])
        return page

    def _read_part(self, use: Use, chain: tuple[str, ...]) -> SplicedPage | None:
        """Return a file that another one shows; None, with a warning, if it cannot be shown."""
        if use.component == CARD_LIST:
            use = replace(use, text=write_cards(self.files))
            self.components += [] if has_all_cards(self.files) else [CARD_LIST]
        if use.text:
            return self._parse_part(use, use.text, (*chain, ""))
        if not use.target:
            return None
        place = resolve_import(chain[-1], use.target)
        data = None if place is None else self.files.get(place)
        if place is None:
            problem = "is not a file below the folder of the site"
        elif place in chain:
            circle = " > ".join((*chain[chain.index(place) :], place))
            problem = f"contains the file that imports it ({circle})"
        elif data is None:
            problem = "does not exist or cannot be read"
        else:
            text = normalize_source(data).rstrip("\n")
            self._characters += len(text)
            self._uses += 1
            if self._characters <= _MOST_CHARACTERS and self._uses <= _MOST_USES:
                try:
                    return self._parse_part(use, text, (*chain, place))
                except FrontMatterError as error:
                    problem = f"has front matter that is not valid: {error}"
            else:
                problem = (
                    f"is left out because a page can show files {_MOST_USES} times, with "
                    f"{_MOST_CHARACTERS} characters in all"
                )
        self.warnings.append(
            f"{self.doc_id}: {chain[-1]} imports {place or use.target}, which {problem}. The page "
            "is indexed without it. Correct the import"
        )
        return None

    def _parse_part(self, use: Use, text: str, chain: tuple[str, ...]) -> SplicedPage:
        if use.is_raw:
            return self._build_code(text, use.info, chain[-1])
        if use.component == DATA:
            text = use.text or read_strings(text, self.site.component_text) or ""
        elif use.component and not use.text:
            text = write_component(use.component, use.props | read_props({"": text}).get("", {}))
            if text and use.component == "StatusCodes":  # which shows its own label then
                text = f"Responses:\n\n{text}"
            chain = (*chain[:-1], "")
        if use.component:
            if CUT in text:
                problem = "is too large, so a part of it is left out"
                self.warnings.append(
                    f"{self.doc_id}: a part of the API ({use.component}) {problem}"
                )
            content = read_content(text, 0, {}, mdx=False)
            if use.component == CARD_LIST:  # a card may name the component in its text
                content = replace(content, uses=())
            return self.splice(text, content, chain)
        front_matter = read_front_matter(chain[-1], text)
        content = read_content(
            text,
            front_matter.end,
            use.values,
            mdx=is_mdx(chain[-1], front_matter, self.site),
            component_text=self.site.component_text,
        )
        return self.splice(text, content, chain)

    def _build_code(self, text: str, info: str, place: str) -> SplicedPage:
        """Return a file that is shown as a code block."""
        page, end = SplicedPage(text, self._numbers, [LineOrigin(1, place, 1)]), len(text)
        page.add_text(text)
        if text.strip():
            code = fence_code(text, info)
            block = Block(
                kind=CODE_TAG.name,
                start_line=1,
                end_line=text.count("\n") + 1,
                start=0,
                end=end,
                text=code,
                runs=((0, 0, 0), (end, end, len(code))),
                holds=((0, end),),
                text_kind=CODE_TAG.text_kind,
                containers=(),
                is_atomic=CODE_TAG.is_atomic,
                leads=CODE_TAG.leads,
                heading=None,
            )
            page.blocks.append(block)
        return page


@dataclass(slots=True)
class SplicedPage:
    """The text of a file with the files that it shows, its blocks, its headings and its origins.

    Attributes:
        own: Text of the file itself.
        numbers: Numbers for containers, which are unique within the page.
        origins: The origins of the lines, beginning with the first line of the file.
        length: Number of characters so far.
        lines: Number of line ends so far.
        taken: Number of characters that were taken from the file.
        taken_lines: Number of line ends that were taken from the file.
    """

    own: str
    numbers: Iterator[int]
    origins: list[LineOrigin]
    blocks: list[Block] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    length: int = 0
    lines: int = 0
    taken: int = 0
    taken_lines: int = 0
    _pieces: list[str] = field(default_factory=list)
    _own_numbers: dict[int, int] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add_part(self, after: Block, part: SplicedPage) -> None:
        """Add another file after a block of this file."""
        self.add_text(self.own[self.taken : after.end])
        self.taken, self.taken_lines = after.end, after.end_line - 1
        around = tuple(
            one._replace(number=self._own_numbers[one.number]) for one in after.containers
        )
        self.add_text("\n")
        first = self.lines
        self.add_text("\n")
        shift, numbers = (self.length, self.lines), dict[int, int]()
        for block in part.blocks:
            self.add_block(block, part.headings, shift, around, numbers)
        for origin in part.origins:
            # The empty line before the file counts as its line 0.
            start = origin.start + self.lines if origin.start > 1 else first + 1
            line = origin.file_line if origin.start > 1 else 0
            own = replace(origin, start=start, file_line=line, page_line=after.end_line)
            self.origins.append(own)
        self.add_text(part.source + "\n")
        self.origins.append(LineOrigin(self.lines + 1, self.origins[0].path, after.end_line))

    def add_block(
        self,
        block: Block,
        headings: Sequence[Heading],
        shift: tuple[int, int],
        around: tuple[Container, ...] = (),
        numbers: dict[int, int] | None = None,
    ) -> None:
        """Add a block of this file, or of another file.

        Args:
            block: The block.
            headings: The headings of the block's file.
            shift: Number of characters and lines by which the block moves.
            around: The containers of this file around a block of another file.
            numbers: The numbers of the containers of another file, which are added to them.
        """
        chars, lines = shift
        numbers = self._own_numbers if numbers is None else numbers
        for container in block.containers:
            if container.number not in numbers:
                numbers[container.number] = next(self.numbers)
        inner = tuple(one._replace(number=numbers[one.number]) for one in block.containers)
        place = None
        if block.heading is not None:
            place = len(self.headings)
            heading = headings[block.heading]
            self.headings.append(replace(heading, line=heading.line + lines))
        self.blocks.append(
            replace(
                block,
                start_line=block.start_line + lines,
                end_line=block.end_line + lines,
                start=block.start + chars,
                end=block.end + chars,
                runs=tuple((start + chars, end + chars, at) for start, end, at in block.runs),
                holds=tuple((start + chars, end + chars) for start, end in block.holds),
                containers=(*around, *inner),
                heading=place,
                images=tuple(replace(image, line=image.line + lines) for image in block.images),
            )
        )

    def add_text(self, text: str) -> None:
        """Add a text."""
        self._pieces.append(text)
        self.length += len(text)
        self.lines += text.count("\n")
