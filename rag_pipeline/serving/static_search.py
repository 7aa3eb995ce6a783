"""The index of the static mode, with which the panel searches in the browser without a service.

The file contains the numbers of the collection and the constants of ranking and grounding, so that
the panel repeats the rules of the library and owns none of them. The file is gzip over the length
of a JSON object (4 bytes, little-endian), the object, and the arrays that the object names.
"""

from __future__ import annotations

import gzip
import json
import math
import re
from dataclasses import asdict
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from rag_pipeline.adapters.embedders.bm25 import Bm25Encoder
from rag_pipeline.adapters.embedders.local import find_browser_files, read_word_pieces
from rag_pipeline.adapters.local_files import write_bytes_atomically
from rag_pipeline.answering import confidence, grounding
from rag_pipeline.answering.models import Source
from rag_pipeline.answering.quoting.passages import MOST_FIGURES, hide_solutions, list_shown
from rag_pipeline.answering.reading import small_talk
from rag_pipeline.answering.voice import read_voice
from rag_pipeline.core.errors import CollectionMissingError, ConfigurationError
from rag_pipeline.core.payload import ChunkMetadata, read_metadata, read_text
from rag_pipeline.core.protocols import PointFilter, StoredPoint
from rag_pipeline.core.text import form_words
from rag_pipeline.core.text.sentences import split_sentences
from rag_pipeline.core.text.terms import STOP_WORDS, extract_terms
from rag_pipeline.retrieval import candidates, choosing, evidence, open_retriever, ranking, search
from rag_pipeline.retrieval.models import Citation, name_edition, name_section
from rag_pipeline.retrieval.open_index import EDITION_FIELDS, OpenIndex, choose_abbreviations
from rag_pipeline.retrieval.queries import DEFAULT_TOP_K

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from rag_pipeline.core.ids import PointId
    from rag_pipeline.core.models import JsonValue
    from rag_pipeline.core.settings import Settings
    from rag_pipeline.retrieval.ranking import Place
    from rag_pipeline.retrieval.retriever import RetrieverOptions

FORMAT: Final = 3
"""The version of the file's layout. The panel refuses an index of another version."""

FOLDER: Final = "robotutor-search"
INDEX_FILE: Final = "index.bin"
GRAPH_FILE: Final = "graph.onnx"
MODEL_FILE: Final = "model.onnx"
MANIFEST_FILE: Final = "manifest.json"

_MAX_WEIGHT: Final = 2.2  # the highest BM25 weight of a term, k + 1
_DAMPING: Final = 0.01  # share of the mean variance, so that the inverse exists


class Export(NamedTuple):
    """The written files of the static mode.

    Attributes:
        folder: The folder of the files.
        passages: Number of passages in the index.
        index_bytes: Size of the index.
        model_bytes: Size of the embedding model's weights, which a browser loads once.
    """

    folder: Path
    passages: int
    index_bytes: int
    model_bytes: int


