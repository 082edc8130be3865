"""Tables by the command's readers: formats, columns, gaps, categories, rows left out."""

import datetime
import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import polars as pl
import pytest

from argwhy import DataError, KernelInverseOptimizer, _arrow, datasets

TABLES = Path(__file__).parents[2] / "crates/io/tests/data/tables"


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    numbers = {f"signals_{i}": rng.normal(size=40) for i in range(3)}
    days = [["Mon", "Tue"][i % 2] for i in range(40)]
    return pl.DataFrame(numbers | {"decisions_0": rng.uniform(-1, 1, 40), "day": days, "hour": np.arange(40.0) % 24})


def parquet(frame, path):
    frame.write_parquet(path / "t.parquet")
    return path / "t.parquet"


def arrow(frame, path):
    frame.write_ipc(path / "t.arrow", compression="zstd")
    return path / "t.arrow"


def stream(frame, path):
    frame.write_ipc_stream(path / "t.ipc", compression="lz4")
    return path / "t.ipc"


def csv(frame, path):
    frame.write_csv(path / "t.csv", separator=";")
    return path / "t.csv"


@pytest.mark.parametrize("write", [parquet, arrow, stream, csv])
def test_a_frame_of_polars_comes_back_bit_for_bit(write, frame, tmp_path):
    path = write(frame, tmp_path)
    signals, decisions = datasets.load(path)
    assert np.array_equal(signals, frame.select(pl.col("^signals_.*$")).to_numpy())
    assert np.array_equal(decisions, frame.select("decisions_0").to_numpy())
    signals, _ = datasets.load(path, signals="signals_1:signals_2", decisions="dec*", rows="5:9")
    assert np.array_equal(signals, frame.select("signals_1", "signals_2").to_numpy()[5:9])


@pytest.mark.parametrize("write", [parquet, arrow, csv])
def test_categories_and_cycles_mean_the_same_on_other_data(write, frame, tmp_path):
    path = write(frame, tmp_path)
    data = datasets.read(path, "day,hour", "decisions_0", one_hot="day", cyclic=["hour:24"])
    assert data.signal_names == ["day=Mon", "day=Tue", "sin(hour/24)", "cos(hour/24)"]
    angle = np.arange(40) * np.pi / 12
    expected = np.stack([np.arange(40) % 2 == 0, np.arange(40) % 2 == 1, np.sin(angle), np.cos(angle)], axis=1)
    assert np.allclose(data.signals, expected)
    other = write(frame.filter(pl.col("day") == "Tue"), tmp_path)
    again = datasets.read(other, "day,hour", "decisions_0", encoding=data.encoding)
    assert np.array_equal(again.signals, data.signals[1::2])
    with pytest.raises(DataError, match="Mon.*one_hot=|is not a number"):
        datasets.read(path, "day", "decisions_0")


def test_gaps(frame, tmp_path):
    gaps = frame.with_columns(pl.when(pl.col("hour") == 3).then(None).otherwise(pl.col("signals_0")).alias("signals_0"))
    path = parquet(gaps, tmp_path)
    with pytest.raises(DataError, match=r'`signals\[0\]` in rows 3, 27.*missing="drop".*missing="mean"'):
        datasets.read(path)
    assert len(datasets.read(path, missing="drop").signals) == 38
    filled = datasets.read(path, missing="mean").signals[:, 0]
    assert filled[3] == filled[27] and np.isclose(filled[3], gaps["signals_0"].mean())
    with pytest.raises(ValueError, match="expected error, drop or mean"):
        datasets.read(path, missing="median")


def test_rows_left_out(frame, tmp_path):
    path = parquet(frame, tmp_path)
    assert np.array_equal(datasets.read(path, every=7).signals, datasets.read(path).signals[::7])
    first = datasets.read(path, sample=10, seed=1)
    assert np.array_equal(first.signals, datasets.read(path, sample=10, seed=1).signals)
    assert not np.array_equal(first.signals, datasets.read(path, sample=10, seed=2).signals)
    assert len(first.signals) == 10


def test_minari_knows_its_limits(tmp_path):
    with h5py.File(tmp_path / "main_data.hdf5", "w") as file:
        file["episode_0/observations"], file["episode_0/actions"] = np.zeros((4, 2)), np.zeros((3, 1))
        file["episode_1/observations"], file["episode_1/actions"] = np.ones((3, 2)), np.zeros((2, 1))
    space = {"type": "Box", "dtype": "float32", "shape": [1], "low": [-1.0], "high": [2.0]}
    (tmp_path / "metadata.json").write_text(json.dumps({"action_space": json.dumps(space)}))
    data = datasets.read(tmp_path)
    assert data.bounds is not None
    assert [list(side) for side in data.bounds] == [[-1.0], [2.0]]
    assert len(datasets.read(tmp_path, episodes="1:2").signals) == 2


def test_sheets():
    for name in ("book.xlsx", "book.ods"):
        assert datasets.read(TABLES / name).signals.shape == (40, 3)
        assert datasets.read(TABLES / name, sheet="moved").signals.shape == (5, 3)
        with pytest.raises(DataError, match="no sheet `none`; it has `data`, `notes`, `moved`"):
            datasets.read(TABLES / name, sheet="none")


def test_descriptions(frame, tmp_path):
    found = datasets.describe(parquet(frame, tmp_path))
    assert [column["name"] for column in found["columns"]] == ["signals_0", "signals_1", "signals_2", "decisions_0"]
    assert {entry["name"]: entry["kind"] for entry in found["contents"]["entries"]}["day"] == "text"
    assert found["conflicting_rows"] == 0


