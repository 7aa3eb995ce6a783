"""Module, chapter and content type of a document: front matter first, then words of its path."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from rag_pipeline.core.models import ContentType

if TYPE_CHECKING:
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
