"""Files by the command's readers, in every layout they know."""

import h5py
import numpy as np
import pytest

from argwhy import DataError, KernelInverseOptimizer, datasets


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(30, 3)).astype(np.float32), rng.normal(size=(30, 2)).astype(np.float32)


def npz(path, signals, decisions):
    np.savez(path / "d.npz", observations=signals, actions=decisions, rewards=np.zeros(30))
    return path / "d.npz"


def folder(path, signals, decisions):
    np.save(path / "signals.npy", signals)
    np.save(path / "decisions.npy", decisions)
    return path


def d4rl(path, signals, decisions):
    with h5py.File(path / "hopper.hdf5", "w") as file:
        file["observations"], file["actions"] = signals, decisions
        file["terminals"], file["infos/qpos"] = np.zeros(30, bool), np.zeros((30, 5))
    return path / "hopper.hdf5"


def minari_file(path, signals, decisions):
    (path / "data").mkdir(exist_ok=True)
    with h5py.File(path / "data" / "main_data.hdf5", "w") as file:
        for i, part in enumerate((slice(0, 12), slice(12, 30))):
            episode = file.create_group(f"episode_{i}")
            # Minari keeps the observation after the last action too.
            episode["observations"] = np.concatenate([signals[part], signals[:1]])
            episode["actions"] = decisions[part]
    return path / "data" / "main_data.hdf5"


def minari_folder(path, signals, decisions):
    minari_file(path, signals, decisions)
    return path


def csv(path, signals, decisions):
    names = "observations_0,observations_1,observations_2,actions_0,actions_1"
    values = np.concatenate([signals, decisions], axis=1)
    np.savetxt(path / "d.csv", values, delimiter=",", header=names, comments="", fmt="%.17g")
    return path / "d.csv"


@pytest.mark.parametrize("layout", [npz, folder, d4rl, minari_file, minari_folder, csv])
def test_every_layout(layout, rows, tmp_path):
    path = layout(tmp_path, *rows)
    for given in (path, str(path)):
        signals, decisions = datasets.load(given)
        assert np.array_equal(signals, rows[0]) and np.array_equal(decisions, rows[1])
        assert signals.dtype == decisions.dtype == np.float64
    picked = np.r_[2:5, 20:30]
    for ranges in ("2:5,20:30", [slice(2, 5), slice(20, None)], [range(2, 5), range(20, 30)]):
        signals, decisions = datasets.load(path, rows=ranges)
        assert np.array_equal(signals, rows[0][picked]) and np.array_equal(decisions, rows[1][picked])
    with pytest.raises(TypeError, match="rows is a int"):
        datasets.load(path, rows=5)
    with pytest.raises(DataError, match="step 2"):
        datasets.load(path, rows=slice(0, 10, 2))


def test_columns_constraints_and_weights(tmp_path):
    text = "price,load,power,M_0_0,W_0,upper_0,count\n0.1,3,5,1,6,40,1\n0.2,4,2,1,7,40,2\n"
    (tmp_path / "days.csv").write_text(text)
    data = datasets.read(
        tmp_path / "days.csv", signals="price,load", decisions="power", constraints=True, weights="count", rows="1:2"
    )
    assert data.signals.tolist() == [[0.2, 4.0]] and data.decisions.tolist() == [[2.0]]
    assert data.weights.tolist() == [2.0]
    arrays = data.constraints.arrays()
    assert arrays["W"].tolist() == [[7.0]] and arrays["upper"].tolist() == [[40.0]]
    plain = datasets.read(tmp_path / "days.csv", "price,load", "power")
    assert plain.constraints is None and plain.weights is None


def test_a_shared_matrix_from_a_file_of_its_own(tmp_path):
    (tmp_path / "days.csv").write_text("signals_0,decisions_0,decisions_1,W_0\n1,0,0,3\n2,0,0,4\n3,1,1,5\n")
    (tmp_path / "m.csv").write_text("u0,u1\n1,2\n")
    data = datasets.read(tmp_path / "days.csv", matrix=tmp_path / "m.csv")
    assert data.constraints.arrays()["M"].tolist() == [[[1.0, 2.0]]]
    assert KernelInverseOptimizer().fit(data.signals, data.decisions, constraints=data.constraints).status_ == "solved"


def test_experts_are_those_of_the_demos():
    many, few = datasets.make_quadrotor(50, seed=3), datasets.make_quadrotor(20, seed=3)
    assert np.array_equal(many.signals[:20], few.signals) and many.signals.shape == (50, 6)
    assert (many.decisions >= many.lower).all() and (many.decisions <= many.upper).all()
    nights = datasets.make_charging(10, seed=1)
    arrays = nights.constraints.arrays()
    used = np.einsum("rj,ij->ir", arrays["M"][0], nights.decisions)
    assert (used <= arrays["W"] + 1e-6).all()
    for wrong in (0, 10**12):
        with pytest.raises(DataError, match=f"n is {wrong}"):
            datasets.make_quadrotor(wrong)


def test_signals_and_decisions_alone_take_what_an_error_offers(tmp_path):
    path = tmp_path / "days.csv"
    path.write_text("price;day;power\n0,1;Mon;5\n;Tue;2\n0,3;Mon;0\n")
    columns = {"signals": "price,day", "decisions": "power", "decimal": ","}
    with pytest.raises(DataError, match='for categories give one_hot="day"'):
        datasets.load(path, **columns)
    with pytest.raises(DataError, match='with missing="drop"'):
        datasets.load(path, **columns, one_hot="day")
    signals, decisions = datasets.load(path, **columns, one_hot="day", missing="drop")
    assert signals.tolist() == [[0.1, 1, 0], [0.3, 1, 0]]
    assert decisions.ravel().tolist() == [5, 0]
