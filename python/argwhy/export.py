"""Models as ONNX graphs, for machines without argwhy.

The graph computes what :meth:`KernelInverseOptimizer.predict` does, in double precision and for any
number of signals: features, kernel values against the support, a weighted sum, and the limits. Only
the last step restricts what can be exported: a cut to box limits is a graph, the quadratic program
of general constraints or of a learned θ_uu is an algorithm.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ._argwhy import Model, __version__
from ._extras import extra
from .errors import not_fitted
from .typing import FloatArray

if TYPE_CHECKING:
    from .estimator import KernelInverseOptimizer

OPSET = 17
IR_VERSION = 8
"""Old enough for runtimes of the last years, new enough for every operator used."""


def export_onnx(estimator: KernelInverseOptimizer, path: str | os.PathLike[str]) -> None:
    """Writes a fitted estimator as an ONNX graph in float64.

    Input ``signals`` (n × signal_dim), output ``decisions`` (n × decision_dim).

    Raises
    ------
    ValueError
        Where the model has constraints that come with each signal, or a learned θ_uu: no exact
        graph exists for those.
    """
    if "_model" not in estimator.__dict__:
        raise not_fitted("export_onnx needs a fitted estimator; call fit or load first")
    model: Model = estimator._model  # pyright: ignore[reportPrivateUsage]
    if model.constrained:
        raise ValueError(
            "the model was fitted with constraints that come with each signal, so every decision is a quadratic program, "
            "not a graph; ONNX export is for box limits (bounds, lower, upper)"
        )
    if model.learned_theta:
        raise ValueError(
            "theta_uu is learned, so every decision is a quadratic program, not a graph; ONNX export is for theta='identity'"
        )
    onnx = extra("onnx", "export_onnx", "onnx")
    graph = _Graph(onnx)
    desired = _desired(graph, model)
    above = graph.node("Max", [desired, graph.constant(model.lower.reshape(1, -1))])
    graph.node("Min", [above, graph.constant(model.upper.reshape(1, -1))], output="decisions")
    onnx.save(graph.finish(model), os.fspath(path))


class _Graph:
    """Nodes and constants as they are added."""

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array = np.ascontiguousarray(values, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def node(self, op: str, inputs: Sequence[str], output: str | None = None, **attributes: Any) -> str:
        name = output or f"t{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, list(inputs), [name], **attributes))
        return name

    def finish(self, model: Model) -> Any:
        helper, double = self.onnx.helper, self.onnx.TensorProto.DOUBLE
        graph = helper.make_graph(
            self.nodes,
            "argwhy",
            [helper.make_tensor_value_info("signals", double, ["n", model.signal_dim])],
            [helper.make_tensor_value_info("decisions", double, ["n", model.decision_dim])],
            self.constants,
        )
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="argwhy",
            producer_version=__version__,
        )
        gap = model.record["certificate"]["relative_gap"]
        helper.set_model_props(made, {"argwhy.status": model.status, "argwhy.relative_gap": repr(gap)})
        self.onnx.checker.check_model(made)
        return made


def _desired(graph: _Graph, model: Model) -> str:
    """g(s), before the limits."""
    features = _features(graph, model)
    if model.weights is not None:
        n_features = len(model.feature_names)
        g = graph.node("MatMul", [features, graph.constant(model.weights[:n_features])])
        intercept = model.weights[n_features:]
        return graph.node("Add", [g, graph.constant(intercept)]) if len(intercept) else g
    if model.support_signals is None or model.coefficients is None or model.n_support == 0:
        nothing = np.zeros((len(model.feature_names), model.decision_dim))
        return graph.node("MatMul", [features, graph.constant(nothing)])
    support = model.transform(model.support_signals)
    values = _kernel(graph, model.kernel, features, support)
    return graph.node("MatMul", [values, graph.constant(model.coefficients)])


def _features(graph: _Graph, model: Model) -> str:
    """Monomials, z-score, clip."""
    made = model.features
    raw = "signals"
    if made["settings"]["expansion"] == "poly2":
        i, j = np.triu_indices(model.signal_dim)
        left = graph.node("Gather", ["signals", graph.constant(i, np.int64)], axis=1)
        right = graph.node("Gather", ["signals", graph.constant(j, np.int64)], axis=1)
        products = graph.node("Mul", [left, right])
        shape = graph.node("Shape", ["signals"])
        n = graph.node("Slice", [shape, *(graph.constant([v], np.int64) for v in (0, 1))])
        column = graph.node("Concat", [n, graph.constant([1], np.int64)], axis=0)
        one = graph.node("Expand", [graph.constant([[1.0]]), column])
        raw = graph.node("Concat", [one, "signals", products], axis=1)
    centred = graph.node("Sub", [raw, graph.constant([made["mean"]])])
    scaled = graph.node("Mul", [centred, graph.constant([made["inverse_scale"]])])
    clip = made["settings"]["clip"]
    return graph.node("Clip", [scaled, graph.constant(-clip), graph.constant(clip)])


def _kernel(graph: _Graph, kernel: dict[str, Any], z: str, support: FloatArray) -> str:
    """κ of every signal with every support point, by the formulas of the book's chapter on them."""
    kind = kernel["kind"]
    if kind == "scaled":
        inner = _kernel(graph, kernel["kernel"], z, support)
        return graph.node("Mul", [inner, graph.constant(kernel["weight"])])
    if kind in ("sum", "product"):
        parts = [_kernel(graph, part, z, support) for part in kernel["terms" if kind == "sum" else "factors"]]
        total = parts[0]
        for part in parts[1:]:
            total = graph.node("Add" if kind == "sum" else "Mul", [total, part])
        return total
    if kind == "anisotropic":
        scales = np.asarray([kernel["length_scales"]])
        return _kernel(graph, kernel["kernel"], graph.node("Div", [z, graph.constant(scales)]), support / scales)
    if kind == "linear":
        return _inner(graph, z, support)
    if kind == "constant":
        return graph.node("Add", [_inner(graph, z, 0.0 * support), graph.constant(1.0)])
    if kind == "polynomial":
        scaled = graph.node("Mul", [_inner(graph, z, support), graph.constant(kernel["gamma"])])
        shifted = graph.node("Add", [scaled, graph.constant(kernel["offset"])])
        return graph.node("Pow", [shifted, graph.constant(float(kernel["degree"]))])
    if kind == "laplace":
        return _exp(graph, _manhattan(graph, z, support), kernel["gamma"])
    if kind == "rbf":
        return _exp(graph, _squares(graph, z, support), kernel["gamma"])
    if kind in ("matern32", "matern52"):
        # t² = 6γd² or 10γd², and (1 + t [+ t²/3]) exp(−t).
        factor = 6.0 if kind == "matern32" else 10.0
        square = graph.node("Mul", [_squares(graph, z, support), graph.constant(factor * kernel["gamma"])])
        t = graph.node("Sqrt", [square])
        rise = graph.node("Add", [t, graph.constant(1.0)])
        if kind == "matern52":
            rise = graph.node("Add", [rise, graph.node("Div", [square, graph.constant(3.0)])])
        return graph.node("Mul", [rise, _exp(graph, t, 1.0)])
    raise ValueError(f"the kernel `{kind}` has no ONNX graph; export knows rbf, laplace, linear, polynomial and matern")


