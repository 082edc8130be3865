# %% [markdown]
# # From a CSV of decisions to a cost function
#
# A hydro plant has two turbines. Every day its operator knows the power price and the water
# temperature, and decides how much water to release through each turbine. Limits are known: what
# each turbine can take that day, and the water there is. What is not written down is what the
# operator weighs against the price: wear, and a reluctance to disturb the river when it is warm.
#
# From a year of such days argwhy recovers that objective, in euros, and says what another cubic
# metre of water would have been worth. Here the operator is made up, so that we can compare with
# the truth.

# %%
import os
import tempfile
from pathlib import Path

import numpy as np

from argwhy import KernelInverseOptimizer, datasets

DAYS = int(os.environ.get("ARGWHY_EXAMPLE_ROWS", "730"))
WEAR = 0.05  # € per (m³/s)²: the one number that the operator told us; it sets the scale

# %% [markdown]
# ## The operator
#
# It minimises WEAR·‖u‖² − value(day)ᵀu within the day's limits. `value` is what nobody wrote down.


# %%
def value(price, temperature):
    """What the first m³/s through each turbine is worth, in €."""
    reluctance = 4.0 / (1.0 + np.exp(-(temperature - 16.0)))
    return np.stack([0.09 * price - 0.3 * reluctance, 0.07 * price - reluctance], axis=-1)


def nearest_release(wish, upper, water):
    """The release nearest to ``wish`` in 0 to ``upper`` within the day's water, by bisection."""
    free = np.clip(wish, 0, upper)
    low, high = np.zeros(len(wish)), np.full(len(wish), np.abs(wish).max() + upper.max())
    for _ in range(80):
        middle = (low + high) / 2
        too_much = np.clip(wish - middle[:, None], 0, upper).sum(axis=1) > water
        low, high = np.where(too_much, middle, low), np.where(too_much, high, middle)
    return np.where((free.sum(axis=1) > water)[:, None], np.clip(wish - high[:, None], 0, upper), free)


rng = np.random.default_rng(7)
season = np.sin(2 * np.pi * np.arange(DAYS) / 365)
temperature = 12 + 7 * season + rng.normal(0, 1.5, DAYS)
price = 80 - 15 * season + rng.normal(0, 18, DAYS)
upper = rng.choice([40.0, 60.0], (DAYS, 2), p=[0.2, 0.8])
water = rng.uniform(40, 110, DAYS)
release = nearest_release(value(price, temperature) / (2 * WEAR), upper, water)

# %% [markdown]
# ## The files
#
# One table with a row a day, as it comes out of a spreadsheet, and one with the matrix that all
# days share: the sum of both releases is what `W_0`, the day's water, limits.

# %%
folder = Path(tempfile.mkdtemp())
columns = np.column_stack([price, temperature, release, water, np.zeros((DAYS, 2)), upper])
header = "price,temperature,turbine_1,turbine_2,W_0,lower_0,lower_1,upper_0,upper_1"
np.savetxt(folder / "days.csv", columns, delimiter=",", header=header, comments="", fmt="%.10g")
(folder / "water.csv").write_text("turbine_1,turbine_2\n1,1\n")

days = datasets.read(
    folder / "days.csv", signals="price,temperature", decisions="turbine_1,turbine_2", matrix=folder / "water.csv"
)
print(f"{len(days.signals)} days; limits: {', '.join(days.constraints.arrays())}")

# %% [markdown]
# ## Learning the objective
#
# Every other day to learn from, the rest to judge by. `certificate_` is a proof: no objective of
# this kind explains the decisions better than the learned one does, but for the gap.

# %%
seen, new = slice(0, None, 2), slice(1, None, 2)
est = KernelInverseOptimizer(regularization=1e-5, infeasible="clip")
est.fit(days.signals[seen], days.decisions[seen], constraints=days.constraints.select(seen))
print(f"{est.status_}, relative gap {est.certificate_.relative_gap:.0e}, {est.n_support_} days carry weight")

# %%
decided = est.predict(days.signals[new], days.constraints.select(new))
decision_error = np.abs(decided - days.decisions[new]).mean()
print(f"releases on days never seen are off by {decision_error:.2f} m³/s of {days.decisions.mean():.0f}")

# %% [markdown]
# ## In euros
#
# The learned objective is ‖u‖² − 2g(s)ᵀu, known up to a factor; WEAR fixes it. `2·WEAR·g(s)` is
# then what the first m³/s is worth, and the price of the limit `M[0]` what one more m³/s of water
# would have earned.

# %%
worth = 2 * WEAR * est.desired(days.signals[new])
truth = value(price[new], temperature[new])
# Where a turbine stands still or water is short, the data says less about what it would have been
# worth.
inside = (release[new] > 0) & (release[new] < upper[new]) & (release[new].sum(axis=1) < water[new] - 1e-6)[:, None]
value_error = np.abs(worth - truth)[inside].mean()
print(f"the value of the first m³/s is off by {value_error:.2f} € of {np.abs(truth[inside]).mean():.2f} €")

prices = est.prices(days.signals[new], days.constraints.select(new))
of_water = np.array([limit == "M[0]" for limit in prices["limit"]])
print(f"water was short on {of_water.sum()} of {len(decided)} days; one more m³/s would have earned "
      f"{WEAR * prices['price'][of_water].mean():.2f} € a day on those")

# %% [markdown]
# ## One day, three plans
#
# `objective` compares any decisions on the same day. The differences are euros.

# %%
today = slice(1, 2)
best = est.predict(days.signals[today], days.constraints.select(today))
plans = np.vstack([best, best * 0.9, best[:, ::-1]])
costs = WEAR * est.objective(days.signals[today], plans)
for name, cost in zip(("the model's plan", "a tenth less", "turbines swapped"), costs - costs[0], strict=True):
    print(f"{name:18} {cost:+8.2f} €")

# %% [markdown]
# `est.save("plant.argwhy")` keeps the model for `argwhy predict` or for Python on another machine.
