"""The environments D4RL was recorded in.

MuJoCo has changed since: Gymnasium's Hopper, Walker2d and HalfCheetah move a little differently
from those behind the data, and a policy learned from the data is judged in a world its expert never
saw. Two things changed, and `restore_physics` undoes both:

1. The solid of a capsule (radius r, half length h) was taken for a cylinder of height 2h + r; mass
   and inertia are exact today.
2. Two geoms touched at a distance of max(margin_1, margin_2); since some release at margin_1 +
   margin_2. Only Hopper has margins, all alike.

With them undone, D4RL's transitions come out again to the rounding of their float32
(`tests/test_gym_d4rl.py` keeps the facts). The base is Gymnasium's `-v4`: `-v5` changed the
friction of Walker2d's left foot and the reward of the last step.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Generator
from typing import TYPE_CHECKING, Any, cast

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator

from .._extras import extra

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

DENSITY = 1000.0  # of every geom in the three models, kg/m³: MuJoCo's default, none sets another

# Gymnasium's class, and the total mass its model prescribes (`settotalmass`, which MuJoCo applies
# when compiling, before us)
_MODELS: dict[str, tuple[str, float | None]] = {
    "hopper": ("gymnasium.envs.mujoco.hopper_v4:HopperEnv", None),
    "walker2d": ("gymnasium.envs.mujoco.walker2d_v4:Walker2dEnv", None),
    "halfcheetah": ("gymnasium.envs.mujoco.half_cheetah_v4:HalfCheetahEnv", 14.0),
}
EPISODE_STEPS = 1000

# Average returns of a random policy and of D4RL's expert: 0 and 100 of a normalised score (D4RL,
# infos.py)
REFERENCE_RETURNS: dict[str, tuple[float, float]] = {
    "hopper": (-20.272305, 3234.3),
    "walker2d": (1.629008, 4592.3),
    "halfcheetah": (-280.178953, 12135.0),
}


def _mujoco() -> Any:
    """The engine, asked for when a world of its kind is: others do without. It has no types."""
    return extra("mujoco", "a D4RL environment", "mujoco")


def task_name(name: str) -> str | None:
    """`'hopper'` for `'hopper'`, `'hopper-medium-v2'`, `'Hopper-v4'` and the like.

    None where D4RL has no reference returns.

    >>> task_name("hopper-medium-expert-v2"), task_name("argwhy/D4rlWalker2d-v2")
    ('hopper', 'walker2d')
    >>> task_name("Pendulum-v1") is None
    True
    """
    first = name.rsplit("/", 1)[-1].lower().removeprefix("d4rl").split("-")[0]
    return first if first in REFERENCE_RETURNS else None


def d4rl_score(name: str, mean_return: float) -> float:
    """D4RL's normalised score: 0 is a random policy, 100 D4RL's expert.

    >>> round(d4rl_score("hopper", 3234.3), 6)
    100.0
    """
    lowest, highest = REFERENCE_RETURNS[_known_task(name)]
    return 100.0 * (mean_return - lowest) / (highest - lowest)


def make_d4rl_env(name: str, render_mode: str | None = None) -> gymnasium.Env[Any, Any]:
    """Hopper, Walker2d or HalfCheetah with the physics D4RL was recorded on, 1000 steps an episode.

    `name`: `'hopper'`, `'walker2d'`, `'halfcheetah'`, or a dataset's, as `'hopper-medium-v2'`.
    `render_mode` as Gymnasium's. The environment's `spec` makes another one like it:
    `gymnasium.make(env.spec)`.

    >>> env = make_d4rl_env("hopper-expert-v2")
    >>> round(float(env.unwrapped.model.body_mass.sum()), 4), env.spec.max_episode_steps
    (15.265, 1000)
    """
    return gymnasium.make(environment_id(name), render_mode=render_mode)


def environment_id(name: str) -> str:
    """The Gymnasium id under which this module registers `name`."""
    return _ids()[_known_task(name)]


def register() -> None:
    """Tell Gymnasium about the three environments; done on import, harmless twice."""
    for task, identifier in _ids().items():
        if identifier not in gymnasium.registry:
            gymnasium.register(
                id=identifier,
                entry_point=f"{__name__}:build",
                kwargs={"task": task},
                max_episode_steps=EPISODE_STEPS,
                # The checker looks at every step of environments under development; these are not,
                # and it costs a tenth.
                disable_env_checker=True,
            )


def build(task: str, **options: Any) -> gymnasium.Env[Any, Any]:
    """What Gymnasium calls to make a registered environment; `make_d4rl_env` limits steps too."""
    _mujoco()
    entry_point, total_mass = _MODELS[task]
    try:
        constructor = load_env_creator(entry_point)
    except ImportError as error:
        if error.name is not None and not error.name.startswith("gymnasium"):
            extra(error.name, "a D4RL environment", "mujoco")  # gymnasium without what its models draw with
        raise ImportError(f"gymnasium {gymnasium.__version__} has no {entry_point} any more; `pip install 'gymnasium<2'`") from error
    if "camera_id" not in options:
        options.setdefault("camera_name", "track")  # Gymnasium's own choice stands still, and a hopper leaves the picture
    with _quiet_compiler():
        env = constructor(**options)
    restore_physics(env.unwrapped, total_mass)
    return cast("gymnasium.Env[Any, Any]", env)


@contextlib.contextmanager
def _quiet_compiler() -> Generator[None, None, None]:
    """MuJoCo 4 deplores the cheetah's `settotalmass`, once an environment.

    It does so on the terminal and in a file MUJOCO_LOG.TXT.
    """
    mujoco = _mujoco()
    before = mujoco.get_mju_user_warning()

    def pass_on(message: str) -> None:
        if "settotalmass" not in str(message):
            (before or warnings.warn)(str(message))

    mujoco.set_mju_user_warning(pass_on)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(before)


def restore_physics(env: Any, total_mass: float | None = None) -> None:
    """Give a fresh MuJoCo environment of capsules the old masses, inertias and contact distances.

    `total_mass` (kg) scales the bodies to that sum, as the model's `settotalmass` did after the old
    formula.
    """
    model = env.model
    for body in range(1, model.nbody):  # 0 is the world
        solids = [_old_capsule(model, geom) for geom in range(model.ngeom) if model.geom_bodyid[geom] == body]
        if solids:
            _set_inertia(model, body, solids)
    if total_mass is not None:
        scale = total_mass / model.body_mass[1:].sum()
        model.body_mass[1:] *= scale
        model.body_inertia[1:] *= scale
    if margins_add_up():
        # m/2 + m/2 = max(m, m): exact where all margins are alike
        if np.unique(model.geom_margin).size > 1:
            raise ValueError("restore_physics: the geoms' margins differ; halving them would not restore max(m1, m2)")
        model.geom_margin *= 0.5
    _mujoco().mj_setConst(model, env.data)  # everything MuJoCo derives from masses


@functools.cache
def margins_add_up() -> bool:
    """Whether this MuJoCo adds the margins of two geoms. Asked of two spheres: releases differ."""
    mujoco = _mujoco()
    sphere = '<body pos="{} 0 0"><freejoint/><geom size="1" margin="0.1"/></body>'
    model = mujoco.MjModel.from_xml_string(
        f"<mujoco><worldbody>{sphere.format(0)}{sphere.format(2.15)}</worldbody></mujoco>"
    )
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    return bool(data.ncon > 0)


def _old_capsule(model: Any, geom: int) -> tuple[float, Array, Array]:
    """Mass, centre and inertia about it, in the body's frame, of a capsule taken as a cylinder.

    The cylinder has height 2h + r.
    """
    mujoco = _mujoco()
    if model.geom_type[geom] != mujoco.mjtGeom.mjGEOM_CAPSULE:
        raise ValueError(f"restore_physics: geom {geom} is no capsule; only models made of capsules can be restored")
    radius, half_length = model.geom_size[geom, :2]
    height = 2.0 * half_length + radius
    mass = DENSITY * np.pi * radius**2 * height
    across, along = mass * (3.0 * radius**2 + height**2) / 12.0, mass * radius**2 / 2.0
    axes: Array = np.empty((3, 3))
    mujoco.mju_quat2Mat(axes.ravel(), model.geom_quat[geom])  # a view: written in place
    return float(mass), model.geom_pos[geom].copy(), (axes * [across, across, along]) @ axes.T


def _set_inertia(model: Any, body: int, solids: list[tuple[float, Array, Array]]) -> None:
    """One rigid body out of solids: moments about the common centre (Steiner), principal axes."""
    total = sum(mass for mass, _, _ in solids)
    centre = np.sum([mass * position for mass, position, _ in solids], axis=0) / total
    inertia = np.zeros((3, 3))
    for mass, position, own in solids:
        arm = position - centre
        inertia += own + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    moments, axes = np.linalg.eigh(inertia)
    moments, axes = moments[::-1], axes[:, ::-1].copy()  # largest first, as MuJoCo's compiler has them
    if np.linalg.det(axes) < 0:
        axes[:, 0] *= -1.0  # a rotation, not a reflection
    rotation = np.empty(4)
    _mujoco().mju_mat2Quat(rotation, axes.ravel())
    model.body_mass[body] = total
    model.body_ipos[body] = centre
    model.body_inertia[body] = moments
    model.body_iquat[body] = rotation
    # The compiler notes which frames coincide, to skip work, and these moved
    model.body_sameframe[body] = 0
    model.geom_sameframe[model.geom_bodyid == body] = 0
    model.site_sameframe[model.site_bodyid == body] = 0


def _ids() -> dict[str, str]:
    return {"hopper": "argwhy/D4rlHopper-v2", "walker2d": "argwhy/D4rlWalker2d-v2", "halfcheetah": "argwhy/D4rlHalfCheetah-v2"}


def _known_task(name: str) -> str:
    task = task_name(name)
    if task is None:
        raise ValueError(f"no D4RL environment {name!r}: there are {', '.join(REFERENCE_RETURNS)}, and their datasets' names")
    return task


register()
