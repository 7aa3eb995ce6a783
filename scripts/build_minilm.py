"""Build rag_pipeline/data/minilm/model.onnx from the published weights of all-MiniLM-L6-v2.

Writes the BERT encoder as an ONNX graph, straight from safetensors, and quantizes its weights to 8
bits. With the versions below the result is the committed file, byte for byte. It needs packages
that nothing else here needs, so run it in an environment of its own:

    python3 -m venv build/minilm
    build/minilm/bin/pip install numpy onnx==1.23.2 onnxruntime==1.31.1 safetensors==0.8.0
    build/minilm/bin/python scripts/build_minilm.py FOLDER model.onnx

FOLDER holds config.json and model.safetensors of sentence-transformers/all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import QuantType, quantize_dynamic
from safetensors.numpy import load_file

if TYPE_CHECKING:
    from collections.abc import Mapping

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
_MASKED = -1e4  # added to the scores of padding; exp of it is 0 in float32


class EncoderGraph:
    """Collects the nodes and constants of one BERT encoder.

    Args:
        weights: The published tensors by their names.
        config: The published config.json.
    """

    def __init__(self, weights: Mapping[str, np.ndarray], config: Mapping[str, float]) -> None:
        self._weights = weights
        self._hidden = int(config["hidden_size"])
        self._heads = int(config["num_attention_heads"])
        self._layers = int(config["num_hidden_layers"])
        self._epsilon = float(config["layer_norm_eps"])
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def build(self) -> onnx.ModelProto:
        """Return the model: token ids, mask and types in, (batch, sequence, hidden) out."""
        hidden = self._embed_tokens()
        mask = self._attention_bias()
        head_dim = self._hidden // self._heads
        shared = {
            "split": self._ints(0, 0, self._heads, head_dim),
            "join": self._ints(0, 0, self._hidden),
            "scale": self._float(1 / math.sqrt(head_dim)),
            "root_half": self._float(math.sqrt(0.5)),
            "half": self._float(0.5),
            "one": self._float(1),
        }
        for layer in range(self._layers):
            hidden = self._encode_layer(f"encoder.layer.{layer}", hidden, mask, shared)
        self._nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
        axes = ["batch", "sequence"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in _INPUTS]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*axes, self._hidden]
        )
        graph = helper.make_graph(self._nodes, "bert", inputs, [output], self._constants)
        opsets = [helper.make_opsetid("", 17)]  # the first with LayerNormalization
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        onnx.checker.check_model(model)
        return model

    def _embed_tokens(self) -> str:
        """Sum the embeddings of word, position and type, and normalize."""
        zero, one = self._ints(0), self._ints(1)
        ones = self._apply("Add", self._apply("Mul", "input_ids", zero), one)
        positions = self._apply("Sub", self._apply("CumSum", ones, one), one)
        table = "embeddings.{}_embeddings.weight"
        words = self._constant(self._weights[table.format("word")], "wemb")
        word = self._apply("Gather", words, "input_ids")
        place = self._apply("Gather", self._weight(table.format("position")), positions)
        placed = self._apply("Add", word, place)
        types = self._weight(table.format("token_type"))
        kind = self._apply("Gather", types, "token_type_ids")
        return self._normalize(self._apply("Add", placed, kind), "embeddings.LayerNorm")

    def _attention_bias(self) -> str:
        """Return 0 for tokens and -10,000 for padding, as (batch, 1, 1, sequence)."""
        mask = self._apply("Cast", "attention_mask", to=TensorProto.FLOAT)
        wide = self._apply("Unsqueeze", mask, self._ints(1, 2))
        return self._apply("Mul", self._apply("Sub", self._float(1), wide), self._float(_MASKED))

    def _encode_layer(self, layer: str, hidden: str, mask: str, shared: Mapping[str, str]) -> str:
        attended = self._attend(f"{layer}.attention", hidden, mask, shared)
        inner = self._linear(attended, f"{layer}.intermediate.dense")
        scaled = self._apply("Mul", inner, shared["root_half"])
        gate = self._apply("Add", self._apply("Erf", scaled), shared["one"])
        active = self._apply("Mul", self._apply("Mul", inner, gate), shared["half"])  # exact GELU
        outer = self._linear(active, f"{layer}.output.dense")
        return self._normalize(self._apply("Add", outer, attended), f"{layer}.output.LayerNorm")

    def _attend(self, name: str, hidden: str, mask: str, shared: Mapping[str, str]) -> str:
        by_head = [0, 2, 1, 3]
        parts = []
        for role, order in (("query", by_head), ("key", [0, 2, 3, 1]), ("value", by_head)):
            projected = self._linear(hidden, f"{name}.self.{role}")
            split = self._apply("Reshape", projected, shared["split"])
            parts.append(self._apply("Transpose", split, perm=order))
        query, key, value = parts
        scores = self._apply("Mul", self._apply("MatMul", query, key), shared["scale"])
        shares = self._apply("Softmax", self._apply("Add", scores, mask), axis=-1)
        mixed = self._apply("Transpose", self._apply("MatMul", shares, value), perm=by_head)
        joined = self._apply("Reshape", mixed, shared["join"])
        output = self._linear(joined, f"{name}.output.dense")
        return self._normalize(self._apply("Add", output, hidden), f"{name}.output.LayerNorm")

    def _linear(self, value: str, name: str) -> str:
        weight = self._constant(self._weights[f"{name}.weight"].T, f"{name}.w")
        product = self._apply("MatMul", value, weight)
        bias = self._constant(self._weights[f"{name}.bias"], f"{name}.b")
        return self._apply("Add", product, bias)

    def _normalize(self, value: str, name: str) -> str:
        scale, shift = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        operands = (value, scale, shift)
        return self._apply("LayerNormalization", *operands, axis=-1, epsilon=self._epsilon)

    def _apply(self, operator: str, *inputs: str, **attributes: object) -> str:
        output = f"t{len(self._nodes) + 1}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _weight(self, name: str) -> str:
        return self._constant(self._weights[name])

    def _ints(self, *values: int) -> str:
        return self._constant(np.array(values, dtype=np.int64))

    def _float(self, value: float) -> str:
        return self._constant(np.array([value], dtype=np.float32))

    def _constant(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


def main() -> None:
    """Check the weights, build, quantize, and print the result's hash."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="config.json and model.safetensors")
    parser.add_argument("target", type=Path, help="the file to write")
    parser.add_argument("--trained", action="store_true", help="weights of train_minilm.py")
    arguments = parser.parse_args()
    source = arguments.folder / "model.safetensors"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256 and not arguments.trained:
        sys.exit(f"{source} has sha256 {digest}, not {WEIGHTS_SHA256}: these are other weights")
    config = json.loads((arguments.folder / "config.json").read_text(encoding="utf-8"))
    model = EncoderGraph(load_file(source), config).build()
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "full.onnx"
        onnx.save(model, full)
        # One scale a column keeps the cosine to float32 at 0.99; seven bits keep the sums of
        # processors without VNNI from overflowing.
        quantize_dynamic(
            full, arguments.target, per_channel=True, reduce_range=True, weight_type=QuantType.QInt8
        )
    print(hashlib.sha256(arguments.target.read_bytes()).hexdigest(), arguments.target)


if __name__ == "__main__":
    main()
