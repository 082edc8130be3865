# %% [markdown]
# # Choosing k and the kernel by cross-validation
#
# Two choices decide how well a model carries over to new situations: the regularization k (how
# simple the objective has to be) and the kernel (what "similar situations" means).
# `KernelInverseOptimizer` is a scikit-learn estimator, so that scikit-learn's search makes them.
# The expert is the bundled pilot of a quadrotor.

# %%
import os

import numpy as np
from sklearn.model_selection import GridSearchCV, GroupKFold

from argwhy import KernelInverseOptimizer, datasets

ROWS = int(os.environ.get("ARGWHY_EXAMPLE_ROWS", "900"))

flights = datasets.make_quadrotor(2 * ROWS)
signals, decisions = flights.signals[:ROWS], flights.decisions[:ROWS]
new_signals, new_decisions = flights.signals[ROWS:], flights.decisions[ROWS:]
print(f"{ROWS} decisions to learn from, {len(new_signals)} to judge by")

# %% [markdown]
# ## The search
#
# Decisions of one flight resemble each other. If some of them were trained on and others judged by,
# memorising would look like understanding: whole stretches of a flight are held out together. One
# thread a fit, and one fit a core: `n_jobs=-1` runs the folds beside each other.

# %%
stretches = np.arange(ROWS) // 50
search = GridSearchCV(
    KernelInverseOptimizer(features="poly2", lower=flights.lower, upper=flights.upper, threads=1),
    {
        "regularization": [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2],
        "kernel": ["rbf", "laplace", "matern52", "linear"],
    },
    cv=GroupKFold(4),
    scoring="neg_root_mean_squared_error",
    n_jobs=-1,
)
search.fit(signals, decisions, groups=stretches)

# %%
kernels = search.param_grid["kernel"]
table = {(p["kernel"], p["regularization"]): -s for p, s in zip(
    search.cv_results_["params"], search.cv_results_["mean_test_score"], strict=True
)}
print("root mean squared error in N, by cross-validation\n")
print("k         " + "".join(f"{kernel:>10}" for kernel in kernels))
for k in search.param_grid["regularization"]:
    print(f"{k:<10.0e}" + "".join(f"{table[kernel, k]:10.4f}" for kernel in kernels))
print(f"\nbest: {search.best_params_}")

# %% [markdown] A pilot who plans with a linear model of the vehicle wants something close to linear
# in the state: with few flights to learn from the linear kernel on degree-2 features beats the
# richer ones, and k hardly matters to it as long as it is small. With more flights the others catch
# up. That is what the search is for: nobody has to know.
#
# ## Was it a good choice?
#
# On flights that no fold has seen. The search was refitted on all rows with the best parameters;
# `best_estimator_` has the certificate, and can be saved for the command.

# %%
best = search.best_estimator_
default = KernelInverseOptimizer(lower=flights.lower, upper=flights.upper).fit(signals, decisions)


def error(est):
    return float(np.sqrt(np.mean((est.predict(new_signals) - new_decisions) ** 2)))


chosen_error, default_error = error(best), error(default)
print(f"on new flights: chosen {chosen_error:.4f} N, defaults {default_error:.4f} N")
print(f"{best.status_}, relative gap {best.certificate_.relative_gap:.0e}")
