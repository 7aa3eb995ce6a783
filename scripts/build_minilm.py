"""Build rag_pipeline/data/minilm/model.onnx from the published weights of all-MiniLM-L6-v2.

The script writes the BERT encoder as an ONNX graph, directly from a safetensors file, and quantizes
the weights to 8 bits. Next to the model it writes the graph that browsers run with these weights.
With the package versions below, the result equals the committed files byte for byte. Run it in a
separate environment, because nothing else in this project needs the packages:

    python3 -m venv build/minilm
    build/minilm/bin/pip install numpy onnx==1.23.2 onnxruntime==1.31.1 safetensors==0.8.0
    build/minilm/bin/python scripts/build_minilm.py FOLDER model.onnx

FOLDER contains config.json and model.safetensors of sentence-transformers/all-MiniLM-L6-v2.
"""

from __future__ import annotations

import argparse
import hashlib
import json
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
_OPSET = 20  # the first ONNX version with the Gelu operator
_FUSED = "com.microsoft"  # domain of ONNX Runtime's operators, such as the fast fused Attention
_MODEL = "model.onnx"  # the name under which a site offers the weights
_SMALL_BYTES = 256  # smaller constants are in the graph for browsers itself


class EncoderGraph:
    """Builder of the ONNX graph of one BERT encoder, which collects its nodes and constants.

    Args:
        weights: Tensors of the model by their names in the safetensors file.
        config: Content of the model's config.json.
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
        """Return the encoder as an ONNX model.

        The inputs are token ids, attention mask and token types, each of shape (batch, sequence).
        The output `last_hidden_state` has the shape (batch, sequence, hidden).
        """
        hidden = self._embed_tokens()
        mask = self._apply("Cast", "attention_mask", to=TensorProto.INT32)
        for layer in range(self._layers):
            hidden = self._encode_layer(f"encoder.layer.{layer}", hidden, mask)
        self._nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"]))
        axes = ["batch", "sequence"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, axes) for name in _INPUTS]
        output = helper.make_tensor_value_info(
            "last_hidden_state", TensorProto.FLOAT, [*axes, self._hidden]
        )
        graph = helper.make_graph(self._nodes, "bert", inputs, [output], self._constants)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_FUSED, 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        onnx.checker.check_model(model)
        return model

    def _embed_tokens(self) -> str:
        """Add nodes that sum and normalize the word, position and type embeddings of each token.

        Return the name of the output tensor.
        """
        zero, one = self._ints(0), self._ints(1)
        ones = self._apply("Add", self._apply("Mul", "input_ids", zero), one)
        positions = self._apply("Sub", self._apply("CumSum", ones, one), one)
        table = "embeddings.{}_embeddings.weight"
        words = self._constant(self._weights[table.format("word")], "wemb")
        word = self._apply("Gather", words, "input_ids")
        place = self._apply("Gather", self._weight(table.format("position")), positions)
        types = self._weight(table.format("token_type"))
        kind = self._apply("Gather", types, "token_type_ids")
        return self._normalize("embeddings.LayerNorm", word, place, kind)

    def _encode_layer(self, layer: str, hidden: str, mask: str) -> str:
        attended = self._attend(f"{layer}.attention", hidden, mask)
        active = self._apply("Gelu", self._linear(attended, f"{layer}.intermediate.dense"))
        outer = self._linear(active, f"{layer}.output.dense")
        return self._normalize(f"{layer}.output.LayerNorm", outer, attended)

    def _attend(self, name: str, hidden: str, mask: str) -> str:
        roles = [f"{name}.self.{role}" for role in ("query", "key", "value")]
        weight = np.concatenate([self._weights[f"{role}.weight"].T for role in roles], axis=1)
        bias = np.concatenate([self._weights[f"{role}.bias"] for role in roles])
        operands = hidden, self._constant(weight), self._constant(bias), mask
        mixed = self._apply("Attention", *operands, domain=_FUSED, num_heads=self._heads)
        output = self._linear(mixed, f"{name}.output.dense")
        return self._normalize(f"{name}.output.LayerNorm", output, hidden)

    def _linear(self, value: str, name: str) -> str:
        weight = self._constant(self._weights[f"{name}.weight"].T, f"{name}.w")
        product = self._apply("MatMul", value, weight)
        bias = self._constant(self._weights[f"{name}.bias"], f"{name}.b")
        return self._apply("Add", product, bias)

    def _normalize(self, name: str, *summands: str) -> str:
        # ONNX Runtime would fuse `Add` and the normalization into a kernel slower than both.
        total = self._apply("Sum", *summands)
        operands = (total, self._weight(f"{name}.weight"), self._weight(f"{name}.bias"))
        return self._apply("LayerNormalization", *operands, axis=-1, epsilon=self._epsilon)

    def _apply(self, operator: str, *inputs: str, **attributes: object) -> str:
        output = f"t{len(self._nodes) + 1}"
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _weight(self, name: str) -> str:
        return self._constant(self._weights[name])

    def _ints(self, *values: int) -> str:
        return self._constant(np.array(values, dtype=np.int64))

    def _constant(self, array: np.ndarray, name: str = "") -> str:
        name = name or f"c{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name


class BrowserGraph:
    """Builder of the graph that browsers run with the weights of a quantized model.

    A rounding step of an activation changes a text's vector as much as the quantization itself
    (cosine 0.995). So whether two runtimes compute the same vector depends on the last digits of
    the numbers that they quantize. This graph computes attention and normalization with 64 bits,
    because ONNX Runtime for the web loses more digits there than ONNX Runtime does. The rest is the
    graph of the quantized model.

    Args:
        source: File of the quantized model. The graph refers to the weights in it.
    """

    def __init__(self, source: Path) -> None:
        self._content = source.read_bytes()
        self._model = onnx.load_from_string(self._content)
        self._nodes: list[onnx.NodeProto] = []

    def build(self) -> onnx.ModelProto:
        """Return the graph without weights."""
        graph = self._model.graph
        (first, *_) = [node for node in graph.node if node.op_type == "QAttention"]
        heads = helper.get_node_attr_value(first, "num_heads")
        hidden = graph.output[0].type.tensor_type.shape.dim[-1].dim_value
        parts = [3, heads, hidden // heads]
        constants = {
            "parts": np.array([0, 0, *parts]),
            "row_parts": np.array([parts[0], 1, parts[1], 1, parts[2]]),
            "joined": np.array([0, 0, hidden]),
            "sharpness": np.array(parts[2] ** -0.5),
        }
        for node in graph.node:
            if node.op_type == "QAttention":
                self._attend(node)
            elif node.op_type == "LayerNormalization":
                self._normalize(node)
            else:
                self._nodes.append(node)
        del graph.node[:]
        graph.node.extend(self._nodes)
        for constant in graph.initializer:
            self._refer(constant)
        graph.initializer.extend(
            numpy_helper.from_array(array, name) for name, array in constants.items()
        )
        return self._model

    def _attend(self, node: onnx.NodeProto) -> None:
        tokens, weight, bias, scale, weight_scale, _, zero, weight_zero, *_ = node.input
        (name,) = node.output
        whole = self._apply(f"{name}_whole", "MatMulInteger", tokens, weight, zero, weight_zero)
        # Parts first: ONNX Runtime would fuse a product, a cast and a scale to an operator that
        # has no version with 64 bits.
        parts = self._apply(f"{name}_parts", "Reshape", whole, "parts")
        ordered = self._apply(f"{name}_ordered", "Transpose", parts, perm=[2, 0, 3, 1, 4])
        values = self._widen(f"{name}_values", ordered)
        steps = self._apply(
            f"{name}_steps",
            "Mul",
            self._widen(f"{name}_scale", scale),
            self._split(f"{name}_weight_scale", weight_scale),
        )
        scaled = self._apply(f"{name}_scaled", "Mul", values, steps)
        moved = self._apply(f"{name}_moved", "Add", scaled, self._split(f"{name}_bias", bias))
        query, key, value = (f"{name}_{role}" for role in ("query", "key", "value"))
        self._nodes.append(
            helper.make_node("Split", [moved], [query, key, value], axis=0, num_outputs=3)
        )
        turned = self._apply(f"{name}_turned", "Transpose", key, perm=[0, 1, 2, 4, 3])
        likeness = self._apply(f"{name}_likeness", "MatMul", query, turned)
        sharp = self._apply(f"{name}_sharp", "Mul", likeness, "sharpness")
        shares = self._apply(f"{name}_shares", "Softmax", sharp, axis=-1)
        mixed = self._apply(f"{name}_mixed", "MatMul", shares, value)
        back = self._apply(f"{name}_back", "Transpose", mixed, perm=[1, 3, 0, 2, 4])
        joined = self._apply(f"{name}_joined", "Reshape", back, "joined")
        self._apply(name, "Cast", joined, to=TensorProto.FLOAT)

    def _split(self, name: str, row: str) -> str:
        """Give a row of the projections the shape of the parts: role, 1, head, 1, value."""
        return self._apply(f"{name}_parts", "Reshape", self._widen(name, row), "row_parts")

    def _normalize(self, node: onnx.NodeProto) -> None:
        (name,) = node.output
        wide = [self._widen(f"{name}_{at}", operand) for at, operand in enumerate(node.input)]
        epsilon = helper.get_node_attr_value(node, "epsilon")
        normal = self._apply(
            f"{name}_normal", "LayerNormalization", *wide, axis=-1, epsilon=epsilon
        )
        self._apply(name, "Cast", normal, to=TensorProto.FLOAT)

    def _widen(self, name: str, value: str) -> str:
        return self._apply(f"{name}_wide", "Cast", value, to=TensorProto.DOUBLE)

    def _apply(self, output: str, operator: str, *inputs: str, **attributes: object) -> str:
        self._nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def _refer(self, constant: onnx.TensorProto) -> None:
        """Replace the values of a constant by their place in the file of the quantized model."""
        values = constant.raw_data
        if len(values) < _SMALL_BYTES:
            return
        place = {"location": _MODEL, "offset": self._content.index(values), "length": len(values)}
        constant.ClearField("raw_data")
        constant.data_location = TensorProto.EXTERNAL
        for key, value in place.items():
            constant.external_data.add(key=key, value=str(value))


def main() -> None:
    """Check the hash of the weights, write the model and its graph for browsers, print hashes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with config.json and model.safetensors")
    parser.add_argument("target", type=Path, help="ONNX file to write")
    parser.add_argument(
        "--trained", action="store_true", help="accept weights trained by train_minilm.py"
    )
    arguments = parser.parse_args()
    source = arguments.folder / "model.safetensors"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    if digest != WEIGHTS_SHA256 and not arguments.trained:
        sys.exit(
            f"{source} has sha256 {digest}, not {WEIGHTS_SHA256}. Download the published "
            "weights, or use --trained for weights of train_minilm.py"
        )
    config = json.loads((arguments.folder / "config.json").read_text(encoding="utf-8"))
    model = EncoderGraph(load_file(source), config).build()
    with tempfile.TemporaryDirectory() as folder:
        full = Path(folder) / "full.onnx"
        onnx.save(model, full)
        # One scale per column keeps the cosine with the float32 vectors at 0.99. Seven bits prevent
        # overflows of sums on processors without VNNI.
        quantize_dynamic(
            full,
            arguments.target,
            per_channel=True,
            reduce_range=True,
            weight_type=QuantType.QInt8,
            # The type of values that come from operators which ONNX does not know.
            extra_options={"DefaultTensorType": TensorProto.FLOAT},
        )
    graph = arguments.target.with_stem(f"{arguments.target.stem}_browser")
    graph.write_bytes(BrowserGraph(arguments.target).build().SerializeToString())
    for file in (arguments.target, graph):
        print(hashlib.sha256(file.read_bytes()).hexdigest(), file)


if __name__ == "__main__":
    main()