def export_search(settings: Settings, build_dir: Path) -> Export:
    """Write the index, the embedding model and a manifest into a built site.

    The index has the pages that readers get by default: the latest version and the default
    language.

    Args:
        settings: The settings of the book, which must be indexed with a local model.
        build_dir: The folder of the built site.

    Raises:
        ConfigurationError: The folder contains no built site, or the book is indexed with a model
            that does not run in a browser.
        StoreError: The collection is missing or cannot be read.
    """
    if not (build_dir / "index.html").is_file():
        problem = f"{build_dir} contains no built site"
        raise ConfigurationError("export-search", problem, "Build the site first: npm run build")
    with open_retriever(settings) as retriever, retriever.session.use() as store:
        model = store.space.model
        files = find_browser_files(model)
        if files is None:
            problem = f"the index was built with {model.provider}/{model.model}"
            remedy = "A browser runs only the local model: unset the key and ingest with --rebuild"
            raise ConfigurationError("EMBEDDING_PROVIDER", problem, remedy)
        marks = store.describe().late_fields.intersection(EDITION_FIELDS.values())
        where = PointFilter(without=tuple(sorted(marks)))
        points = store.scroll(where, with_vectors=True)
        if not points:
            raise CollectionMissingError(store.collection_id, "the vector store")
        encoder = Bm25Encoder()
        opened = OpenIndex(store, encoder, lasting=True)
        _, places = opened.search_and_place([], [one.point_id for one in points])
        described = _describe(
            points, places, hides_solutions=not settings.assistant_tells_solutions
        )
        head: dict[str, Any] = {
            "format": FORMAT,
            "index_id": store.collection_id,
            "model": model.fingerprint,
            "rules": collect_rules(model.fingerprint, retriever.options),
            "replies": {kind: read_voice(settings).say(kind) for kind in small_talk.KINDS},
            "abbreviations": _list_abbreviations(points),
            **described,
        }
        vocabulary = sorted(set(chain.from_iterable(_list_terms(points, places))))
        ids = {vector.indices[0]: at for at, vector in enumerate(encoder.encode_terms(vocabulary))}
        arrays = _collect_arrays(points, places, vocabulary, ids)
        head["terms"] = vocabulary
        head["word_pieces"] = read_word_pieces()
    content = pack(head, arrays)
    folder = build_dir / FOLDER
    folder.mkdir(exist_ok=True)
    graph, weights = (file.read_bytes() for file in files)
    manifest = {
        "format": FORMAT,
        "index": INDEX_FILE,
        "index_id": head["index_id"],
        "index_bytes": len(content),
        "graph": GRAPH_FILE,
        "model": MODEL_FILE,
        "model_bytes": len(weights),
    }
    write_bytes_atomically(folder / INDEX_FILE, content)
    write_bytes_atomically(folder / GRAPH_FILE, graph)
    write_bytes_atomically(folder / MODEL_FILE, weights)
    write_bytes_atomically(folder / MANIFEST_FILE, json.dumps(manifest).encode())
    return Export(folder, len(points), len(content), len(weights))


