"""The words of everyday English, taken from the vocabularies of two tokenizers."""

from __future__ import annotations

import re
from binascii import a2b_base64
from functools import lru_cache
from importlib.resources import files
from typing import Final

from rag_pipeline.core.text.terms import VOCABULARY

_WORD_PIECE: Final = re.compile(r'"([a-z]+)": ?\d')
_BPE_TOKEN: Final = re.compile(rb"^(I\S+) ", re.MULTILINE)  # in base64, a blank begins with I

_SLIPS: Final = frozenset({"nto", "teh"})  # misspelled so often that they are tokens


@lru_cache(maxsize=1)
def load_everyday_words() -> frozenset[str]:
    """Return about 35,000 frequent English words and names in lower case, read once per process.

    They are the whole words in the vocabularies of the local embedding model and of cl100k_base,
    which are files of this package. No model is loaded, so the words are available with each
    embedding provider.
    """
    data = files("rag_pipeline") / "data"
    pieces = (data / "minilm" / "tokenizer.json").read_text(encoding="utf-8")
    tokens = VOCABULARY.read_bytes()
    spelled = (a2b_base64(token)[1:] for token in _BPE_TOKEN.findall(tokens))
    words = (word.decode().lower() for word in spelled if word.isalpha())
    return frozenset((*_WORD_PIECE.findall(pieces), *words)) - _SLIPS
