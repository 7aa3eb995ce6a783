"""Parse one Markdown file into a document: metadata, headings and cleaned blocks of text.

Module, chapter and content type come from the front matter, or else from the file's path.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import yaml
from yaml.constructor import SafeConstructor

from rag_pipeline.core.errors import DocumentError, DocumentReadError
from rag_pipeline.core.models import ContentType, DocFailure, Document, ParsedDoc, Stage
from rag_pipeline.core.site.addresses import build_doc_permalink, locate_source, name_post
from rag_pipeline.core.site.docusaurus import base_id
from rag_pipeline.core.site.files import find_page_root
from rag_pipeline.core.sources import SourceKind, find_edition, find_place
from rag_pipeline.core.text.sentences import find_page_line
from rag_pipeline.ingestion.cards import UNREAD_FIELD
from rag_pipeline.ingestion.markdown.openapi import unpack_operation, write_operation, write_spec
from rag_pipeline.ingestion.markdown.page import PageContent, read_content
from rag_pipeline.ingestion.markdown.scope import CARD_LIST, Use
from rag_pipeline.ingestion.markdown.source import (
    is_mdx,
    normalize_source,
    read_doc,
    read_front_matter,
)
from rag_pipeline.ingestion.site.manifest import MANIFEST_FILE, read_page, take_addresses
from rag_pipeline.ingestion.splicing import (
    Splicer,
    find_site_dir,
    is_spec,
    locate_page,
    place_images,
    read_doc_imports,
    settle_images,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rag_pipeline.core.models import DiscoveredDoc, Heading, SiteSettings
    from rag_pipeline.ingestion.markdown.source import FrontMatter
    from rag_pipeline.ingestion.splicing import ImportedFiles

_PACKED: Final = re.compile(r"[A-Za-z0-9+/]{16,}=*$|\{")
_IMPORTS: Final = re.compile(r"\s*(?:import\s(?:.|\n(?!\n))*\n{2,}\s*)*")
_TITLE: Final = re.compile(r"#[ \t]+[^ \t\n].*|.*\n=+(?:\n|$)")
_MOST_NAMED: Final = 5  # missing images of one page
_MODULE_FOLDER: Final = re.compile(r"(?:\d+[-_. ]+)?module[-_. ]*\d+\b.*", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z]+")
_AND: Final = re.compile(r"(?<![a-z])and(?![a-z])|&")
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


def parse_doc(
    doc: DiscoveredDoc,
    site: SiteSettings,
    source: bytes | None = None,
    imported: ImportedFiles | None = None,
) -> ParsedDoc:
    """Parse a Markdown file, with the files that it shows, into metadata, headings and blocks.

    Args:
        doc: The file as the scan of the docs folder found it.
        site: Settings of the built site: page addresses, and the syntax of `.md` files. The
            document's source may have another route and base URL.
        source: The bytes of the file. If None, the file is read.
        imported: The content of the files that the document imports. If None, they are read.

    Returns:
        The document. Each line of its source that is not blank is in exactly one block.

    Raises:
        DocumentReadError: The file cannot be read.
        FrontMatterError: The front matter is not valid YAML or has a value of a wrong type.
    """
    if source is None:
        source = read_doc(doc)
    if imported is None:
        imported = read_doc_imports(doc, source)
    text = normalize_source(source)
    spec = None
    if is_spec(doc.doc_id):
        spec = write_spec(text, _locate(doc), imported)
        if spec is None:
            problem = "it is not an OpenAPI document in JSON or YAML. Correct or remove its source"
            raise DocumentReadError(doc.doc_id, problem)
        text = spec.text
    front_matter = read_front_matter(doc.doc_id, text)
    is_written = spec is not None or bool(doc.written)
    mdx = not is_written and is_mdx(doc.doc_id, front_matter, site)
    content = read_content(
        text,
        front_matter.end,
        _read_values(text, front_matter),
        mdx=mdx,
        drops_title=_find_kind(doc) is SourceKind.BLOG,
        component_text=site.component_text,
    )
    if is_written and spec is None:  # a card of a generated index may name a component
        content = replace(content, uses=())
        content.scope.unread_tags = [CARD_LIST] if front_matter.flag(UNREAD_FIELD) else []
    content, problems = _add_operation(doc, front_matter, content)
    if spec is not None:
        headings = (replace(one, anchor=spec.anchors.get(one.line)) for one in content.headings)
        content = replace(content, headings=tuple(headings))
        problems += [f"{doc.doc_id}: {problem}" for problem in spec.problems]
    title = find_title(text, front_matter.end, content.headings)
    document = _build_document(doc, site, front_matter, content.headings, title)
    splicer = Splicer(doc.doc_id, imported, site, warnings=problems)
    if content.uses:
        page = splicer.splice(text, content, (_locate(doc),))
        own = (
            replace(heading, line=find_page_line(page.origins, heading.line))
            for heading in page.headings
        )
        document = replace(document, headings=tuple(own))
        parsed = ParsedDoc(
            document, page.source, tuple(page.blocks), tuple(page.origins), splicer.notes
        )
    else:
        splicer.note(content)
        parsed = ParsedDoc(document, text, content.blocks, notes=splicer.notes)
    return _take_built_page(_find_images(parsed, doc, site), imported)


def parse_docs(
    docs: Iterable[DiscoveredDoc], site: SiteSettings, failures: list[DocFailure]
) -> Iterator[ParsedDoc]:
    """Yield the documents that can be parsed, and add the others to `failures`."""
    for doc in docs:
        try:
            yield parse_doc(doc, site)
        except DocumentError as error:
            failures.append(DocFailure(doc.doc_id, Stage.PARSED.value, error.code, str(error)))


def _find_images(parsed: ParsedDoc, doc: DiscoveredDoc, site: SiteSettings) -> ParsedDoc:
    """Return a document whose images have their addresses, with a warning about missing ones."""
    if not any(block.images for block in parsed.blocks):
        return parsed
    place = find_place(doc.source, doc.doc_id)
    site_dir, root = find_site_dir(place, doc.path), find_page_root(place, doc.path)
    blocks = place_images(parsed.blocks, locate_page(doc.path, site_dir))
    base_url = locate_source(site, doc.source).base_url
    settled, missing = settle_images(blocks, base_url, site_dir, root)
    notes = parsed.notes
    if missing:
        names = ", ".join(missing[:_MOST_NAMED]) + (", ..." if missing[_MOST_NAMED:] else "")
        count = "1 image is" if len(missing) == 1 else f"{len(missing)} images are"
        warning = f"{doc.doc_id}: {count} missing ({names}). Add the file, or correct the path"
        notes = replace(notes, warnings=(*notes.warnings, warning))
    return replace(parsed, blocks=settled, notes=notes)


def _locate(doc: DiscoveredDoc) -> str:
    """Return the path of a document below the site's folder."""
    return locate_page(doc.path, find_site_dir(find_place(doc.source, doc.doc_id), doc.path))