def pack(head: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> bytes:
    """Return the content of an index file: the head with the places of the arrays, and the arrays.

    Each array begins at a multiple of 8 bytes after the head.
    """
    blocks: list[bytes] = []
    table: dict[str, Any] = {}
    offset = 0
    for name, array in arrays.items():
        content = array.astype(array.dtype.newbyteorder("<")).tobytes()
        table[name] = [array.dtype.name, offset, int(array.size)]
        padding = -len(content) % 8
        blocks.append(content + bytes(padding))
        offset += len(content) + padding
    text = json.dumps({**head, "arrays": table}, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-(4 + len(text)) % 8)
    whole = b"".join((len(text).to_bytes(4, "little"), text, *blocks))
    return gzip.compress(whole, 9, mtime=0)


def quantize(
    rows: NDArray[np.float32], kind: type[np.signedinteger[Any]] = np.int8
) -> tuple[NDArray[np.signedinteger[Any]], NDArray[np.float32]]:
    """Return vectors as whole numbers of 8 or 16 bits, and the length of a step of each vector."""
    steps = np.abs(rows).max(axis=1, keepdims=True) / np.iinfo(kind).max
    steps[steps == 0] = 1
    return np.rint(rows / steps).astype(kind), steps[:, 0].astype(np.float32)


def quantize_alike(rows: NDArray[np.float32]) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Return vectors as whole numbers of 8 bits, rounded so that their scores change least.

    The components are rounded one after the other. The error of each is spread over the components
    after it that correlate with it, because the vectors of questions lie in the same directions as
    these vectors. Scores are a third closer to those of the vectors than with `quantize`.

    Source:
        Frantar et al., GPTQ, 2022, with the covariance of the vectors in place of the activations'.
    """
    steps = quantize(rows)[1]
    covariance = rows.T.astype(np.float64) @ rows / len(rows)
    variances = np.diag(covariance)
    damped = covariance + max(_DAMPING * variances.mean(), 1e-12) * np.eye(len(variances))
    order = np.argsort(-variances)
    inverse = np.linalg.inv(damped[np.ix_(order, order)])
    spread = np.linalg.cholesky(inverse).T.astype(np.float32)
    rest = rows[:, order] / steps[:, np.newaxis]
    whole = np.empty_like(rows, dtype=np.int8)
    for at, column in enumerate(order):
        rounded = np.rint(rest[:, at]).clip(-127, 127)
        whole[:, column] = rounded
        error = (rest[:, at] - rounded) / spread[at, at]
        rest[:, at + 1 :] -= np.outer(error, spread[at, at + 1 :])
    return whole, steps


def _collect_arrays(
    points: Sequence[StoredPoint],
    places: dict[PointId, Place],
    vocabulary: Sequence[str],
    ids: dict[int, int],
) -> dict[str, NDArray[Any]]:
    vectors = [one.vectors for one in points if one.vectors is not None]
    dense, dense_steps = quantize(np.stack([one.dense for one in vectors]), np.int16)
    windows, window_steps = quantize_alike(np.concatenate([one.windows for one in vectors]))
    postings: list[list[tuple[int, float]]] = [[] for _ in vocabulary]
    for at, point in enumerate(points):
        sparse = point.sparse
        for term_id, weight in zip(sparse.indices, sparse.values, strict=True) if sparse else ():
            if term_id in ids:  # the others are the marks of abbreviations
                postings[ids[term_id]].append((at, weight))
    count = len(points)
    frequencies = [len(own) for own in postings]
    entries = list(chain.from_iterable(postings))
    rank = {term: at for at, term in enumerate(vocabulary)}
    found = [places[point.point_id] for point in points]
    return {
        "dense": dense,
        "dense_steps": dense_steps,
        "windows": windows,
        "window_steps": window_steps,
        "window_ends": np.cumsum([len(one.windows) for one in vectors]).astype(np.uint32),
        "idf": np.array(
            [math.log((count - n + 0.5) / (n + 0.5) + 1) for n in frequencies], dtype=np.float32
        ),
        "posting_ends": np.cumsum(frequencies).astype(np.uint32),
        "posting_passages": np.array([at for at, _ in entries], dtype=np.uint32),
        "posting_weights": np.array(
            [round(weight / _MAX_WEIGHT * 65535) for _, weight in entries], dtype=np.uint16
        ),
        **_list_sets("path", [one.path_terms for one in found], rank),
        **_list_sets("heading", [one.heading_terms for one in found], rank),
    }


def _list_sets(
    name: str, sets: Sequence[frozenset[str]], rank: dict[str, int]
) -> dict[str, NDArray[Any]]:
    return {
        f"{name}_terms": np.array(
            [rank[term] for own in sets for term in sorted(own)], dtype=np.uint32
        ),
        f"{name}_ends": np.cumsum([len(own) for own in sets]).astype(np.uint32),
    }


def _list_terms(
    points: Sequence[StoredPoint], places: dict[PointId, Place]
) -> Iterable[Iterable[str]]:
    for point in points:
        metadata = read_metadata(point.payload)
        texts = (metadata.title, *metadata.heading_breadcrumb, read_text(point.payload))
        place = places[point.point_id]
        yield chain(extract_terms(" ".join(texts)), place.path_terms, place.heading_terms)


def _list_abbreviations(points: Sequence[StoredPoint]) -> dict[str, list[list[Any]]]:
    """Return the abbreviations that the book spells out, once by short and once by long form."""
    by_short, by_long = choose_abbreviations(
        (read_metadata(point.payload), read_text(point.payload)) for point in points
    )
    return {
        name: [[one.long, one.short_term, one.long_terms] for one in chosen.values()]
        for name, chosen in (("by_short", by_short), ("by_long", by_long))
    }


def _describe(
    points: Sequence[StoredPoint], places: dict[PointId, Place], *, hides_solutions: bool
) -> dict[str, Any]:
    """Return the passages, and the pages, sections and hashes that they name by number."""
    keys: dict[str, dict[str, int]] = {"page": {}, "section": {}, "hash": {}}

    def number(kind: str, key: str) -> int:
        return keys[kind].setdefault(key, len(keys[kind]))

    passages: list[dict[str, Any]] = []
    for point in points:
        metadata = read_metadata(point.payload)
        source = Source(
            1,
            "",
            read_text(point.payload),
            Citation("", "", metadata.url, "", ""),
            metadata.blocks,
            content_type=metadata.content_type,
            figures=metadata.figures,
        )
        if hides_solutions:
            source = hide_solutions(source)
        text, blocks = source.text, source.blocks
        spans = _count_units(text, [(one.start, one.end) for one in blocks])
        figures = [asdict(one) for one in islice(list_shown(source), MOST_FIGURES)]
        place = places[point.point_id]
        passages.append(
            {
                **_cite(metadata),
                **({"figures": figures} if figures else {}),
                "text": text,
                "page": number("page", place.page),
                "section_key": number("section", place.section),
                "hash": number("hash", place.content_hash),
                "chunk_index": place.chunk_index,
                "words": place.word_count,
                "bare": place.bare_heading,
                **({"is_post": True} if place.is_post else {}),
                "sentences": _count_units(text, split_sentences(text)),
                "blocks": [
                    [block.kind.value, *span] for block, span in zip(blocks, spans, strict=True)
                ],
            }
        )
    return {"passages": passages, "page_keys": list(keys["page"])}


def _cite(metadata: ChunkMetadata) -> dict[str, JsonValue]:
    version, locale = name_edition(metadata)
    return {
        "chunk_id": metadata.chunk_id,
        "doc_path": metadata.doc_path,
        "title": metadata.title,
        "section": name_section(metadata),
        "level": metadata.heading_level,
        "anchor": metadata.anchor or "",
        "url": metadata.url,
        "module": metadata.module,
        "chapter": metadata.chapter,
        "content_type": metadata.content_type,
        "lines": [metadata.start_line, metadata.end_line],
        **({"version": version} if version else {}),
        **({"locale": locale} if locale else {}),
        **({"tabs": [*metadata.tabs]} if metadata.tabs else {}),
    }


def _count_units(text: str, spans: Iterable[tuple[int, int]]) -> list[list[int]]:
    """Return spans of characters as spans of UTF-16 units, in which browsers count."""
    if text.isascii() or max(text, default="") < "\U00010000":
        return [[start, end] for start, end in spans]
    before = np.cumsum([0, *(1 + (char >= "\U00010000") for char in text)]).tolist()
    return [[before[start], before[end]] for start, end in spans]


def collect_rules(model: str, options: RetrieverOptions) -> dict[str, Any]:
    """Return the constants of splitting, ranking and grounding, as the panel names them."""
    return {
        "depth": candidates.DEPTH,
        "near_share": candidates.NEAR_SHARE,
        "statistics_depth": ranking.STATISTICS_DEPTH,
        "full_cover": ranking.FULL_COVER,
        "document_depth": ranking.DOCUMENT_DEPTH,
        "path": ranking.PATH,
        "heading": ranking.HEADING,
        "length": ranking.LENGTH,
        "post": ranking.POST,
        "weights": asdict(options.weights),
        "dedup_threshold": options.dedup_threshold,
        "uncrowded": choosing.UNCROWDED,
        "crowding": choosing.CROWDING,
        "part_depth": choosing.PART_DEPTH,
        "first_place": choosing.FIRST_PLACE,
        "top_k": DEFAULT_TOP_K,
        "max_terms": search.MAX_TERMS,
        "evidence_depth": evidence.EVIDENCE_DEPTH,
        "stop_words": sorted(STOP_WORDS),
        "max_parts": search.MAX_PARTS,
        "clause_terms": search.CLAUSE_TERMS,
        "pair_terms": search.PAIR_TERMS,
        "max_compound_chars": search.MAX_CHARS,
        "sentence": _show_pattern(search.SENTENCE),
        "asks": _show_pattern(search.ASKS),
        "clause": _show_pattern(search.CLAUSE),
        "pairs": [_show_pattern(pair) for pair in search.PAIRS],
        "grounding": asdict(confidence.choose_rule(model)),
        "weakest": confidence.WEAKEST,
        "answered_from": confidence.ANSWERED_FROM,
        "covered_from": confidence.COVERED_FROM,
        "unanswered": confidence.UNANSWERED,
        "related_from": confidence.RELATED_FROM,
        "related_sections": grounding.RELATED_SECTIONS,
        "covers": grounding.COVERS,
        "exact": _show_pattern(grounding.EXACT),
        "forms": [_show_pattern(form) for form in form_words.FORMS],
        "counted_forms": [_show_pattern(form) for form in form_words.COUNTED_FORMS],
        "form_share": form_words.FORM_SHARE,
        "asked_facts": [
            [_show_pattern(fact.question), _show_pattern(fact.answer)]
            for fact in confidence.ASKED_FACTS
            if fact.is_needed
        ],
        "qualified": _show_pattern(confidence.QUALIFIED),
        "plural": _show_pattern(confidence.PLURAL),
        "max_qualified": confidence.MAX_QUALIFIED,
        "small_talk": _show_pattern(small_talk.PHRASE),
        "smiley": _show_pattern(small_talk.SMILEY),
        "code_signs": _show_pattern(small_talk.CODE_SIGNS),
        "max_talk_words": small_talk.MAX_WORDS,
    }


def _show_pattern(pattern: re.Pattern[str]) -> list[str]:
    """Return a pattern and its flags as JavaScript writes them."""
    flags = "i" if pattern.flags & re.IGNORECASE else ""
    return [pattern.pattern.replace("(?P<", "(?<"), flags]
