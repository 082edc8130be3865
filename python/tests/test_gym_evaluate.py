"""Episodes: the same for any number at once, from any way of naming an environment."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

from argwhy.gym import Evaluation, d4rl_score, evaluate, make_d4rl_env


class Linear:
    """A policy that falls soon; every row by itself, so that neighbours cannot matter."""

    def __init__(self, signal_dim: int = 11, decision_dim: int = 3) -> None:
        self.weights = np.random.default_rng(5).uniform(-0.3, 0.3, (signal_dim, decision_dim))
        self.n_calls = 0

    def predict(self, X: Any) -> Any:  # noqa: N803
        self.n_calls += 1
        return np.tanh([(row[:, None] * self.weights).sum(axis=0) for row in X])


def same(one: Evaluation, other: Evaluation) -> bool:
    return (
        np.array_equal(one.returns, other.returns)
        and np.array_equal(one.lengths, other.lengths)
        and np.array_equal(one.terminated, other.terminated)
    )


@pytest.fixture(scope="module")
def reference() -> Evaluation:
    """Seven episodes by hand."""
    env, policy = make_d4rl_env("hopper"), Linear()
    returns, lengths = [], []
    for seed in range(3, 10):
        observation, _ = env.reset(seed=seed)
        rewards: list[float] = []
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy.predict(observation[None])[0].astype(np.float32))
            rewards.append(float(reward))
            over = terminated or truncated
        returns.append(sum(rewards))
        lengths.append(len(rewards))
    return Evaluation("by hand", 3, np.array(returns), np.array(lengths), np.ones(7, bool), 0.0)


@pytest.mark.parametrize("at_once", [1, 2, 5, 7, 40])
def test_as_by_hand_for_any_number_at_once(reference: Evaluation, at_once: int) -> None:
    assert same(evaluate(Linear(), "hopper", episodes=7, seed=3, at_once=at_once), reference)


def test_every_way_of_naming_the_environment(reference: Evaluation) -> None:
    mine = make_d4rl_env("hopper")
    for env in ("hopper-medium-v2", "argwhy/D4rlHopper-v2", lambda: make_d4rl_env("hopper"), mine):
        result = evaluate(Linear(), env, episodes=7, seed=3)
        assert same(result, reference)
        assert result.env == "argwhy/D4rlHopper-v2" and result.d4rl_physics
    mine.reset(seed=0)  # still open


def test_a_function_is_a_policy(reference: Evaluation) -> None:
    assert same(evaluate(Linear().predict, "hopper", episodes=7, seed=3), reference)


def test_one_call_a_step() -> None:
    policy = Linear()
    result = evaluate(policy, "hopper", episodes=6, seed=3)
    assert policy.n_calls == result.lengths.max()


def test_a_given_environment_keeps_what_was_changed_in_it() -> None:
    mine: Any = make_d4rl_env("hopper")
    mine.unwrapped.model.opt.gravity[:] = 0.0
    assert not same(evaluate(Linear(), mine, episodes=2), evaluate(Linear(), "hopper", episodes=2))


def test_figures_of_a_result() -> None:
    result = Evaluation("argwhy/D4rlHopper-v2", 0, np.array([1.0, 2.0, 6.0]), np.array([10, 20, 30]), np.array([True, True, False]), 1.5)
    assert (result.episodes, result.mean) == (3, 3.0)
    assert result.std == pytest.approx(np.sqrt(7.0))
    assert result.standard_error == pytest.approx(np.sqrt(7.0 / 3.0))
    assert result.d4rl_score == d4rl_score("hopper", 3.0)
    assert result.d4rl_score_std == pytest.approx(np.std([d4rl_score("hopper", r) for r in (1.0, 2.0, 6.0)], ddof=1))
    told = repr(result)
    for part in ("3 episodes from seed 0", "3.00 ± 2.65 (standard error 1.53), from 1.00 to 6.00", "20.0, from 10 to 30; 2 ended by themselves"):
        assert part in told
    for package in ("argwhy", "gymnasium", "mujoco", "numpy", "python"):
        assert f"{package} {result.versions[package]}" in told
    assert "not D4RL's physics" not in told
    assert json.loads(json.dumps(result.to_dict(), allow_nan=False)) == result.to_dict()


def test_one_episode_has_no_spread() -> None:
    result = evaluate(Linear(), "hopper", episodes=1)
    assert np.isnan(result.std) and result.to_dict()["std"] is None and result.to_dict()["d4rl_score_std"] is None
    assert "1 episode from" in repr(result) and "nan" not in repr(result)


def test_scores_from_todays_physics_are_marked() -> None:
    result = evaluate(Linear(), "Hopper-v5", episodes=1)
    assert result.d4rl_score is not None and not result.d4rl_physics
    assert "not D4RL's physics" in repr(result)


def test_other_environments_have_no_score() -> None:
    def flat(X: Any) -> Any:  # noqa: N803
        return np.zeros(len(X))  # a one-dimensional y, as estimators fitted with one give

    result = evaluate(flat, "Pendulum-v1", episodes=2)
    assert result.d4rl_score is None and result.to_dict()["d4rl_score"] is None and "D4RL" not in repr(result)
    assert result.lengths.tolist() == [200, 200] and not result.terminated.any()


@pytest.mark.parametrize(
    ("policy", "env", "error", "words"),
    [
        (lambda X: np.zeros((len(X), 2)), "hopper", ValueError, r"shape \(1, 2\) for signals of shape \(1, 11\).* wants \(1, 3\)"),
        (lambda X: np.full((len(X), 3), np.nan), "hopper", ValueError, r"the policy gave \[nan, nan, nan\] for the signal \["),
        (lambda X: np.full((len(X), 3), "left"), "hopper", TypeError, "wants numbers"),
        (3, "hopper", TypeError, r"a policy has .predict\(X\) or is a function of X; this is int"),
        (lambda X: X, "CartPole-v1", TypeError, r"actions that are vectors of numbers \(Box\)"),
        (lambda X: X, 3, TypeError, "an environment is an id"),
        (lambda X: X, lambda: None, TypeError, "gave NoneType, not a gymnasium.Env"),
        (lambda X: X, "Nowhere-v0", gymnasium.error.NameNotFound, "Nowhere"),
    ],
)
def test_what_cannot_work_says_why(policy: Any, env: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        evaluate(policy, env, episodes=1)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"episodes": 0}, ValueError, "episodes is at least 1; this is 0"),
        ({"episodes": 2.5}, TypeError, "episodes is a whole number; this is 2.5"),
        ({"seed": -1}, ValueError, "seed is at least 0"),
        ({"at_once": 0}, ValueError, "at_once is at least 1"),
    ],
)
def test_wrong_numbers_are_named(options: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        evaluate(Linear(), "hopper", **options)


@pytest.mark.parametrize(
    ("missing", "use", "words"),
    [
        ("gymnasium", "", "argwhy.gym needs gymnasium, which is not installed: pip install 'argwhy[gym]'"),
        (
            "mujoco",
            "argwhy.gym.make_d4rl_env('hopper')",
            "a D4RL environment needs mujoco, which is not installed: pip install 'argwhy[mujoco]'",
        ),
    ],
)
def test_a_missing_extra_is_named_in_one_line(missing: str, use: str, words: str) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None\nimport argwhy.gym\n{use}"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].endswith(words)


def test_environments_that_need_no_mujoco_do_without() -> None:
    code = (
        "import sys; sys.modules['mujoco'] = None\n"
        "import numpy as np\n"
        "from argwhy.gym import evaluate\n"
        "print(evaluate(lambda X: np.zeros((len(X), 1)), 'Pendulum-v1', episodes=2))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("Evaluation(Pendulum-v1, 2 episodes")