def _has_operation(front_matter: FrontMatter) -> bool:
    """Return True if the field `api` contains an operation of OpenAPI, readable or not."""
    node = front_matter.nodes.get("api")
    is_packed = isinstance(node, yaml.ScalarNode) and _PACKED.match(node.value) is not None
    return is_packed or isinstance(node, yaml.MappingNode)


def _add_operation(
    doc: DiscoveredDoc, front_matter: FrontMatter, content: PageContent
) -> tuple[PageContent, list[str]]:
    """Add the operation in the field `api` to a page, unless the page's components show it.

    The page of a schema gets the example in the field `sample`, which `<Schema>` shows too.

    Returns:
        The content, and a warning if the operation cannot be read.
    """
    sample = front_matter.nodes.get("sample")
    if sample is not None and any(use.component == "Schema" for _, use in content.uses):
        shown = json.dumps(SafeConstructor().construct_document(sample), indent=2, default=str)
        return _append(content, f"```json\n{shown}\n```"), []
    if not _has_operation(front_matter):
        return content, []
    node = front_matter.nodes["api"]
    if isinstance(node, yaml.ScalarNode):
        operation = unpack_operation(node.value)
    else:
        operation = SafeConstructor().construct_document(node)
    text = write_operation(operation or {})
    is_shown = any(use.component for _, use in content.uses)
    if operation is None or not (text or is_shown):
        problem = "the operation in the field `api` is damaged or too large, so it is left out"
        return content, [f"{doc.doc_id}: {problem}. Generate the page again"]
    return (content if is_shown else _append(content, text)), []


def _append(content: PageContent, text: str) -> PageContent:
    """Return a page with a part of its API after its last block."""
    use = Use("", component="api", text=text)
    return replace(content, uses=(*content.uses, (len(content.blocks) - 1, use)))


def _take_built_page(parsed: ParsedDoc, imported: ImportedFiles) -> ParsedDoc:
    """Return a document with the addresses of the manifest, if the manifest has it."""
    entry = imported.get(MANIFEST_FILE)
    if not entry:
        return parsed
    document, differences = take_addresses(parsed.document, read_page(entry))
    notes = replace(parsed.notes, warnings=parsed.notes.warnings + differences)
    return replace(parsed, document=document, notes=notes)


def _read_values(source: str, front_matter: FrontMatter) -> dict[str, str]:
    """Return the values of expressions such as `{frontMatter.title}`."""
    if "frontMatter." not in source:
        return {}
    return {
        f"frontMatter.{name}": front_matter.text(name)
        for name, node in front_matter.nodes.items()
        if isinstance(node.value, str)
    }


