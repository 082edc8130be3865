"""Parameters the way scikit-learn reads and sets them, without scikit-learn."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

Self = TypeVar("Self", bound="Parametrised")


def _signature(cls: type[Any]) -> dict[str, Any]:
    """Names and defaults of the constructor's parameters."""
    found = inspect.signature(cls.__init__).parameters.values()
    return {p.name: p.default for p in found if p.name != "self"}


def _same(a: Any, b: Any) -> bool:
    try:
        return type(a) is type(b) and bool(a == b)
    except ValueError:
        return a is b


class Parametrised:
    """An estimator whose constructor stores its arguments and does nothing else."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Every parameter by name. ``deep`` changes nothing: no parameter is an estimator."""
        return {name: getattr(self, name) for name in _signature(type(self))}

    def set_params(self: Self, **params: Any) -> Self:
        """Sets parameters by name; an unknown one is refused before any is set."""
        known = _signature(type(self))
        for name in params:
            if name not in known:
                raise ValueError(
                    f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {sorted(known)!r}."
                )
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = _signature(type(self))
        said = {name: value for name, value in self.get_params().items() if not _same(value, defaults[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in said.items())})"