class Arrow:
    """A table that knows nothing of NumPy: what many libraries hand out."""

    def __init__(self, frame: pl.DataFrame | pl.Series) -> None:
        self.frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.frame.__arrow_c_stream__(requested_schema)


class Named(Arrow):
    """The same with a schema to be had beforehand, as readers of streams have."""

    def __arrow_c_schema__(self) -> object:
        return pl.Schema(self.frame.schema).__arrow_c_schema__()


def test_arrow_streams_are_read_as_they_lie():
    whole = pl.DataFrame({"price": [1.0, 2.5, 4.0], "hour": [7, 8, 9], "open": [True, False, True]})
    chunks = pl.concat([whole, whole.reverse()], rechunk=False)
    for frame in (whole, chunks, chunks.slice(1, 4), whole.clear()):
        assert np.array_equal(_arrow.read(Arrow(frame), "X"), frame.to_numpy().astype(float))
    assert np.array_equal(_arrow.read(Arrow(whole["price"]), "y"), [1.0, 2.5, 4.0])
    singles = whole.select(pl.col("price").cast(pl.Float32))
    assert _arrow.read(Arrow(singles), "X").dtype == np.float32
    bad = {
        "text": pl.DataFrame({"day": ["Mon"]}),
        "times": pl.DataFrame({"day": [datetime.date(2024, 2, 29)]}),
        "categories": pl.DataFrame({"day": pl.Series(["a", "b"]).cast(pl.Categorical)}),
        "a missing value at row 1": pl.DataFrame({"day": [1.0, None]}),
    }
    for words, frame in bad.items():
        with pytest.raises(DataError, match=f"column 'day' of X .*{words}"):
            _arrow.read(Arrow(frame), "X")


def test_an_estimator_takes_arrow_tables_and_their_names():
    rng = np.random.default_rng(3)
    X = pl.DataFrame(rng.normal(size=(40, 2)), schema=["price", "load"])
    y = pl.DataFrame({"power": np.clip(X["price"].to_numpy(), -0.5, 0.5)})
    own = KernelInverseOptimizer(bounds=(-0.5, 0.5)).fit(X, y)
    theirs = KernelInverseOptimizer(bounds=(-0.5, 0.5)).fit(Arrow(X), Arrow(y))
    assert np.array_equal(own.predict(X), theirs.predict(Arrow(X)))
    if hasattr(pl.Schema, "__arrow_c_schema__"):
        named = KernelInverseOptimizer(bounds=(-0.5, 0.5)).fit(Named(X), Named(y))
        assert list(named.feature_names_in_) == ["price", "load"]
        assert named.provenance_["rows"] == own.provenance_["rows"]


def test_columns_of_pyarrow_that_are_no_numbers_are_named():
    pyarrow = pytest.importorskip("pyarrow")
    price, days = [1.0, 2.0, 4.0], [datetime.datetime(2024, 2, day) for day in (1, 2, 3)]
    bad = {
        "the text 'u' at row 0; expected numbers": ["u", "x", "y"],
        "the text 'u' at row 0": pyarrow.array(["u", "x", "y"]).dictionary_encode(),
        "a missing value .NaN. at row 2": [1.0, 2.0, None],
        "dates": days,
        "dates .*days": [day.date() for day in days],
    }
    for words, column in bad.items():
        for columns in ({"price": price, "day": column}, {"day": column}):
            for table in (pyarrow.table(columns), pyarrow.record_batch(columns)):
                with pytest.raises(DataError, match=f"column 'day' of X holds {words}"):
                    KernelInverseOptimizer(bounds=(-1, 1)).fit(table, np.zeros(3))


def test_tables_of_pyarrow_duckdb_and_nanoarrow():
    pyarrow = pytest.importorskip("pyarrow")
    duckdb = pytest.importorskip("duckdb")
    nanoarrow = pytest.importorskip("nanoarrow")
    rng = np.random.default_rng(3)
    X = pl.DataFrame(rng.normal(size=(40, 2)), schema=["price", "load"])
    y = pl.DataFrame({"power": np.clip(X["price"].to_numpy(), -0.5, 0.5)})
    own = KernelInverseOptimizer(bounds=(-0.5, 0.5)).fit(X, y)
    database = duckdb.connect()

    def table(frame: pl.DataFrame) -> Any:
        return pyarrow.table({name: frame[name].to_numpy() for name in frame.columns})

    def relation(frame: pl.DataFrame) -> Any:
        name = "_".join(frame.columns)
        database.register(name, table(frame))
        return database.sql(f"select * from {name}")

    kinds = {
        "table": table,
        "in parts": lambda frame: pyarrow.concat_tables([table(frame[:7]), table(frame[7:])]),
        "reader": lambda frame: table(frame).to_reader(),
        "DuckDB": relation,
        "nanoarrow": lambda frame: nanoarrow.ArrayStream(table(frame)),
    }
    for kind, made in kinds.items():
        theirs = KernelInverseOptimizer(bounds=(-0.5, 0.5)).fit(made(X), made(y))
        assert np.array_equal(own.predict(X), theirs.predict(made(X))), kind
        assert list(theirs.feature_names_in_) == ["price", "load"], kind
        assert theirs.provenance_["rows"] == own.provenance_["rows"], kind
        # Columns in another order never pass in silence.
        with pytest.raises(ValueError, match="feature names"):
            theirs.predict(made(X.select("load", "price")))
