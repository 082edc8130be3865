"""Policies in Gymnasium: how good are they, and what do they look like?

    from argwhy.gym import evaluate, make_d4rl_env, record

    result = evaluate(estimator, "hopper")           # 100 episodes in D4RL's own physics
    print(result)                                    # mean, spread, lengths, D4RL score, versions
    record(estimator, "hopper", "hopper.gif")

A policy is anything with `.predict(X)`, or a function of X, where X holds one observation a row and
the answer one decision a row. Needs `pip install 'argwhy[gym]'`, and for
MuJoCo's worlds, D4RL's among them, `pip install 'argwhy[mujoco]'`.
"""

from __future__ import annotations

from .._extras import extra

extra("gymnasium", "argwhy.gym", "gym")  # said here once, in one line; the modules below import it plainly

from .d4rl import d4rl_score, make_d4rl_env
from .evaluation import Evaluation
from .episodes import evaluate
from .policy import Policy
from .recording import Recording, record

__all__ = ["Evaluation", "Policy", "Recording", "d4rl_score", "evaluate", "make_d4rl_env", "record"]
