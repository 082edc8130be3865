"""Exceptions and warnings, with the words the command uses."""

from __future__ import annotations

import sys
from typing import Any

__all__ = [
    "BackendError",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataNotFoundError",
    "InternalError",
    "LimitsWarning",
    "MissingExtraError",
    "ModelFileError",
    "ModelNotFoundError",
    "NotFittedError",
]


class DataError(ValueError):
    """Arrays or data files that can't be worked with; the message says where and what to do."""


class DataNotFoundError(DataError, FileNotFoundError):
    """There is no data file at the path."""


class BackendError(DataError):
    """The machine that kernel values live on could not go on: a GPU, or a cluster."""


class ClusterError(RuntimeError):
    """Workers could not do what they were asked for; the message says which and why.

    A fit ends with a :class:`BackendError` in the same words.
    """


class ModelFileError(ValueError, OSError):
    """A model file that can't be read or written: foreign, damaged, too new, or refused."""


class ModelNotFoundError(ModelFileError, FileNotFoundError):
    """There is no model at the path."""


class InternalError(RuntimeError):
    """A mistake of argwhy's own, caught before it could take the interpreter along."""


class MissingExtraError(ImportError):
    """Something needs a package that argwhy itself does without."""


class NotFittedError(ValueError, AttributeError):
    """The estimator has learned nothing yet.

    In sessions with scikit-learn it is scikit-learn's ``NotFittedError`` too.
    """


class ConvergenceWarning(UserWarning):
    """A fit stopped short of its tolerance.

    In sessions with scikit-learn it is scikit-learn's ``ConvergenceWarning`` too.
    """


class LimitsWarning(UserWarning):
    """Limits that may not have been meant: none were given, or decisions lie outside theirs."""


def _also_of_sklearn(own: type[Any]) -> type[Any]:
    """``own``, or where scikit-learn is loaded a class that is its class of that name as well.

    Who filters or catches by scikit-learn's classes has imported it, and importing it for the
    others would take longer than most fits.
    """
    module = sys.modules.get("sklearn.exceptions")
    theirs = getattr(module, own.__name__, None)
    if theirs is None:
        return own
    if own not in _joined:
        _joined[own] = type(own.__name__, (own, theirs), {"__module__": own.__module__, "__doc__": own.__doc__})
    return _joined[own]


_joined: dict[type[Any], type[Any]] = {}


def not_fitted(message: str) -> Exception:
    """A ``NotFittedError``."""
    error: Exception = _also_of_sklearn(NotFittedError)(message)
    return error


def convergence_warning(message: str) -> Warning:
    """A ``ConvergenceWarning``."""
    warning: Warning = _also_of_sklearn(ConvergenceWarning)(message)
    return warning
