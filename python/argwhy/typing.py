"""Types that signatures share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.floating[Any]]
"""float64, or float32 where the input was."""

ArrayLike: TypeAlias = Any
"""Arrays of NumPy, frames of pandas and polars, lists of lists: whatever NumPy reads as numbers.

Also tables that offer themselves to Arrow (`__arrow_c_stream__`, `__arrow_c_array__`).
"""

Parameters: TypeAlias = Mapping[str, Any]
"""Parameters of an estimator by name."""
