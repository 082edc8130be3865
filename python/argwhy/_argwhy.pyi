"""The compiled half. Arrays are float64 or float32, aligned, in this machine's byte order."""

from collections.abc import Callable
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from .typing import FloatArray, Parameters

__version__: str

def defaults() -> Parameters: ...
def preset(name: str, given: Parameters) -> Parameters: ...
def resolved(parameters: Parameters) -> Parameters: ...
def judge(
    signals: FloatArray,
    decisions: FloatArray,
    parameters: Parameters,
    *,
    weights: FloatArray | None = None,
    limits: Parameters | None = None,
    groups: list[int] | None = None,
    in_time: bool = False,
    holdout: float | None = None,
    model: Model | None = None,
) -> tuple[dict[str, Any], Model | None]: ...
@final
class Search:
    def __new__(
        cls,
        signals: FloatArray,
        decisions: FloatArray,
        given: Parameters,
        *,
        weights: FloatArray | None = None,
        limits: Parameters | None = None,
        groups: list[int] | None = None,
        in_time: bool = False,
        folds: int | None = None,
        judge: str | None = None,
        budget: float | None = None,
        grid: Parameters | None = None,
        rows: NDArray[np.uint64] | None = None,
    ) -> Search: ...
    def run(
        self, crew: Callable[[list[str], Callable[[], bool]], list[tuple[int, str]]] | None = None
    ) -> dict[str, Any]: ...
    def attempt(self, attempt: str) -> str: ...

@final
class Iteration:
    """Where a solver stands after a step."""

    @property
    def iteration(self) -> int:
        """Steps taken so far."""
    @property
    def objective(self) -> float:
        """The paper's objective (9) at the feasible responses."""
    @property
    def primal(self) -> float:
        """Upper bound on the optimum."""
    @property
    def dual(self) -> float:
        """Lower bound on it."""
    @property
    def gap(self) -> float:
        """Their distance."""
    @property
    def relative_gap(self) -> float:
        """Relative to the bounds' size."""
    @property
    def violation(self) -> float:
        """Largest squared distance of a response from its optimality condition."""
    @property
    def free(self) -> float:
        """Share of decision coordinates strictly inside their limits."""
    @property
    def exact(self) -> bool:
        """Whether the numbers come from the double-precision kernel; in early steps they come from the working precision."""
    @property
    def kernel_products(self) -> int:
        """Products with the kernel matrix so far."""
    @property
    def seconds(self) -> float:
        """Seconds since the solver started."""

