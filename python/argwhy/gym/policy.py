"""What decides: an estimator or a function, and what may come out of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, runtime_checkable

import gymnasium
import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@runtime_checkable
class Predictor(Protocol):
    """An estimator of scikit-learn's kind."""

    def predict(self, X: Any, /) -> Any: ...  # noqa: N803


Policy: TypeAlias = "Predictor | Callable[[Any], Any]"
"""`policy.predict(X)` or `policy(X)`: observations (n, d) to decisions (n, m)."""


class Decider:
    """A policy inside the spaces of an environment: observations in, checked actions out."""

    def __init__(self, policy: Policy, env: gymnasium.Env[Any, Any]) -> None:
        self._decide = _function_of(policy)
        _box(env.observation_space, "observations")
        self._actions = _box(env.action_space, "actions")

    def __call__(self, observations: list[Any]) -> NDArray[Any]:
        """One action for each observation. All of them go to the policy in one call."""
        signals = np.array(observations, dtype=np.float64).reshape(len(observations), -1)
        decisions = np.asarray(self._decide(signals))
        decision_dim = int(np.prod(self._actions.shape))
        if decisions.shape == (len(signals),) and decision_dim == 1:
            decisions = decisions[:, None]  # estimators fitted with a one-dimensional y
        if decisions.shape != (len(signals), decision_dim):
            raise ValueError(
                f"the policy gave decisions of shape {decisions.shape} for signals of shape {signals.shape}; "
                f"the environment wants ({len(signals)}, {decision_dim})"
            )
        if decisions.dtype.kind not in "fiu":
            raise TypeError(f"the policy gave decisions of type {decisions.dtype}; the environment wants numbers")
        if not np.isfinite(decisions).all():
            row = int(np.flatnonzero(~np.isfinite(decisions).all(axis=1))[0])
            raise ValueError(f"the policy gave {decisions[row].tolist()} for the signal {signals[row].tolist()}")
        return decisions.astype(self._actions.dtype, copy=False).reshape(-1, *self._actions.shape)


def _function_of(policy: Policy) -> Callable[[Any], Any]:
    if isinstance(policy, Predictor):
        return policy.predict
    if callable(policy):
        return policy
    raise TypeError(f"a policy has .predict(X) or is a function of X; this is {type(policy).__name__}")


def _box(space: gymnasium.Space[Any], what: str) -> gymnasium.spaces.Box:
    if not isinstance(space, gymnasium.spaces.Box):
        raise TypeError(f"argwhy.gym wants {what} that are vectors of numbers (Box); this environment has {space}")
    return space
