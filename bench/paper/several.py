"""As many policies as demonstrations say there are experts; each episode is one policy's.

In: demonstrations and settings. Out: episodes grouped by `argwhy.find_experts` (no reward, no
label, no order of files), a policy of each group, and scores of a policy that draws its expert when
an episode begins, as often as the demonstrations show that expert, and stays with it. With one
expert that is the policy of the settings themselves.
"""

import dataclasses

import numpy as np

# Of the grouping, and of who acts in which episode.
SEED = 0
JUDGED_ROWS = 3000


def grouped(demonstrations, mask, threads):
    """What demonstrations say about who made them, by argwhy's default settings."""
    from argwhy import find_experts

    return find_experts(
        default(threads), demonstrations.observations[mask], demonstrations.actions[mask],
        demonstrations.episodes[mask], seed=SEED,
    )


def default(threads):
    """Argwhy's default law within the limits of all worlds here."""
    from argwhy import KernelInverseOptimizer

    return KernelInverseOptimizer(bounds=(-1.0, 1.0), tol=1e-3, threads=threads)


def described(found, demonstrations, mask, threads):
    """The grouping for the results; how pure it is was not known to it."""
    out = {
        "n": found.n_experts,
        "episodes": np.bincount(found.of_episode).tolist(),
        "rows": np.bincount(found.labels).tolist(),
        "trials": [dataclasses.asdict(one) for one in found.trials],
        "held out": held_out(found, demonstrations, mask, threads),
    }
    if demonstrations.halves:
        out["purity"] = purity(found.labels, np.flatnonzero(mask) >= len(mask) // 2)
    return out


def held_out(found, demonstrations, mask, threads):
    """Error of each expert's law on episodes that it has not seen: who is learned best.

    None where there is one episode.
    """
    signals, decisions = demonstrations.observations[mask], demonstrations.actions[mask]
    episodes, out = demonstrations.episodes[mask], []
    for expert in range(found.n_experts):
        rows = np.flatnonzero(found.labels == expert)
        rows = rows[np.linspace(0, len(rows) - 1, min(JUDGED_ROWS, len(rows))).astype(int)]
        if len(np.unique(episodes[rows])) < 2:
            out.append(None)
            continue
        law = default(threads).fit(signals[rows], decisions[rows])
        out.append(law.judge(signals[rows], decisions[rows], groups=episodes[rows])["rmse"])
    return out


def purity(labels, truth):
    """The share of rows whose expert is mostly that of their half, each half another expert's."""
    pairs = np.zeros((labels.max() + 1, 2))
    np.add.at(pairs, (labels, truth.astype(int)), 1)
    return float(pairs.max(axis=1).sum() / pairs.sum())


def masks(found, mask):
    """The rows of each expert, as masks of all rows."""
    rows, out = np.flatnonzero(mask), []
    for expert in range(found.n_experts):
        own = np.zeros(len(mask), bool)
        own[rows[found.labels == expert]] = True
        out.append(own)
    return out


def who_acts(shares, episodes):
    """The expert of each episode: as often as `shares` say, in an order that is drawn."""
    places = (np.arange(episodes) + 0.5) / episodes
    chosen = np.searchsorted(np.cumsum(shares)[:-1], places, side="right")
    return np.random.default_rng(SEED).permutation(chosen)


def mixed(shares, scores):
    """Scores of the policy that stays with one expert an episode, of each one's own scores."""
    acting = who_acts(shares, len(scores[0]))
    return [scores[expert][number] for number, expert in enumerate(acting)]
