"""Packages that only some functions need."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import MissingExtraError


def extra(module: str, what: str, extra_name: str) -> Any:
    """Imports ``module``, or says in one line how to get it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.split(".", 1)[0]
        raise MissingExtraError(
            f"{what} needs {package}, which is not installed: pip install 'argwhy[{extra_name}]'", name=package
        ) from error
