"""Policies in Gymnasium: how good are they, and what do they look like?

    from argwhy.gym import evaluate, make_d4rl_env, record

    result = evaluate(estimator, "hopper")           # 100 episodes in the physics D4RL was recorded on
    print(result)                                    # mean, spread, lengths, D4RL score, versions
    record(estimator, "hopper", "hopper.gif")

A policy is anything with `.predict(X)`, or a function of X, where X holds one observation a row and the answer one decision a row.
Needs `pip install 'argwhy[gym]'`.
"""

from __future__ import annotations

try:
    import gymnasium as _gymnasium
    import mujoco as _mujoco  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError(f"argwhy.gym needs {error.name or 'gymnasium'}: pip install 'argwhy[gym]'", name=error.name) from None

from argwhy.gym.d4rl import d4rl_score, make_d4rl_env
from argwhy.gym.evaluation import Evaluation
from argwhy.gym.episodes import evaluate
from argwhy.gym.policy import Policy
from argwhy.gym.recording import Recording, record

del _gymnasium, _mujoco

__all__ = ["Evaluation", "Policy", "Recording", "d4rl_score", "evaluate", "make_d4rl_env", "record"]
