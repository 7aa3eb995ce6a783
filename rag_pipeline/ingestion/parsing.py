"""One Markdown file as a document: front matter, place in the course, headings and cleaned blocks.

Module, chapter and content type come from the front matter, else from words of the path.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.docusaurus import base_id, build_permalink
from rag_pipeline.core.errors import DocumentReadError
from rag_pipeline.core.models import ContentType, Document, MarkdownFormat, ParsedDoc
from rag_pipeline.ingestion.markdown.front_matter import read_front_matter
from rag_pipeline.ingestion.markdown.page import read_page
from rag_pipeline.ingestion.markdown.source import normalize_source

if TYPE_CHECKING:
    from rag_pipeline.core.models import DiscoveredDoc, Heading, SiteSettings
    from rag_pipeline.ingestion.markdown.front_matter import FrontMatter

_MODULE_FOLDER: Final = re.compile(r"(?:\d+[-_. ]+)?module[-_. ]*\d+\b.*", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z]+")
_HANDS_ON: Final = re.compile(r"hands[-_. ]on(?![a-z])")
_WORDS: Final = {
    ContentType.LAB: (
        "lab labs laboratory laboratories exercise exercises experiment experiments handson "
        "practical practicals practicum"
    ),
    ContentType.QUIZ: "quiz quizzes",
    ContentType.ASSESSMENT: (
        "assessment assessments exam exams examination examinations midterm midterms rubric "
        "rubrics assignment assignments homework capstone capstones"
    ),
}
_TYPE_OF_WORD: Final = {word: kind for kind, words in _WORDS.items() for word in words.split(" ")}


def parse_doc(doc: DiscoveredDoc, site: SiteSettings, source: bytes | None = None) -> ParsedDoc:
    """Parse a document.

    Args:
        doc: The file; it is read if `source` is not given.
        site: How the site forms its addresses, and the syntax of `.md` files.
        source: The file's bytes.

    Returns:
        Every line of the source that is not blank is in exactly one block.

    Raises:
        DocumentReadError: The file cannot be read.
        FrontMatterError: The front matter is broken; the message names the line.
    """
    if source is None:
        try:
            source = doc.path.read_bytes()
        except OSError as error:
            raise DocumentReadError(doc.doc_id, f"cannot be read ({error.strerror})") from error
    text = normalize_source(source)
    front_matter = read_front_matter(doc.doc_id, text)
    mdx = _is_mdx(doc.doc_id, front_matter, site)
    blocks, headings = read_page(text, front_matter.end, mdx=mdx)
    return ParsedDoc(_build_document(doc, site, front_matter, headings), text, blocks)


def _is_mdx(doc_id: str, front_matter: FrontMatter, site: SiteSettings) -> bool:
    """Apply the page's own `mdx: {format: ...}` first, then the site's."""
    given = front_matter.section("mdx").text("format")
    chosen = given if given in set(MarkdownFormat) else site.markdown_format.value
    if chosen == MarkdownFormat.DETECT:
        return posixpath.splitext(doc_id)[1] != ".md"
    return chosen == MarkdownFormat.MDX


def _build_document(
    doc: DiscoveredDoc,
    site: SiteSettings,
    front_matter: FrontMatter,
    headings: tuple[Heading, ...],
) -> Document:
    doc_path = doc.doc_id
    own_id = front_matter.text("id")
    strip_numbers = front_matter.flag("parse_number_prefixes", default=True)
    url = build_permalink(
        doc_path,
        site,
        front_matter_id=own_id,
        slug=front_matter.text("slug"),
        strip_numbers=strip_numbers,
    )
    first_h1 = next((item.text for item in headings if item.level == 1 and item.text), "")
    file_title = base_id(doc_path, own_id, strip_numbers=strip_numbers)
    module, chapter = find_place(doc_path, front_matter)
    return Document(
        doc_path=doc_path,
        title=front_matter.text("title") or first_h1 or file_title,
        description=front_matter.text("description"),
        tags=front_matter.texts("tags", split=True),
        learning_objectives=front_matter.texts("learning-objectives", "learning_objectives"),
        sidebar_label=front_matter.text("sidebar_label"),
        sidebar_position=front_matter.number("sidebar_position"),
        content_type=find_content_type(doc_path, front_matter),
        module=module,
        chapter=chapter,
        url=url,
        headings=headings,
    )


def find_place(doc_path: str, front_matter: FrontMatter) -> tuple[str, str]:
    """Return a document's module and chapter: the module folder and the folder in it, or empty.

    The module is the first folder named like `module-1`, else the first folder; both may be given
    by the front matter.
    """
    folders = doc_path.split("/")[:-1]
    at = next((i for i, name in enumerate(folders) if _MODULE_FOLDER.fullmatch(name)), 0)
    module, chapter = (*folders[at : at + 2], "", "")[:2]
    return front_matter.text("module") or module, front_matter.text("chapter") or chapter


def find_content_type(doc_path: str, front_matter: FrontMatter) -> ContentType:
    """Return lab, quiz or assessment, else prose.

    The front matter's `content_type` counts first, then the path from the file up: the last word
    that names a type decides (`lab-quiz` is a quiz). Everything below a capstone folder is
    assessment.
    """
    given = front_matter.text("content_type").lower()
    if given in set(ContentType):
        return _as_document_type(ContentType(given))
    named = _type_of_name(given)
    if named is not None:
        return named
    *folders, name = doc_path.lower().split("/")
    if any("capstone" in _WORD.findall(folder) for folder in folders):
        return ContentType.ASSESSMENT
    for part in (name.rsplit(".", 1)[0], *reversed(folders)):
        found = _type_of_name(part)
        if found is not None:
            return found
    return ContentType.PROSE


def _as_document_type(kind: ContentType) -> ContentType:
    return kind if kind in _WORDS else ContentType.PROSE


def _type_of_name(name: str) -> ContentType | None:
    words = _WORD.findall(_HANDS_ON.sub("handson", name.lower()))
    kinds = [_TYPE_OF_WORD[word] for word in words if word in _TYPE_OF_WORD]
    return kinds[-1] if kinds else None
