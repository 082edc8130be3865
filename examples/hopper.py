# %% [markdown]
# # Imitating Hopper from 5000 samples
#
# A one-legged robot hops; a trained controller sees eleven numbers (joint angles, speeds) and sets
# three motors between -1 and 1. We learn what it wants from 5000 of its decisions, check the proof
# that the model is optimal, and let the model hop.
#
#     pip install 'argwhy[mujoco]'
#     python examples/hopper.py hopper_expert-v2.hdf5
#
# The first argument is the data; a second one, `10`, asks for ten episodes instead of a hundred.

# %%
import pathlib
import sys

from argwhy import KernelInverseOptimizer, datasets
from argwhy.gym import evaluate, record

WHERE_TO_GET_IT = """which data? Any of these, then: python examples/hopper.py PATH
  D4RL    hopper_expert-v2.hdf5, by curl -LO and this address:
          http://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2/hopper_expert-v2.hdf5
  Minari  pip install minari; minari download mujoco/hopper/expert-v0 (newer physics);
          the path is ~/.minari/datasets/mujoco/hopper/expert-v0
  npz     arrays `observations` (rows, 11) and `actions` (rows, 3), from anywhere"""

if len(sys.argv) < 2:
    sys.exit(WHERE_TO_GET_IT)
path = pathlib.Path(sys.argv[1])
episodes = int(sys.argv[2]) if len(sys.argv) > 2 else 100

# %% [markdown]
# The first 5000 rows: five episodes of eight seconds each.

# %%
signals, decisions = datasets.load(path, rows="0:5000")
print(f"{len(signals)} decisions about {decisions.shape[1]} motors, each after seeing {signals.shape[1]} numbers")

# %% [markdown] `bounds` is what the motors can do. `regularization` is the paper's k. Everything
# else is argwhy's default.

# %%
pilot = KernelInverseOptimizer.from_preset("hopper-expert", verbose=1)
pilot.fit(signals, decisions)

# %% [markdown] The certificate: two numbers that enclose the optimum. Nothing else that could be
# fitted with this kernel and k is better by more.

# %%
print(pilot.status_, pilot.certificate_)

# %% [markdown]
# Now it hops, in the physics D4RL's data was recorded on. 100 is D4RL's expert, 0 a random policy.

# %%
result = evaluate(pilot, "hopper", episodes=episodes)
print(result)

# %%
print(record(pilot, "hopper", "hopper.gif", max_steps=500))