def _build_document(
    doc: DiscoveredDoc,
    site: SiteSettings,
    front_matter: FrontMatter,
    headings: tuple[Heading, ...],
    written_title: str,
) -> Document:
    place, kind = find_place(doc.source, doc.doc_id), _find_kind(doc)
    own_id = front_matter.text("id")
    strip_numbers = front_matter.flag("parse_number_prefixes", default=True)
    strip_numbers = strip_numbers and (doc.source is None or doc.source.number_prefixes)
    url = build_doc_permalink(
        doc.doc_id,
        site,
        doc.source,
        front_matter_id=own_id,
        slug=front_matter.text("slug"),
        strip_numbers=strip_numbers,
    )
    file_title = base_id(place, own_id, strip_numbers=strip_numbers)
    if kind is SourceKind.BLOG:
        file_title = name_post(place)
    # Folders of posts and pages are not modules of a book.
    parts = place if kind is SourceKind.DOCS else place.rsplit("/", 1)[-1]
    # The module is the first folder with a name like `module-1`, or else the first folder.
    folders = parts.split("/")[:-1]
    at = next((i for i, name in enumerate(folders) if _MODULE_FOLDER.fullmatch(name)), 0)
    module, chapter = (*folders[at : at + 2], "", "")[:2]
    return Document(
        doc_path=doc.doc_id,
        title=front_matter.text("title") or written_title or file_title,
        description=front_matter.text("description"),
        tags=front_matter.texts("tags", split=True),
        learning_objectives=front_matter.texts("learning-objectives", "learning_objectives"),
        sidebar_label=front_matter.text("sidebar_label"),
        sidebar_position=front_matter.number("sidebar_position"),
        content_type=find_content_type(place, front_matter),
        module=front_matter.text("module") or module,
        chapter=front_matter.text("chapter") or chapter,
        url=url,
        headings=headings,
        edition=find_edition(doc.source, doc.doc_id),
    )


def find_title(source: str, body_start: int, headings: Iterable[Heading]) -> str:
    """Return the heading of level 1 with which the text of a page begins; empty if there is none.

    Only imports may stand above it. A page that begins otherwise, such as with a picture or with
    HTML, is shown with the name of its file as title.

    Args:
        source: The whole file, as `normalize_source` returns it.
        body_start: Offset of the first character after the front matter.
        headings: The headings of the page.

    Source:
        markdownUtils.js of @docusaurus/utils 3.10.
    """
    imports = _IMPORTS.match(source, body_start)
    at = imports.end() if imports else body_start
    if not _TITLE.match(source, at):
        return ""
    line = source.count("\n", 0, at) + 1
    return next((item.text for item in headings if (item.level, item.line) == (1, line)), "")


def _find_kind(doc: DiscoveredDoc) -> SourceKind:
    return doc.source.kind if doc.source else SourceKind.DOCS


def find_content_type(doc_path: str, front_matter: FrontMatter) -> ContentType:
    """Return the content type of a document: lab, quiz, assessment, API, or else prose.

    `content_type` in the front matter takes precedence if it names a type. Next, a document below a
    folder with the word "capstone" in its name is an assessment. Otherwise the words of the file
    name decide, then those of the folders, innermost first. If a name has words of several types,
    the last one counts: `lab-quiz` is a quiz. A folder of several subjects, such as
    `project-and-assessment`, decides only if each of them is a type.
    """
    given = front_matter.text("content_type").lower()
    if given in set(ContentType):
        kind = ContentType(given)  # the types `code` and `table` describe single chunks
        return kind if kind in _WORDS else ContentType.PROSE
    named = _type_of_name(given)
    if named is not None:
        return named
    *folders, name = doc_path.lower().split("/")
    if _has_operation(front_matter) or is_spec(name):
        return ContentType.API
    if any("capstone" in _WORD.findall(folder) for folder in folders):
        return ContentType.ASSESSMENT
    found = [_type_of_name(name.rsplit(".", 1)[0])]
    for folder in reversed(folders):
        subjects = [_type_of_name(subject) for subject in _AND.split(folder)]
        found.append(subjects[-1] if all(subjects) else None)
    return next((kind for kind in found if kind is not None), ContentType.PROSE)


def _type_of_name(name: str) -> ContentType | None:
    """Return the type that the last matching word of a name stands for; None if no word matches."""
    words = _WORD.findall(_HANDS_ON.sub("handson", name.lower()))
    kinds = [_TYPE_OF_WORD[word] for word in words if word in _TYPE_OF_WORD]
    return kinds[-1] if kinds else None
