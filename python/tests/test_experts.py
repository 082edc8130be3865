"""Several experts in one table (`find_experts`): who demonstrated what, and how many there are."""

import numpy as np
import pytest

from argwhy import Constraints, DataError, Experts, KernelInverseOptimizer, find_experts

LENGTH = 40


def demonstrations(laws, episodes=8, noise=0.1, seed=0, length=LENGTH):
    """`episodes` of each law, in a drawn order; decisions are the law's and noise."""
    draw = np.random.default_rng(seed)
    whose = draw.permutation(np.repeat(np.arange(len(laws)), episodes))
    signals = draw.uniform(-1, 1, (len(whose) * length, 2))
    expert = np.repeat(whose, length)
    decisions = np.choose(expert, [law(signals) for law in laws])[:, None]
    decisions = np.clip(decisions + noise * draw.standard_normal(decisions.shape), -1, 1)
    return signals, decisions, np.repeat(np.arange(len(whose)), length), expert


def first(s):
    return s[:, 0]


def opposite(s):
    return -s[:, 0]


def second(s):
    return np.tanh(3 * s[:, 1])


def bounded():
    return KernelInverseOptimizer(bounds=(-1, 1), tol=1e-3)


def same_parts(labels, truth):
    """Whether they are the same up to the experts' numbers."""
    return len(set(zip(labels.tolist(), truth.tolist(), strict=True))) == len(set(truth.tolist())) == len(set(labels.tolist()))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("laws", [[first, opposite], [first, second], [first, opposite, second]])
def test_experts_are_found_and_every_episode_is_its_experts(laws, seed):
    signals, decisions, episodes, truth = demonstrations(laws, seed=seed)
    found = find_experts(bounded(), signals, decisions, episodes)
    assert found.n_experts == len(laws) == len(found.laws)
    assert same_parts(found.labels, truth)
    np.testing.assert_array_equal(found.labels, found.of_episode[episodes])
    np.testing.assert_allclose(found.shares, 1 / len(laws))


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("seed", range(2))
def test_one_expert_stays_one(noise, seed):
    signals, decisions, episodes, _ = demonstrations([second], 16, noise, seed)
    found = find_experts(bounded(), signals, decisions, episodes)
    assert found.n_experts == 1 and not found.labels.any()
    assert [trial.n_experts for trial in found.trials] == [1, 2, 3]
    assert found.trials[0].error == pytest.approx(find_experts(bounded(), signals, decisions, episodes, max_experts=2).trials[0].error)


def test_experts_who_visit_other_states_are_one_law():
    """Where two never see the same signals nothing says that they would differ."""
    draw = np.random.default_rng(3)
    side = np.repeat(np.arange(16) % 2, LENGTH)
    signals = draw.uniform(0.2, 1, (16 * LENGTH, 2)) * np.where(side == 1, 1, -1)[:, None]
    decisions = np.clip(second(signals)[:, None] + 0.1 * draw.standard_normal((len(signals), 1)), -1, 1)
    assert find_experts(bounded(), signals, decisions, np.repeat(np.arange(16), LENGTH)).n_experts == 1


def test_neither_order_nor_names_nor_units_of_anything_matter():
    signals, decisions, episodes, truth = demonstrations([first, second], seed=5)
    order = np.concatenate([np.flatnonzero(episodes == one) for one in np.random.default_rng(1).permutation(16)])
    names = np.array([f"day {one}" for one in episodes])
    moved = find_experts(
        KernelInverseOptimizer(bounds=(-5000, 5000), tol=1e-3), signals[order] * [1e3, 1e-3] + 7, 5000 * decisions[order], names[order]
    )
    assert moved.n_experts == 2 and same_parts(moved.labels, truth[order])
    assert moved.episodes == list(dict.fromkeys(names[order].tolist()))


