"""Makes the files beside this script, with the libraries whose formats they are.

    python make.py        # numpy, h5py

Values are a formula of row and column, so that the tests need no second copy of them:
signals[i, j] = i + j / 8, decisions[i, j] = i / 4 - j (exact in half precision).
"""

from pathlib import Path

import h5py
import numpy as np

HERE = Path(__file__).parent
N, P, D = 12, 3, 2


def signals(n=N, p=P, dtype=np.float32, first=0):
    i, j = np.mgrid[first : first + n, 0:p]
    return (i + j / 8).astype(dtype)


def decisions(n=N, d=D, dtype=np.float32, first=0):
    i, j = np.mgrid[first : first + n, 0:d]
    return (i / 4 - j).astype(dtype)


def npz():
    np.savez(HERE / "plain.npz", signals=signals(), decisions=decisions(dtype=np.float64))
    np.savez_compressed(
        HERE / "d4rl.npz",
        observations=signals(),
        actions=np.asfortranarray(decisions()),
        rewards=np.ones(N, np.float32),
        terminals=np.zeros(N, bool),
        infos=np.array([{"goal": 1}] * N, dtype=object),
        names=np.array(["hopper"] * N),
        phases=np.ones(N, np.complex64),
        records=np.zeros(N, dtype=[("a", "<f4"), ("b", "|S3")]),
        scalar=np.float64(3.0),
        images=np.zeros((N, 2, 2), np.uint8),
        wide=np.ones((N, 2), np.longdouble),
    )
    np.savez(
        HERE / "dtypes.npz",
        f16=signals(dtype="<f2"),
        f32be=signals(dtype=">f4"),
        f64be=np.asfortranarray(signals(dtype=">f8")),
        i8=np.arange(-6, 6, dtype="i1"),
        i16be=np.arange(-6, 6, dtype=">i2").reshape(12, 1),
        i64=np.arange(-6, 6, dtype="<i8"),
        u32=np.arange(12, dtype="<u4"),
        bools=(np.arange(12) % 3 == 0),
    )


def npy():
    np.save(HERE / "signals.npy", signals())
    np.save(HERE / "decisions.npy", decisions())


def d4rl():
    with h5py.File(HERE / "d4rl.hdf5", "w") as f:
        kwargs = dict(compression="gzip", chunks=(5, 2))
        f.create_dataset("observations", data=signals(), **kwargs)
        f.create_dataset("actions", data=decisions(), **kwargs)
        f.create_dataset("rewards", data=np.ones(N, np.float32), compression="gzip")
        f.create_dataset("terminals", data=np.zeros(N, bool))
        f.create_dataset("infos/qpos", data=signals(dtype=np.float64))
        f.create_dataset("infos/action_log_probs", data=np.zeros(N, np.float32))
        f.create_dataset("metadata/algorithm", data="SAC")
        f.create_dataset("metadata/policy/nonlinearity", data=np.bytes_(b"relu"))
        f.create_dataset("half", data=signals(dtype=np.float16))
        f.create_dataset("big", data=signals(dtype=">f4"))
        f.create_dataset("counts", data=np.arange(N, dtype=np.int64))
        f.create_dataset("words", data=["a"] * N)
        f.create_dataset("phases", data=np.ones((N, 2), np.complex64))


def minari(path, steps, observation=None):
    """As minari's HDF5Storage writes it: a group per episode, attributes `id` and so on."""
    with h5py.File(path, "w", track_order=True) as f:
        first = 0
        for e, t in enumerate(steps):
            g = f.create_group(f"episode_{e}")
            g.attrs["id"] = e
            g.attrs["seed"] = str(100 + e)
            g.attrs["total_steps"] = t
            # The last observation repeats the next episode's first row plus 1000: droppable.
            obs = signals(t + 1, first=first)
            obs[-1] += 1000
            if observation is None:
                g.create_dataset("observations", data=obs)
            else:
                observation(g, obs)
            g.create_dataset("actions", data=decisions(t, first=first))
            g.create_dataset("rewards", data=np.ones(t))
            g.create_dataset("terminations", data=np.zeros(t, bool))
            g.create_dataset("truncations", data=np.arange(t) == t - 1)
            g.create_dataset("infos/qpos", data=np.zeros((t + 1, 2)))
            first += t
        f.attrs["total_episodes"] = len(steps)
        f.attrs["total_steps"] = sum(steps)


