"""Train all-MiniLM-L6-v2 further on questions to textbooks, for whole chunks and windows alike.

Each step takes passages that are near each other and the questions to them. Both scores of
retrieval (cosine with the whole chunk, mean of each token's nearest window) have to find a
question's passage among all of them; and the mean of both has to lie over one bar, the same for all
questions, for that passage, and under it for all others, so that a book without the answer is told
by how near it comes. An hour on 2 cores. Then scripts/build_minilm.py writes the result as
rag_pipeline/data/minilm/textbook.onnx:

    make setup
    python3 -m venv build/minilm
    build/minilm/bin/pip install torch==2.13.0 transformers==5.23.0 tokenizers py_rust_stemmers
    build/minilm/bin/pip install onnx==1.23.2 onnxruntime==1.31.1 safetensors==0.8.0
    export PYTHONPATH=.
    build/minilm/bin/python scripts/train_minilm.py FOLDER build/textbook
    build/minilm/bin/python scripts/build_minilm.py --trained build/textbook textbook.onnx

FOLDER holds config.json, tokenizer.json and model.safetensors of all-MiniLM-L6-v2. The passages and
questions of scripts/training were written for this; none is of the textbook of this project, whose
golden set measures the result. Draws are seeded, but another machine may round otherwise: the
committed weights are those that were measured.
"""

from __future__ import annotations

import argparse
import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn.functional import cross_entropy, normalize, softplus
from transformers import BertModel

from rag_pipeline.ingestion.embedding import group_words

if TYPE_CHECKING:
    from collections.abc import Sequence

CORPORA: Final = Path(__file__).parent / "training"
SEED: Final = 0
BATCH: Final = 48  # passages a step, each with all its questions
GROUP: Final = 6  # of them near each other
ROUNDS: Final = 2.5  # times that each passage is seen
RATE: Final = 5e-5
WARM_UP: Final = 0.1  # of all steps
QUESTION_TOKENS: Final = 64
PASSAGE_TOKENS: Final = 160  # less than the model takes, for less time
WINDOW_WORDS: Final = 4
DENSE_SCALE: Final = 20.0  # cosines lie in -1 to 1; a softmax over them needs more
WINDOW_SCALE: Final = 35.0
BAR_SCALE: Final = 30.0
BAR: Final = 13.0  # where it begins, scaled; it is learned as the weights are
BAR_RATE: Final = 0.1
NEAR: Final = 40  # passages that a group is drawn from
SAME: Final = 0.95  # cosine over which a passage says the same as another
MASKED: Final = -1e4


@dataclass(frozen=True, slots=True)
class Passage:
    """A section as it is embedded, and questions that it answers."""

    text: str
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """Tokens of some texts: ids and mask, shape (texts, tokens); windows as shares of tokens."""

    ids: torch.Tensor
    mask: torch.Tensor
    windows: torch.Tensor | None = None


