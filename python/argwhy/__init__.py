"""From argmin to why: recover the objective behind decisions, with a proof.

And decide like the expert.

>>> from argwhy import KernelInverseOptimizer, datasets
>>> signals, decisions, lower, upper = datasets.make_quadrotor(300)
>>> pilot = KernelInverseOptimizer(lower=lower, upper=upper).fit(signals, decisions)
>>> pilot.status_
'solved'
>>> pilot.predict(signals[:2]).shape
(2, 2)

Importing argwhy imports NumPy and nothing else. scikit-learn, matplotlib, onnx and gymnasium are
needed only by what uses them, and come with ``pip install 'argwhy[sklearn,plot,onnx,mujoco]'``.
"""

from __future__ import annotations

from . import datasets
from ._argwhy import Iteration, __version__
from .certificate import Certificate
from .choosing import KernelInverseOptimizerCV
from .constraints import Constraints
from .errors import ConvergenceWarning, DataError, InternalError, LimitsWarning, ModelFileError, NotFittedError
from .estimator import KernelInverseOptimizer
from .experts import Experts, find_experts
from .export import export_onnx

__all__ = [
    "Certificate",
    "Constraints",
    "ConvergenceWarning",
    "DataError",
    "Experts",
    "InternalError",
    "Iteration",
    "KernelInverseOptimizer",
    "KernelInverseOptimizerCV",
    "LimitsWarning",
    "ModelFileError",
    "NotFittedError",
    "__version__",
    "datasets",
    "export_onnx",
    "find_experts",
]