def dictionary(g, obs):
    g.create_dataset("observations/observation", data=obs)
    g.create_dataset("observations/desired_goal", data=obs[:, :1])


def robomimic():
    """As robomimic's datasets: data/demo_N with actions and a group of observations."""
    with h5py.File(HERE / "robomimic.hdf5", "w") as f:
        first = 0
        for e, t in enumerate([3, 2, 1, 2, 1, 1, 2, 1, 1, 2, 3]):
            g = f.create_group(f"data/demo_{e}")
            g.attrs["num_samples"] = t
            rows = signals(t, first=first)
            g["obs/a_position"], g["obs/b_rest"] = rows[:, :1], rows[:, 1:]
            g["obs/camera_image"] = np.zeros((t, 4, 4, 3), np.uint8)
            g["next_obs/a_position"] = rows[:, :1] + 1000
            g["actions"], g["states"] = decisions(t, first=first), rows
            g["dones"], g["rewards"] = np.zeros(t, np.int64), np.zeros(t)
            first += t
        f["data"].attrs["total"] = first
        f.create_dataset("mask/train", data=np.array([b"demo_0"]))


npz()
npy()
d4rl()
robomimic()
(HERE / "minari" / "data").mkdir(parents=True, exist_ok=True)
# Eleven episodes: in the order of their names, episode_10 would come before episode_2.
minari(HERE / "minari" / "data" / "main_data.hdf5", [3, 2, 1, 2, 1, 1, 2, 1, 1, 2, 3])
minari(HERE / "minari-dict.hdf5", [2], dictionary)
with h5py.File(HERE / "small.hdf5", "w") as f:
    f.create_dataset("observations", data=signals(5), compression="gzip", chunks=(2, P))
    f.create_dataset("actions", data=decisions(5))


def layouts():
    """One array in every layout that h5py writes, and constraints with three axes."""
    values = signals(700, 6)
    matrix = np.random.default_rng(0).integers(-9, 9, (700, 3, 2)).astype(np.float32)
    packed = {"compression": "gzip", "compression_opts": 9}
    with h5py.File(HERE / "layouts.hdf5", "w") as file:
        file["contiguous"] = values
        file.create_dataset("chunks", data=values, chunks=(64, 6))
        file.create_dataset("gzip", data=values, chunks=(64, 6), **packed)
        file.create_dataset("shuffle", data=values, chunks=(64, 6), shuffle=True, **packed)
        file.create_dataset("shuffle_only", data=values, chunks=(128, 6), shuffle=True)
        file.create_dataset("one_chunk", data=values, chunks=values.shape, shuffle=True, **packed)
        file.create_dataset("narrow", data=values, chunks=(100, 4), shuffle=True, **packed)
        file.create_dataset("checked", data=values, chunks=(64, 6), fletcher32=True, **packed)
        file.create_dataset("two", data=values[:, :2] * 0, **packed)
        file.create_dataset("M", data=matrix, chunks=(33, 2, 2), shuffle=True, **packed)
        file.create_dataset("W", data=np.full((700, 3), 9.0), chunks=(50, 2), **packed)


def links():
    """Links of all kinds beside the data, in groups of the older and the newer kind."""
    for name, version in [("links-old.hdf5", "earliest"), ("links-new.hdf5", "latest")]:
        with h5py.File(HERE / name, "w", libver=version) as file:
            file["signals"] = signals(5)
            file["decisions"] = decisions(5)
            inner = file.create_group("inner")
            inner["signals"] = signals(5)
            for group in (file, inner):
                group["a_soft"] = h5py.SoftLink("/signals")
                group["z_dangling"] = h5py.SoftLink("/nowhere/at/all")
                if version == "latest":
                    group["external"] = h5py.ExternalLink("absent.hdf5", "/signals")
            # Hard links that go round.
            inner["up"] = file["/"]
            file["again"] = file["inner"]



layouts()
links()
