"""Fine-tune all-MiniLM-L6-v2 on questions to textbooks, for chunk vectors and window vectors.

Each step takes a batch of similar passages and the questions that they answer. The loss has two
parts. First, both scores of retrieval (cosine with the chunk, MaxSim score with its windows) must
rank a question's passage above the others. Second, the mean of both scores must be above a learned
threshold for the right passage and below it for the others, so that the score shows whether a book
answers a question. Training takes an hour on 2 cores. Then scripts/build_minilm.py writes the
result as rag_pipeline/data/minilm/textbook.onnx:

    make setup
    python3 -m venv build/minilm
    build/minilm/bin/pip install torch==2.13.0 transformers==5.23.0 tokenizers py_rust_stemmers
    build/minilm/bin/pip install onnx==1.23.2 onnxruntime==1.31.1 safetensors==0.8.0
    export PYTHONPATH=.
    build/minilm/bin/python scripts/train_minilm.py FOLDER build/textbook
    build/minilm/bin/python scripts/build_minilm.py --trained build/textbook textbook.onnx

FOLDER contains config.json, tokenizer.json and model.safetensors of all-MiniLM-L6-v2. The passages
and questions in scripts/training were written for this purpose. None is from this project's
textbook, whose golden set measures the result. Random numbers are seeded, but rounding may differ
on another machine; the committed weights are the ones that were measured.
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

from rag_pipeline.ingestion.stages import group_words

if TYPE_CHECKING:
    from collections.abc import Sequence

CORPORA: Final = Path(__file__).parent / "training"
SEED: Final = 0
BATCH: Final = 48  # passages per step, each with all its questions
GROUP: Final = 6  # similar passages that are drawn together
ROUNDS: Final = 2.5  # number of times that each passage is used
RATE: Final = 5e-5
WARM_UP: Final = 0.1  # share of the steps in which the learning rate rises
QUESTION_TOKENS: Final = 64
PASSAGE_TOKENS: Final = 160  # less than the model's limit, to save time
WINDOW_WORDS: Final = 4
DENSE_SCALE: Final = 20.0  # a softmax over cosines needs a wider range than -1 to 1
WINDOW_SCALE: Final = 35.0
BAR_SCALE: Final = 30.0
BAR: Final = 13.0  # first value of the learned threshold, multiplied by BAR_SCALE
BAR_RATE: Final = 0.1
NEAR: Final = 40  # number of most similar passages from which a group is drawn
SAME: Final = 0.95  # above this cosine, two passages count as saying the same
MASKED: Final = -1e4


@dataclass(frozen=True, slots=True)
class Passage:
    """The text of a section as it is embedded, and the questions that the section answers."""

    text: str
    questions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """The tokens of several texts.

    Attributes:
        ids: Token ids, shape (texts, tokens), padded with 0.
        mask: 1 for a token and 0 for padding, same shape.
        windows: Share of each token in the mean of each window, shape (texts, windows, tokens);
            None if windows were not requested.
    """

    ids: torch.Tensor
    mask: torch.Tensor
    windows: torch.Tensor | None = None


class Encoder:
    """The model that is trained, with its tokenizer. The embedding layer is not trained."""

    def __init__(self, folder: Path) -> None:
        self.model = BertModel.from_pretrained(folder, add_pooling_layer=False).eval()
        for name, weight in self.model.named_parameters():
            weight.requires_grad = not name.startswith("embeddings")
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.no_padding()

    def prepare(self, texts: Sequence[str], limit: int, *, windows: bool = False) -> Batch:
        """Tokenize texts, cut to `limit` tokens each, and with `windows` compute their windows."""
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
        """Return vectors of unit length for whole texts and for their tokens.

        Returns:
            Vectors of the texts, shape (texts, dim), and of the tokens, shape (texts, tokens, dim).
        """
        hidden = self.model(input_ids=batch.ids, attention_mask=batch.mask).last_hidden_state
        mask = batch.mask[..., None]
        return normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1), normalize(hidden, dim=-1)


def read_passages(folder: Path) -> list[Passage]:
    """Read the passages of all JSONL files in a folder, with headings before the text."""
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
    """Return the cosines between all passages for the current model, with -1 on the diagonal."""
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
    """A source of batches made of groups of similar passages.

    Passages that were used less often are drawn first. `cosines` are those of all passages.
    """

    def __init__(self, cosines: np.ndarray) -> None:
        self._cosines = cosines
        self._near = np.argsort(-cosines, axis=1)[:, :NEAR]
        self._seen = np.zeros(len(cosines), dtype=int)

    def draw(self) -> list[int]:
        """Return the indexes of the next batch's passages, without repeats."""
        batch: dict[int, None] = {}
        order = sorted(range(len(self._seen)), key=lambda at: (self._seen[at], random.random()))  # noqa: S311  # not used for secrets
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
            and random.random() < 0.5  # noqa: S311  # not used for secrets
        ]
        return free[: GROUP - 1]


def score_windows(
    question: Batch, question_tokens: torch.Tensor, passage: Batch, passage_tokens: torch.Tensor
) -> torch.Tensor:
    """Return the MaxSim score of each question with each passage, shape (questions, passages).

    The score is the mean, over the tokens of the question, of the highest cosine with a window of
    the passage. Special tokens are left out.
    """
    assert passage.windows is not None  # noqa: S101  # the only caller passes windows
    windows = normalize(torch.bmm(passage.windows, passage_tokens), dim=-1)
    empty = passage.windows.sum(-1) == 0
    cosines = torch.einsum("qth,pwh->qptw", question_tokens, windows)
    nearest = cosines.masked_fill(empty[None, :, None, :], MASKED).amax(-1)
    written = question.mask.clone()
    written[:, 0] = 0  # the first and the last token are special tokens
    written[torch.arange(len(written)), question.mask.sum(1).long() - 1] = 0
    return (nearest * written[:, None]).sum(-1) / written.sum(-1)[:, None]


def train(encoder: Encoder, passages: Sequence[Passage]) -> None:
    """Train the encoder on the passages and print the loss every ten steps.

    The weights of the embedding layer do not change.
    """
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
            at_bar = f"threshold {bar.item() / BAR_SCALE:.3f}"
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
    """Return the share of each token in the mean of each window, shape (windows, tokens).

    A text without windows gets one row with equal shares for all tokens.
    """
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
    """Read the passages, train the model, and save its weights."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the published model")
    parser.add_argument("out", type=Path, help="folder to write the trained weights to")
    options = parser.parse_args()
    torch.manual_seed(SEED)
    random.seed(SEED)
    encoder = Encoder(options.folder)
    train(encoder, read_passages(CORPORA))
    encoder.model.save_pretrained(options.out)


if __name__ == "__main__":
    main()
