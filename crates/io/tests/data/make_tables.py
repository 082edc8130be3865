"""Makes the tables in `tables/`, with the libraries whose formats they are.

    python make_tables.py        # numpy, pandas, polars, pyarrow, openpyxl, odfpy

Values are those of make.py: signals[i, j] = i + j / 8, decisions[i, j] = i / 4 - j.
"""

from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq

HERE = Path(__file__).parent / "tables"
N = 40
I = np.arange(N)
NUMBERS = {f"signals_{j}": I + j / 8 for j in range(3)} | {f"decisions_{j}": I / 4 - j for j in range(2)}
DAYS = ["Mon", "Tue", "Wed"]
MORE = {
    "day": pa.array([DAYS[i % 3] for i in I]),
    "when": pa.array(I * 3_600_000, pa.timestamp("ms")),
    "flag": pa.array(I % 10 == 9),
    "gaps": pa.array([None if i % 4 == 1 else float(i) for i in I]),
    "long": pa.array([f"a name that is longer than twelve bytes, {i % 5}" for i in I]),
    "list": pa.array([[float(i)] * (i % 3) for i in I]),
}


def table(dtype=pa.float64()):
    return pa.table({name: pa.array(values).cast(dtype) for name, values in NUMBERS.items()} | MORE)


def parquet():
    pq.write_table(table(), HERE / "snappy.parquet", row_group_size=16)
    for codec in ("gzip", "zstd", "lz4", "none"):
        pq.write_table(table(pa.float32()), HERE / f"{codec}.parquet", compression=codec, use_dictionary=False)
    pq.write_table(table(), HERE / "second.parquet", data_page_version="2.0", compression="zstd", row_group_size=25)
    whole = {f"i{w}": pa.array(I - 20).cast(f"int{w}") for w in (8, 16, 32, 64)}
    whole |= {f"u{w}": pa.array(I).cast(f"uint{w}") for w in (8, 16, 32, 64)}
    whole |= {
        "half": pa.array(I.astype(np.float16)),
        "decimal": pa.array([Decimal(int(i)) for i in I], pa.decimal128(9, 2)),
        "date": pa.array(I, pa.int32()).cast(pa.date32()),
        "bool": pa.array(I % 3 == 0),
        "inner": pa.array([{"a": float(i), "b": None if i == 3 else i} for i in I]),
    }
    pq.write_table(pa.table(whole), HERE / "types.parquet", store_decimal_as_integer=True)
    split = {"f": "BYTE_STREAM_SPLIT", "d": "BYTE_STREAM_SPLIT", "i": "DELTA_BINARY_PACKED", "s": "DELTA_LENGTH_BYTE_ARRAY"}
    columns = {
        "f": pa.array(I / 8).cast("float32"),
        "d": pa.array(I / 8),
        "i": pa.array((I * 7919) % 101 - 50),
        "s": pa.array([DAYS[i % 3] for i in I]),
    }
    pq.write_table(pa.table(columns), HERE / "encodings.parquet", use_dictionary=False, column_encoding=split)
    pl.from_arrow(table()).write_parquet(HERE / "polars.parquet")


def arrow():
    feather.write_feather(table(), HERE / "lz4.feather", chunksize=16)
    feather.write_feather(table(pa.float32()), HERE / "zstd.feather", compression="zstd")
    feather.write_feather(table(), HERE / "plain.feather", compression="uncompressed")
    rows = np.stack([NUMBERS[f"signals_{j}"] for j in range(3)], axis=1).ravel()
    lists = pa.FixedSizeListArray.from_arrays(pa.array(rows), 3)
    columns = {"day": MORE["day"].dictionary_encode(), "signals": lists, "decisions": pa.array(NUMBERS["decisions_0"])}
    with pa.ipc.new_stream(HERE / "stream.arrow", pa.table(columns).schema) as out:
        out.write_table(pa.table(columns), max_chunksize=15)
    pl.from_arrow(table()).write_ipc(HERE / "polars.arrow")
    pl.from_arrow(table()).write_ipc(HERE / "polars-zstd.arrow", compression="zstd")


def text():
    lines = "a,b\n" + "".join(f"{i},{i / 4}\n" for i in range(300))
    with pa.output_stream(HERE / "days.csv.zst", compression="zstd") as out:
        out.write(lines.encode())


def sheets():
    frame = pd.DataFrame(NUMBERS | {"day": [DAYS[i % 3] for i in I], "a & b": I})
    other = pd.DataFrame({"note": ["nothing here"]})
    with pd.ExcelWriter(HERE / "book.xlsx", engine="openpyxl") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        other.to_excel(book, sheet_name="notes", index=False)
        frame.iloc[:5].to_excel(book, sheet_name="moved", index=False, startrow=3, startcol=2)
    pd.DataFrame().to_excel(HERE / "empty.xlsx", index=False)
    with pd.ExcelWriter(HERE / "book.ods", engine="odf") as book:
        frame.to_excel(book, sheet_name="data", index=False)
        other.to_excel(book, sheet_name="notes", index=False)
        frame.iloc[:5].to_excel(book, sheet_name="moved", index=False, startrow=3, startcol=2)


HERE.mkdir(exist_ok=True)
parquet()
arrow()
text()
sheets()
