"""Many episodes at once, each with its own seed, one call of the policy a step for all of them."""

from __future__ import annotations

import operator
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from .environment import AnyEnv, EnvLike, env_name, is_shared, make_env
from .evaluation import Evaluation
from .policy import Decider, Policy

# Enough that the policy's cost a call no longer shows; an environment takes some megabytes and
# milliseconds to make.
AT_ONCE = 32


def evaluate(policy: Policy, env: EnvLike, episodes: int = 100, seed: int = 0, *, at_once: int | None = None) -> Evaluation:
    """Run `policy` for a number of whole episodes and say how well it did.

    Parameters
    ----------
    policy:
        Has ``.predict(X)``, or is a function of X; X holds one observation a row.
    env:
        An id of Gymnasium's, a D4RL name as ``"hopper"`` (see `make_d4rl_env`), a function that
        makes environments, or an environment. The last is used as it is, alone, and left open: its
        model may have been changed by hand.
    episodes:
        How many.
    seed:
        Episode i is reset with ``seed + i``.
    at_once:
        Environments stepped side by side, 32 unless said. A policy whose decision for one
        observation does not depend on its neighbours in X (every estimator of argwhy) gives the
        same result for any number.

    Examples
    --------
    >>> import numpy as np
    >>> result = evaluate(lambda X: np.zeros((len(X), 3)), "hopper", episodes=3)
    >>> result.lengths.shape, result.d4rl_physics
    ((3,), True)
    """
    episodes, seed = whole_number(episodes, "episodes", 1), whole_number(seed, "seed", 0)
    shared = is_shared(env)
    slots = 1 if shared else min(episodes, AT_ONCE if at_once is None else whole_number(at_once, "at_once", 1))
    started = time.perf_counter()
    envs: list[AnyEnv] = []
    try:
        envs.extend(make_env(env) for _ in range(slots))
        finished = _run(policy, envs, episodes, seed)
        name = env_name(envs[0])
    finally:
        if not shared:
            for one in envs:
                one.close()
    return Evaluation(
        env=name,
        seed=seed,
        returns=np.array([episode.total for episode in finished]),
        lengths=np.array([episode.length for episode in finished], dtype=np.int64),
        terminated=np.array([episode.terminated for episode in finished], dtype=np.bool_),
        seconds=time.perf_counter() - started,
    )


class Episode:
    """One episode under way."""

    def __init__(self, number: int, env: AnyEnv, seed: int) -> None:
        self.number, self.env = number, env
        self.observation, _ = env.reset(seed=seed)
        self.total, self.length = 0.0, 0
        self.terminated = self.over = False

    def step(self, action: Any) -> None:
        self.observation, reward, terminated, truncated, _ = self.env.step(action)
        self.total += float(reward)
        self.length += 1
        self.terminated, self.over = bool(terminated), bool(terminated or truncated)


def _run(policy: Policy, envs: list[AnyEnv], episodes: int, seed: int) -> list[Episode]:
    """All episodes, in order; what is done takes the next, so that the batch stays full."""
    decide = Decider(policy, envs[0])
    waiting: Iterator[int] = iter(range(episodes))
    living = [Episode(number, env, seed + number) for env, number in zip(envs, waiting)]  # envs first: zip drops no number
    finished: list[Episode] = []
    while living:
        # In turn: two threads gain a fifth at best and processes lose (book, gym.md), and this asks
        # nothing of the environment
        actions = decide([episode.observation for episode in living])
        for episode, action in zip(living, actions, strict=True):
            episode.step(action)
        finished += [episode for episode in living if episode.over]
        living = [follower for episode in living if (follower := _follower(episode, waiting, seed))]
    return sorted(finished, key=lambda episode: episode.number)


def _follower(episode: Episode, waiting: Iterator[int], seed: int) -> Episode | None:
    """What its environment does next: this episode, the next one that waits, or nothing."""
    if not episode.over:
        return episode
    number = next(waiting, None)
    return None if number is None else Episode(number, episode.env, seed + number)


def whole_number(value: int, name: str, least: int) -> int:
    """`value` as an int, or an error that names it."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is a whole number; this is {value!r}") from None
    if number < least:
        raise ValueError(f"{name} is at least {least}; this is {number}")
    return number
