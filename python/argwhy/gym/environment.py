"""From what a user calls an environment to environments that can be stepped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium

from .d4rl import build, environment_id, task_name

AnyEnv: TypeAlias = "gymnasium.Env[Any, Any]"
EnvLike: TypeAlias = "str | Callable[[], AnyEnv] | AnyEnv"
"""An id of Gymnasium's, a D4RL name such as `'hopper'`, an environment, or what makes one."""


def make_env(env: EnvLike, **options: Any) -> AnyEnv:
    """A fresh environment, or the very one given; `options` (as `render_mode`) go with names."""
    given: Any = env  # what is annotated need not be what comes
    if isinstance(given, str):
        return gymnasium.make(_identifier(given), **options)
    if isinstance(given, gymnasium.Env):
        return given
    if isinstance(given, gymnasium.vector.VectorEnv):
        raise TypeError("argwhy.gym makes its own batches: give the environment's id or a function that makes one")
    if callable(given):
        made: Any = given()
        if not isinstance(made, gymnasium.Env):
            raise TypeError(f"the function that makes environments gave {type(made).__name__}, not a gymnasium.Env")
        return made
    raise TypeError(f"an environment is an id, a function that makes one, or a gymnasium.Env; this is {type(given).__name__}")


def is_shared(env: EnvLike) -> bool:
    """Whether there is only this one, owned by the user: not to be copied, not to be closed.

    Its `spec` would make another, but not with what was changed since: `env.unwrapped.model` is
    often patched by hand.
    """
    return isinstance(env, gymnasium.Env)


def env_name(env: AnyEnv) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def takes_size(name: str) -> bool:
    """Whether the environment of this name is MuJoCo's, which can be told how large to draw."""
    spec = gymnasium.registry.get(_identifier(name))
    entry = "" if spec is None else str(spec.entry_point)
    return "mujoco" in entry or entry.startswith(build.__module__)


def _identifier(name: str) -> str:
    # D4RL's names are no ids of Gymnasium's (`hopper`, `hopper-medium-v2`); what is one means what
    # Gymnasium means by it
    if name in gymnasium.registry or task_name(name) is None or name[:1].isupper():
        return name
    return environment_id(name)