class Encoder:
    """The model being trained, with its tokenizer."""

    def __init__(self, folder: Path) -> None:
        self.model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
        for name, weight in self.model.named_parameters():
            weight.requires_grad = not name.startswith("embeddings")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()

    def prepare(self, texts: Sequence[str], limit: int, *, windows: bool = False) -> Batch:
        """Tokenize texts, and share their tokens out to windows."""
        self._tokenizer.enable_truncation(limit)
        encoded = [self._tokenizer.encode(text) for text in texts]
        width = max(len(each.ids) for each in encoded)
        ids = torch.zeros(len(texts), width, dtype=torch.long)
        mask = torch.zeros(len(texts), width)
        for row, each in enumerate(encoded):
            ids[row, : len(each.ids)] = torch.tensor(each.ids)
            mask[row, : len(each.ids)] = 1
        if not windows:
            return Batch(ids, mask)
        shares = [
            _share_tokens(text, each.offsets) for text, each in zip(texts, encoded, strict=True)
        ]
        padded = torch.zeros(len(texts), max(map(len, shares)), width)
        for row, own in enumerate(shares):
            padded[row, : len(own), : own.shape[1]] = torch.from_numpy(own)
        return Batch(ids, mask, padded)

    def embed(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Unit vectors of whole texts, and of their tokens."""
        hidden = self.model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
        mask = batch.mask[..., None]
        return normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1), normalize(hidden, dim=-1)


def read_passages(folder: Path) -> list[Passage]:
    """All passages, their headings before them as chunks have them."""
    entries = [
        json.loads(line)
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text("utf-8").splitlines()
    ]
    return [
        Passage(
            f"{entry['title']} > {entry['section']}\n\n## {entry['section']}\n\n{entry['text']}",
            tuple(entry["questions"]),
        )
        for entry in entries
    ]


def compare_passages(encoder: Encoder, passages: Sequence[Passage]) -> np.ndarray:
    """Cosines of all passages by the model as it is; one with itself counts as -1."""
    with torch.no_grad():
        batches = [
            encoder.prepare([each.text for each in passages[at : at + 16]], PASSAGE_TOKENS)
            for at in range(0, len(passages), 16)
        ]
        rows = torch.cat([encoder.embed(batch)[0] for batch in batches])
    cosines = (rows @ rows.T).numpy()
    np.fill_diagonal(cosines, -1.0)
    return cosines


class Sampler:
    """Draws batches of groups of near passages, each passage as often as any other."""

    def __init__(self, cosines: np.ndarray) -> None:
        self._cosines = cosines
        self._near = np.argsort(-cosines, axis=1)[:, :NEAR]
        self._seen = np.zeros(len(cosines), dtype=int)

    def draw(self) -> list[int]:
        """The next batch, without repeats."""
        batch: dict[int, None] = {}
        order = sorted(range(len(self._seen)), key=lambda at: (self._seen[at], random.random()))  # noqa: S311  # no secret
        for first in order:
            if len(batch) >= BATCH:
                break
            if first not in batch:
                group = [first, *self._draw_near(first, batch)]
                batch.update(dict.fromkeys(group[: BATCH - len(batch)]))
        self._seen[list(batch)] += 1
        return list(batch)

    def _draw_near(self, first: int, taken: dict[int, None]) -> list[int]:
        free = [
            int(at)
            for at in self._near[first]
            if at not in taken
            and self._cosines[first, at] <= SAME
            and self._seen[at] <= self._seen[first]
            and random.random() < 0.5  # noqa: S311  # no secret
        ]
        return free[: GROUP - 1]


def score_windows(
    question: Batch, question_tokens: torch.Tensor, passage: Batch, passage_tokens: torch.Tensor
) -> torch.Tensor:
    """Mean over a question's tokens of each one's cosine with a passage's nearest window."""
    assert passage.windows is not None  # noqa: S101  # of a script's own call
    windows = normalize(torch.bmm(passage.windows, passage_tokens), dim=-1)
    empty = passage.windows.sum(-1) == 0
    cosines = torch.einsum("qth,pwh->qptw", question_tokens, windows)
    nearest = cosines.masked_fill(empty[None, :, None, :], MASKED).amax(-1)
    written = question.mask.clone()
    written[:, 0] = 0  # special tokens stand at both ends
    written[torch.arange(len(written)), question.mask.sum(1).long() - 1] = 0
    return (nearest * written[:, None]).sum(-1) / written.sum(-1)[:, None]


def train(encoder: Encoder, passages: Sequence[Passage]) -> None:
    """Change the encoder's weights, its embeddings of words left as they are."""
    cosines = compare_passages(encoder, passages)
    sampler = Sampler(cosines)
    weights = [weight for weight in encoder.model.parameters() if weight.requires_grad]
    bar = torch.nn.Parameter(torch.tensor(BAR))
    optimizer = torch.optim.AdamW(
        [{"params": weights, "rate": RATE}, {"params": [bar], "rate": BAR_RATE}], weight_decay=0.01
    )
    steps = int(ROUNDS * len(passages) / BATCH)
    for step in range(steps):
        drawn = sampler.draw()
        for group in optimizer.param_groups:
            warm = min(1.0, (step + 1) / (WARM_UP * steps))
            group["lr"] = group["rate"] * warm * max(0.03, 1 - step / steps)
        same = torch.from_numpy((cosines[np.ix_(drawn, drawn)] > SAME) * MASKED).float()
        loss = _measure_loss(encoder, [passages[at] for at in drawn], same, bar)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(weights, 1.0)
        optimizer.step()
        if step % 10 == 9:
            at_bar = f"bar {bar.item() / BAR_SCALE:.3f}"
            print(f"step {step + 1} of {steps}, loss {loss.item():.2f}, {at_bar}", flush=True)


def _measure_loss(
    encoder: Encoder, passages: Sequence[Passage], same: torch.Tensor, bar: torch.Tensor
) -> torch.Tensor:
    right = torch.tensor([row for row, each in enumerate(passages) for _ in each.questions])
    asked = [text for each in passages for text in each.questions]
    question = encoder.prepare(asked, QUESTION_TOKENS)
    whole, tokens = encoder.embed(question)
    passage = encoder.prepare([each.text for each in passages], PASSAGE_TOKENS, windows=True)
    passage_whole, passage_tokens = encoder.embed(passage)
    windows = score_windows(question, tokens, passage, passage_tokens)
    dense = whole @ passage_whole.T
    excused = same[right]
    found = cross_entropy(dense * DENSE_SCALE + excused, right) + cross_entropy(
        windows * WINDOW_SCALE + excused, right
    )
    nearness = (dense + windows) / 2 * BAR_SCALE
    own = nearness.gather(1, right[:, None])[:, 0]
    nearest_other = (nearness + excused).scatter(1, right[:, None], MASKED).logsumexp(1)
    return found + (softplus(bar - own) + softplus(nearest_other - bar)).mean()


def _share_tokens(text: str, offsets: Sequence[tuple[int, int]]) -> np.ndarray:
    """Windows by tokens: what share each token has of each window's mean."""
    starts, ends = np.array(offsets).T
    rows = []
    for window in group_words(text, WINDOW_WORDS):
        inside = np.zeros(len(offsets), dtype=bool)
        for first, behind in window:
            inside |= (starts < ends) & (ends > first) & (starts < behind)
        if inside.any():
            rows.append(inside / inside.sum())
    if not rows:
        rows = [np.full(len(offsets), 1 / len(offsets))]
    return np.array(rows, dtype=np.float32)


def main() -> None:
    """Read, train, save."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    random.seed(SEED)
    encoder = Encoder(options.folder)
    train(encoder, read_passages(CORPORA))
    encoder.model.save_pretrained(options.out)


if __name__ == "__main__":
    main()
