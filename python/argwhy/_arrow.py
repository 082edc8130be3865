"""Tables that offer themselves as Arrow streams or arrays (the PyCapsule interface).

They are read where they lie: no pyarrow needed, and no copy but the one into the array returned.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import DataError
from .typing import FloatArray

_NUMBERS = dict(c="i1", C="u1", s="i2", S="u2", i="i4", I="u4", l="i8", L="u8", e="f2", f="f4", g="f8")
"""Arrow's letters for numbers, and NumPy's."""

_KINDS = {"u": "text", "U": "text", "v": "text", "z": "bytes", "Z": "bytes", "t": "times", "d": "decimals", "+": "lists or structures", "n": "nothing"}
"""What else a column may hold, by the first letter of its format."""

_MAX_COLUMNS = 1 << 20


class _Schema(ctypes.Structure):
    """``ArrowSchema``."""

    format: bytes | None
    name: bytes | None
    n_children: int
    children: Any
    dictionary: Any
    release: Any


class _Array(ctypes.Structure):
    """``ArrowArray``."""

    length: int
    null_count: int
    offset: int
    buffers: Any
    children: Any
    release: Any


class _Stream(ctypes.Structure):
    """``ArrowArrayStream``."""

    get_schema: Any
    get_next: Any
    get_last_error: Any
    release: Any


_Schema._fields_ = [
    ("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p), ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64), ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)), ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private", ctypes.c_void_p),
]  # fmt: skip
_Array._fields_ = [
    ("length", ctypes.c_int64), ("null_count", ctypes.c_int64), ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64), ("n_children", ctypes.c_int64), ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))), ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))), ("private", ctypes.c_void_p),
]  # fmt: skip
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))), ("private", ctypes.c_void_p),
]  # fmt: skip

_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


def offers(values: Any) -> bool:
    """Whether it is Arrow's, and NumPy does not know it."""
    known = hasattr(values, "__array__") or isinstance(values, type)
    return not known and (hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"))


def names(values: Any) -> list[str] | None:
    """What its columns are called, where it says so without being read."""
    owner: Any = values if hasattr(values, "__arrow_c_schema__") else getattr(values, "schema", None)
    if not offers(values) or not hasattr(owner, "__arrow_c_schema__"):
        return None
    capsule = owner.__arrow_c_schema__()
    schema = _at(capsule, b"arrow_schema", _Schema)
    return None if schema.format != b"+s" else [_name(child) for child in _children(schema)]


def read(values: Any, what: str) -> FloatArray:
    """Its numbers, a row a row; of an array without columns, one axis.

    In single precision where every column is.
    """
    if hasattr(values, "__arrow_c_stream__"):
        capsule = values.__arrow_c_stream__()
        return _read_stream(_at(capsule, b"arrow_array_stream", _Stream), what)
    schema_capsule, capsule = values.__arrow_c_array__()
    schema, array = _at(schema_capsule, b"arrow_schema", _Schema), _at(capsule, b"arrow_array", _Array)
    columns = _Columns(schema, what)
    columns.check()
    return columns.joined([columns.of(array)])


def _read_stream(stream: _Stream, what: str) -> FloatArray:
    schema = _Schema()
    _call(stream, stream.get_schema, schema, what)
    try:
        columns = _Columns(schema, what)
        columns.check()
        parts: list[NDArray[Any]] = []
        while True:
            array = _Array()
            _call(stream, stream.get_next, array, what)
            if not array.release:
                return columns.joined(parts)
            try:
                parts.append(columns.of(array))
            finally:
                array.release(ctypes.byref(array))
    finally:
        schema.release(ctypes.byref(schema))
        stream.release(ctypes.byref(stream))


class _Columns:
    """What the columns of a table are, and their numbers."""

    def __init__(self, schema: _Schema, what: str) -> None:
        self.is_table = schema.format == b"+s"
        self.what = what
        self.fields = _children(schema) if self.is_table else [schema]
        formats = [(field.format or b"").decode("ascii", "replace") for field in self.fields]
        self.kinds = ["bool" if f == "b" else _NUMBERS.get(f) for f in formats]
        self.formats = formats
        single = bool(formats) and all(f in "ef" for f in formats)
        self.dtype = np.dtype(np.float32 if single else np.float64)

    def label(self, place: int) -> str:
        """What to call a column."""
        return f"column {_name(self.fields[place])!r} of {self.what}" if self.is_table else self.what

    def check(self) -> None:
        """Refuses columns that are no numbers."""
        for place, (kind, letters) in enumerate(zip(self.kinds, self.formats)):
            if kind is None or self.fields[place].dictionary:
                held = "categories" if self.fields[place].dictionary else _KINDS.get(letters[:1], f"Arrow's {letters!r}")
                raise DataError(
                    f"{self.label(place)} holds {held}; expected numbers: encode it, such as by one column of 0 and 1 a category, "
                    "or leave the column out"
                )

    def of(self, array: _Array) -> NDArray[Any]:
        """The numbers of one batch."""
        parts = [array.children[i].contents for i in range(len(self.fields))] if self.is_table else [array]
        out = np.empty((array.length, len(parts)), dtype=self.dtype)
        for place, part in enumerate(parts):
            start = part.offset + (array.offset if self.is_table else 0)
            column, present = self._column(part, place, start, array.length)
            if present is not None and not present.all():
                row = int(np.argmin(present))
                raise DataError(f"{self.label(place)} holds a missing value at row {row} of its batch; fill it in or leave that row out")
            out[:, place] = column
        return out

    def _column(self, part: _Array, place: int, start: int, length: int) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
        """A column where it lies, and which of its values are there."""
        kind = self.kinds[place]
        if kind == "bool":
            values: NDArray[Any] = _bits(part.buffers[1], start, length)
        else:
            dtype = np.dtype(kind)
            values = _view(part.buffers[1], (start + length) * dtype.itemsize).view(dtype)[start:]
        has_gaps = part.null_count != 0 and part.buffers[0]
        return values, _bits(part.buffers[0], start, length) if has_gaps else None

    def joined(self, parts: list[NDArray[Any]]) -> FloatArray:
        """All batches."""
        if not parts:
            parts = [np.empty((0, len(self.fields)), dtype=self.dtype)]
        whole = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return whole if self.is_table else whole[:, 0]


def _call(stream: _Stream, function: Any, out: ctypes.Structure, what: str) -> None:
    code = function(ctypes.byref(stream), ctypes.byref(out))
    if code != 0:
        said = stream.get_last_error(ctypes.byref(stream)) or f"error {code}".encode()
        raise DataError(f"{what} cannot be read as an Arrow stream: {said.decode('utf-8', 'replace')}")


def _at(capsule: Any, name: bytes, kind: Any) -> Any:
    """The structure in a capsule, which it belongs to."""
    return kind.from_address(_pointer(capsule, name))


def _children(schema: _Schema) -> list[_Schema]:
    if schema.n_children > _MAX_COLUMNS:
        raise DataError(f"an Arrow table with {schema.n_children} columns is more than argwhy reads")
    return [schema.children[i].contents for i in range(schema.n_children)]


def _name(schema: _Schema) -> str:
    return (schema.name or b"").decode("utf-8", "replace")


def _view(address: int | None, n_bytes: int) -> NDArray[np.uint8]:
    """Bytes at an address; none have none."""
    if n_bytes == 0 or not address:
        return np.empty(0, dtype=np.uint8)
    lying: Any = (ctypes.c_uint8 * n_bytes).from_address(address)
    return np.frombuffer(lying, dtype=np.uint8)


def _bits(address: int | None, start: int, length: int) -> NDArray[np.bool_]:
    packed = _view(address, (start + length + 7) // 8)
    return np.unpackbits(packed, bitorder="little")[start : start + length].astype(bool)