def test_the_expert_with_most_episodes_is_the_first():
    signals, decisions, episodes, truth = demonstrations([first, opposite], seed=2)
    kept = (truth == 1) | (episodes < 9)
    found = find_experts(bounded(), signals[kept], decisions[kept], episodes[kept])
    most = np.bincount(truth[kept]).argmax()
    assert found.n_experts == 2 and (found.labels == 0).tolist() == (truth[kept] == most).tolist()
    assert found.shares[0] > found.shares[1] and found.shares.sum() == pytest.approx(1)
    assert repr(found).startswith("Experts(2 found; episodes: ")


def test_other_episodes_are_assigned_and_the_answer_is_the_same_again():
    signals, decisions, episodes, truth = demonstrations([first, opposite], seed=7)
    estimator = bounded()
    found = find_experts(estimator, signals, decisions, episodes)
    again = find_experts(estimator, signals, decisions, episodes)
    assert isinstance(found, Experts) and not hasattr(estimator, "certificate_")
    np.testing.assert_array_equal(found.labels, again.labels)
    assert found.trials == again.trials
    other = demonstrations([first, opposite], 3, seed=8)
    labels = found.assign(*other[:3])
    own = found.labels[np.flatnonzero(truth == 0)[0]]
    np.testing.assert_array_equal(labels == own, other[3] == 0)


def test_limits_of_every_sample_come_along():
    """Both want more than they may have; what each leaves is told apart within the limits."""
    draw = np.random.default_rng(9)
    n = 12 * LENGTH
    budget = draw.uniform(0.5, 1.5, (n, 1))
    limits = Constraints(M=[[1.0, 1.0]], W=budget, lower=[0.0, 0.0])
    signals = draw.uniform(-1, 1, (n, 2))
    truth = np.repeat(np.arange(12) % 2, LENGTH)
    share = np.where(truth == 0, 0.2, 0.8)[:, None] + 0.1 * signals[:, :1]
    decisions = np.hstack([share * budget, (1 - share) * budget])
    estimator = KernelInverseOptimizer(tol=1e-3)
    found = find_experts(estimator, signals, decisions, np.repeat(np.arange(12), LENGTH), constraints=limits)
    assert found.n_experts == 2 and same_parts(found.labels, truth)
    assert found.assign(signals, decisions, truth, limits).tolist() == found.labels.tolist()


def test_too_few_episodes_are_one_experts():
    signals, decisions, episodes, _ = demonstrations([first, opposite], 1)
    found = find_experts(bounded(), signals, decisions[:, 0], episodes)
    assert (found.n_experts, found.trials, found.of_episode.tolist()) == (1, [], [0, 0])
    assert found.laws[0].predict(signals[:2]).shape == (2,)


def test_episodes_of_a_row_are_no_trouble():
    signals, decisions, episodes, truth = demonstrations([first, opposite], seed=4)
    episodes = np.where(np.arange(len(episodes)) == 0, 99, episodes)
    found = find_experts(bounded(), signals, decisions, episodes)
    assert found.n_experts == 2 and same_parts(found.labels[1:], truth[1:])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": None}, "groups is None"),
        ({"groups": np.zeros(3)}, "groups has 3 rows and X has 640"),
        ({"y": np.zeros((5, 1))}, "y has 5 rows and X has 640"),
        ({"max_experts": 0}, "max_experts is 0"),
        ({"folds": 1}, "folds is 1"),
        ({"rows": 2.5}, "rows is 2.5"),
    ],
)
def test_what_does_not_fit_is_named(given, words):
    signals, decisions, episodes, _ = demonstrations([first, opposite])
    with pytest.raises(ValueError, match=words) as told:
        find_experts(bounded(), **{"X": signals, "y": decisions, "groups": episodes, **given})
    assert isinstance(told.value, DataError) == (next(iter(given)) in ("groups", "y"))


def test_any_estimator_that_can_be_copied_will_do():
    linear_model = pytest.importorskip("sklearn.linear_model")
    signals, decisions, episodes, truth = demonstrations([first, opposite], seed=6)
    found = find_experts(linear_model.Ridge(), signals, decisions, episodes)
    assert same_parts(found.labels, truth)