def _exp(graph: _Graph, of: str, gamma: float) -> str:
    return graph.node("Exp", [graph.node("Mul", [of, graph.constant(-gamma)])])


def _inner(graph: _Graph, z: str, support: FloatArray) -> str:
    return graph.node("MatMul", [z, graph.constant(support.T)])


def _squares(graph: _Graph, z: str, support: FloatArray) -> str:
    """Squared distances, as ‖a‖² − 2aᵀb + ‖b‖²; rounding may take one below zero."""
    own = graph.node("ReduceSumSquare", [z], axes=[1], keepdims=1)
    cross = graph.node("Mul", [_inner(graph, z, support), graph.constant(-2.0)])
    others = graph.constant((support * support).sum(axis=1).reshape(1, -1))
    total = graph.node("Add", [graph.node("Add", [own, cross]), others])
    return graph.node("Max", [total, graph.constant(0.0)])


def _manhattan(graph: _Graph, z: str, support: FloatArray) -> str:
    """Distances of the sum of absolute values, feature by feature.

    All at once they would take n × n_support × n_features numbers.
    """
    helper, double = graph.onnx.helper, graph.onnx.TensorProto.DOUBLE
    body = helper.make_graph(
        [
            helper.make_node("Unsqueeze", ["a", "last"], ["column"]),
            helper.make_node("Sub", ["column", "b"], ["difference"]),
            helper.make_node("Abs", ["difference"], ["distance"]),
            helper.make_node("Add", ["before", "distance"], ["after"]),
        ],
        "one_feature",
        [
            helper.make_tensor_value_info("before", double, None),
            helper.make_tensor_value_info("a", double, None),
            helper.make_tensor_value_info("b", double, None),
        ],
        [helper.make_tensor_value_info("after", double, None)],
        [graph.onnx.numpy_helper.from_array(np.array([1], dtype=np.int64), "last")],
    )
    nothing = graph.node("MatMul", [z, graph.constant(np.zeros(support.T.shape))])
    signals = graph.node("Transpose", [z], perm=[1, 0])
    return graph.node("Scan", [nothing, signals, graph.constant(support.T)], body=body, num_scan_inputs=2)