@final
class Model:
    def decide(self, signals: Any, flat: bool) -> FloatArray | None: ...
    def predict(self, signals: FloatArray, limits: Parameters | None, flat: bool) -> FloatArray: ...
    def predict_range(
        self, signals: FloatArray, limits: Parameters | None, level: float, flat: bool
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    @property
    def range_rows(self) -> int | None: ...
    @property
    def misfits(self) -> dict[str, Any] | None: ...
    def desired(self, signals: FloatArray, flat: bool) -> FloatArray: ...
    def objective(self, signals: FloatArray, decisions: FloatArray) -> NDArray[np.float64]: ...
    def prices(self, signals: FloatArray, limits: Parameters | None) -> dict[str, Any]: ...
    def save(self, path: str) -> None: ...
    def transform(self, signals: FloatArray) -> NDArray[np.float64]: ...
    @property
    def parameters(self) -> dict[str, Any]: ...
    @property
    def status(self) -> str: ...
    @property
    def provenance(self) -> dict[str, Any]: ...
    @property
    def record(self) -> dict[str, Any]: ...
    @property
    def constrained(self) -> bool: ...
    @property
    def signal_dim(self) -> int: ...
    @property
    def signal_names(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str]: ...
    @property
    def decision_names(self) -> list[str]: ...
    @property
    def decision_dim(self) -> int: ...
    @property
    def n_support(self) -> int: ...
    @property
    def coefficients(self) -> NDArray[np.float64] | None: ...
    @property
    def support_signals(self) -> NDArray[np.float64] | None: ...
    @property
    def support_rows(self) -> NDArray[np.int64] | None: ...
    @property
    def weights(self) -> NDArray[np.float64] | None: ...
    @property
    def weight_names(self) -> list[str]: ...
    @property
    def feature_names(self) -> list[str]: ...
    @property
    def theta_uu(self) -> NDArray[np.float64]: ...
    @property
    def learned_theta(self) -> bool: ...
    @property
    def training_prices(self) -> dict[str, Any] | None: ...
    @property
    def lower(self) -> NDArray[np.float64]: ...
    @property
    def upper(self) -> NDArray[np.float64]: ...
    @property
    def kernel(self) -> dict[str, Any]: ...
    @property
    def features(self) -> dict[str, Any]: ...

@final
class Fit:
    @property
    def model(self) -> Model: ...
    @property
    def history(self) -> dict[str, NDArray[Any]]: ...
    @property
    def plan(self) -> dict[str, Any]: ...
    @property
    def outside(self) -> dict[str, int]: ...
    @property
    def verdict(self) -> str: ...
    @property
    def cautions(self) -> list[str]: ...
    @property
    def interruption(self) -> BaseException | None: ...
    @property
    def left(self) -> Left | None: ...

@final
class Left:
    @property
    def pivots(self) -> list[int]: ...

def fit(
    signals: FloatArray,
    decisions: FloatArray,
    parameters: Parameters,
    *,
    weights: FloatArray | None = None,
    limits: Parameters | None = None,
    rows: str | None = None,
    follow: object = None,
    names: dict[str, list[str]] | None = None,
    units: dict[str, str] | None = None,
    more: list[dict[str, Any]] | None = None,
    start: Model | None = None,
    left: Left | None = None,
    leave: bool = False,
    checkpoint: tuple[str, float] | None = None,
    resume: str | None = None,
    backend: object = None,
) -> Fit: ...

@final
class Shard:
    def __new__(
        cls,
        job: str,
        data: NDArray[np.float64],
        rows: NDArray[np.uint64] | None = None,
        threads: int | None = None,
    ) -> Shard: ...
    @property
    def n_samples(self) -> int: ...
    @property
    def n_parts(self) -> int: ...
    def part(self, part: int, exact: bool, v: NDArray[np.float64]) -> tuple[int, NDArray[np.float64]]: ...
    def rows(self, samples: NDArray[np.uint64], start: int, stop: int) -> FloatArray: ...
    def columns(
        self, samples: NDArray[np.uint64], exact: bool, v: NDArray[np.float64], start: int, stop: int
    ) -> NDArray[np.float64]: ...
    def block(self, task: bytes) -> bytes: ...

@final
class Panels:
    def __new__(cls, shard: Shard) -> Panels: ...
    def n_rounds(self, panel: int) -> int | None: ...
    def retain(self, panels: list[int]) -> None: ...
    def begin(self, panel: int, roots: NDArray[np.float64], given: NDArray[np.float32]) -> None: ...
    def append(
        self,
        panel: int,
        round: tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.float32], NDArray[np.float64]],
        diagonal: NDArray[np.float64],
    ) -> NDArray[np.float64]: ...
    def gram(self, panels: list[int], signs: NDArray[np.int8]) -> list[tuple[int, int, NDArray[np.float64]]]: ...
    def gather(self, panels: list[int], marks: NDArray[np.int8]) -> NDArray[np.float32]: ...
    def project(self, panels: list[int], v: NDArray[np.float64]) -> list[tuple[int, int, NDArray[np.float64]]]: ...
    def expand(self, panels: list[int], w: NDArray[np.float64]) -> NDArray[np.float64]: ...

def panel_starts(n_samples: int) -> list[int]: ...
def spread_from() -> int: ...
def cluster_layout(n_samples: int) -> tuple[int, int]: ...
def multiply_pairs(n_features: int, n_vectors: int, exact: bool, times: int) -> int: ...
def add_part(total: NDArray[np.float64], first: int, values: NDArray[np.float64]) -> None: ...
def explain(
    model: Model,
    signals: FloatArray | None = None,
    limits: Parameters | None = None,
    numeraire: tuple[str, str] | None = None,
) -> dict[str, Any]: ...
def explain_one(
    model: Model,
    signal: FloatArray,
    signals: FloatArray | None = None,
    limits: Parameters | None = None,
    by: float | None = None,
    signal_limits: Parameters | None = None,
    numeraire: tuple[str, str] | None = None,
) -> dict[str, Any]: ...
def familiarity(model: Model, signals: FloatArray) -> NDArray[np.float64] | None: ...
def load_model(path: str) -> Model: ...
def model_from_bytes(bytes: bytes) -> Model: ...
def r2(predicted: FloatArray, observed: FloatArray, weights: FloatArray | None = None) -> float: ...
def load(
    path: str,
    *,
    signals: str | None,
    decisions: str | None,
    rows: str | None,
    constraints: bool,
    matrix: str | None,
    matrix_eq: str | None,
    weights: str | None,
    memory: str | None = None,
    episodes: str | None = None,
    every: int | None = None,
    sample: int | None = None,
    seed: int = 0,
    missing: str | None = None,
    one_hot: list[str] | None = None,
    cyclic: list[str] | None = None,
    encoding: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    want_decisions: bool = True,
) -> dict[str, Any]: ...
def describe(
    path: str,
    *,
    signals: str | None = None,
    decisions: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
) -> str: ...
def quadrotor(n: int, seed: int) -> dict[str, Any]: ...
def charging(n: int, seed: int) -> dict[str, Any]: ...
def panic(message: str) -> None: ...
