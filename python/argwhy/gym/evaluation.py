"""What an evaluation found, and how it is told."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from .d4rl import d4rl_score, environment_id, task_name

if TYPE_CHECKING:
    from numpy.typing import NDArray


def versions() -> dict[str, str]:
    """What the figures depend on. A physics engine's release moves returns."""
    found = {"python": platform.python_version()}
    for package in ("argwhy", "gymnasium", "mujoco", "numpy"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


@dataclass(frozen=True, repr=False, eq=False)  # arrays have no single answer to ==
class Evaluation:
    """Episodes of one policy in one environment; episode i was reset with `seed + i`."""

    env: str
    seed: int
    returns: NDArray[np.float64]
    lengths: NDArray[np.int64]
    terminated: NDArray[np.bool_]
    """Whether the episode ended by itself (the hopper fell) and not by the limit of its steps."""
    seconds: float
    versions: dict[str, str] = field(default_factory=versions)

    @property
    def episodes(self) -> int:
        return len(self.returns)

    @property
    def mean(self) -> float:
        return float(self.returns.mean())

    @property
    def std(self) -> float:
        """Spread of single episodes (sample standard deviation); nan for one episode."""
        return float(self.returns.std(ddof=1)) if self.episodes > 1 else float("nan")

    @property
    def standard_error(self) -> float:
        """Uncertainty of `mean`; nan for one episode."""
        return self.std / float(np.sqrt(self.episodes))

    @property
    def d4rl_score(self) -> float | None:
        """100 (mean - random) / (expert - random) with D4RL's returns; None where it has none."""
        return None if self._task is None else d4rl_score(self._task, self.mean)

    @property
    def d4rl_score_std(self) -> float | None:
        """Spread of single episodes' scores."""
        return None if self._task is None else self.std * _score_per_return(self._task)

    @property
    def d4rl_score_standard_error(self) -> float | None:
        """Uncertainty of `d4rl_score`."""
        return None if self._task is None else self.standard_error * _score_per_return(self._task)

    @property
    def d4rl_physics(self) -> bool:
        """Whether it was `make_d4rl_env`'s; other scores do not compare with published ones."""
        return self._task is not None and self.env == environment_id(self._task)

    @property
    def _task(self) -> str | None:
        return task_name(self.env)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, strings and lists, fit for JSON; what does not exist is None."""
        return {
            "env": self.env,
            "episodes": self.episodes,
            "seed": self.seed,
            "mean": self.mean,
            "std": _or_none(self.std),
            "standard_error": _or_none(self.standard_error),
            "d4rl_score": self.d4rl_score,
            "d4rl_score_std": _or_none(self.d4rl_score_std),
            "d4rl_score_standard_error": _or_none(self.d4rl_score_standard_error),
            "d4rl_physics": self.d4rl_physics,
            "returns": self.returns.tolist(),
            "lengths": self.lengths.tolist(),
            "terminated": self.terminated.tolist(),
            "seconds": self.seconds,
            "versions": dict(self.versions),
        }

    def __repr__(self) -> str:
        plural = "" if self.episodes == 1 else "s"
        lines = [f"Evaluation({self.env}, {self.episodes} episode{plural} from seed {self.seed}, {self.seconds:.1f} s)"]
        lines.append(_line("return", self.mean, self.std, self.standard_error, self.returns))
        score = self.d4rl_score
        if score is not None and self._task is not None:
            scores = np.array([d4rl_score(self._task, one) for one in self.returns])
            note = "" if self.d4rl_physics else "; not D4RL's physics, see make_d4rl_env"
            lines.append(_line("D4RL score", score, float(self.d4rl_score_std or 0.0), float(self.d4rl_score_standard_error or 0.0), scores) + note)
        ended = int(self.terminated.sum())
        lines.append(f"  length      {self.lengths.mean():.1f}, from {self.lengths.min()} to {self.lengths.max()}; {ended} ended by themselves")
        lines.append("  versions    " + ", ".join(f"{name} {version}" for name, version in self.versions.items()))
        return "\n".join(lines)


def _line(name: str, mean: float, std: float, error: float, values: NDArray[np.float64]) -> str:
    spread = f" ± {std:.2f} (standard error {error:.2f}), from {values.min():.2f} to {values.max():.2f}" if len(values) > 1 else ""
    return f"  {name:<11} {mean:.2f}{spread}"


def _score_per_return(task: str) -> float:
    return d4rl_score(task, 1.0) - d4rl_score(task, 0.0)


def _or_none(value: float | None) -> float | None:
    return None if value is None or np.isnan(value) else value
