"""The version of what ingestion makes of the same Markdown.

Raise FORMAT_VERSION with any change of tokenizer, cleaner, chunker, embedding text or sparse terms:
collections built with another version are refused on open (decision 7) and rebuilt with
`rag-pipeline ingest --rebuild`. A test holds it against a recorded digest of the chunks of a fixed
corpus, so that a change of rules without a new version fails.
"""

from __future__ import annotations

from typing import Final

FORMAT_VERSION: Final = 3
