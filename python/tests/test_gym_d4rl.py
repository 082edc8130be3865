"""The physics D4RL was recorded on, against facts that do not come from our own formulas."""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

import gymnasium
import numpy as np
import pytest

from argwhy.errors import MissingExtraError
from argwhy.gym import d4rl_score, make_d4rl_env
from argwhy.gym.d4rl import REFERENCE_RETURNS, restore_physics

mujoco: Any = importlib.import_module("mujoco")  # comes without types
TASKS = sorted(REFERENCE_RETURNS)


def model_of(env: Any) -> Any:
    return env.unwrapped.model


def inertia_matrix(model: Any, body: int) -> Any:
    axes = np.empty((3, 3))
    mujoco.mju_quat2Mat(axes.ravel(), model.body_iquat[body])
    return axes @ np.diag(model.body_inertia[body]) @ axes.T


def as_cylinders(model: Any) -> Any:
    """Compiled by MuJoCo itself: each body alone, a cylinder of height 2h + r for each capsule."""
    bodies = ""
    for body in range(1, model.nbody):
        geoms = ""
        for geom in np.flatnonzero(model.geom_bodyid == body):
            radius, half_length = model.geom_size[geom, :2].tolist()
            place, turn = (" ".join(map(repr, values.tolist())) for values in (model.geom_pos[geom], model.geom_quat[geom]))
            geoms += f'<geom type="cylinder" size="{radius!r} {half_length + radius / 2!r}" pos="{place}" quat="{turn}"/>'
        bodies += f"<body>{geoms}</body>"
    return mujoco.MjModel.from_xml_string(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")


@pytest.mark.parametrize("task", TASKS)
def test_bodies_weigh_what_cylinders_weigh(task: str) -> None:
    model = model_of(make_d4rl_env(task))
    expected = as_cylinders(model)
    # The cheetah's model prescribes 14 kg; the others weigh what their solids weigh.
    scale = 14.0 / expected.body_mass.sum() if task == "halfcheetah" else 1.0
    for body in range(1, model.nbody):
        np.testing.assert_allclose(model.body_mass[body], scale * expected.body_mass[body], rtol=1e-9)
        np.testing.assert_allclose(model.body_ipos[body], expected.body_ipos[body], atol=1e-12)
        np.testing.assert_allclose(inertia_matrix(model, body), scale * inertia_matrix(expected, body), rtol=1e-9, atol=1e-12)


def test_hopper_has_its_published_masses() -> None:
    """Of the old engine's Hopper: torso, thigh, leg, foot."""
    masses = model_of(make_d4rl_env("hopper")).body_mass[1:]
    np.testing.assert_allclose(masses, [3.53429174, 3.92699082, 2.71433605, 5.08938010], rtol=1e-8)


def touches(env: Any, gap: float) -> bool:
    """Whether the hopper's foot, `gap` metres above the floor, is in contact."""
    env.reset(seed=0)
    model, data = env.model, env.data
    floor, foot = model.geom("floor").id, model.geom("foot_geom").id
    env.set_state(env.init_qpos, env.init_qvel)
    height = mujoco.mj_geomDistance(model, data, floor, foot, 10.0, np.zeros(6))
    position = env.init_qpos.copy()
    position[1] += gap - height
    env.set_state(position, env.init_qvel)
    return bool(data.ncon > 0)


def test_contact_begins_at_one_margin() -> None:
    hopper = make_d4rl_env("hopper").unwrapped
    assert touches(hopper, 0.0009)
    assert not touches(hopper, 0.0011)


@pytest.mark.parametrize("task", TASKS)
def test_geoms_are_where_their_bodies_are(task: str) -> None:
    """MuJoCo places geoms by shortcuts that the compiler chose for the masses it knew."""
    env: Any = make_d4rl_env(task)
    env.reset(seed=1)
    env.action_space.seed(1)
    for _ in range(20):
        env.step(env.action_space.sample())
    model, data = model_of(env), env.unwrapped.data
    for geom in range(model.ngeom):
        body = model.geom_bodyid[geom]
        frame = data.xmat[body].reshape(3, 3)
        axes = np.empty((3, 3))
        mujoco.mju_quat2Mat(axes.ravel(), model.geom_quat[geom])
        np.testing.assert_allclose(data.geom_xpos[geom], data.xpos[body] + frame @ model.geom_pos[geom], atol=1e-9)
        np.testing.assert_allclose(data.geom_xmat[geom].reshape(3, 3), frame @ axes, atol=1e-9)


def test_names() -> None:
    for name in ("hopper", "Hopper", "hopper-medium-v2", "hopper-medium-expert-v2", "Hopper-v4"):
        spec = make_d4rl_env(name).spec
        assert spec is not None and spec.id == "argwhy/D4rlHopper-v2"
    with pytest.raises(ValueError, match=r"no D4RL environment 'ant': there are hopper, walker2d, halfcheetah"):
        make_d4rl_env("ant")


@pytest.mark.parametrize("task", TASKS)
def test_the_spec_makes_another_like_it(task: str) -> None:
    env = make_d4rl_env(task)
    assert env.spec is not None
    copy = gymnasium.make(env.spec)
    assert copy.spec is not None and copy.spec.max_episode_steps == 1000
    np.testing.assert_array_equal(model_of(copy).body_inertia, model_of(env).body_inertia)


def test_scores_are_d4rls() -> None:
    assert d4rl_score("hopper", -20.272305) == 0.0
    assert d4rl_score("walker2d-medium-v2", 4592.3) == 100.0
    assert d4rl_score("halfcheetah", (12135.0 - 280.178953) / 2) == pytest.approx(50.0)


def test_only_capsules_can_be_restored() -> None:
    with pytest.raises(ValueError, match="only models made of capsules"):
        restore_physics(gymnasium.make("Ant-v5").unwrapped)


@pytest.mark.parametrize("task", TASKS)
def test_making_one_says_and_leaves_nothing(
    task: str, recwarn: pytest.WarningsRecorder, capfd: pytest.CaptureFixture[str], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_d4rl_env(task).reset(seed=0)
    assert not [str(warning.message) for warning in recwarn]
    assert capfd.readouterr() == ("", "")
    assert not list(tmp_path.iterdir())  # MuJoCo logs into the current folder


def test_what_gymnasium_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gymnasium without imageio was said to be too new."""
    d4rl = importlib.import_module("argwhy.gym.d4rl")

    def fails(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'imageio_gone'", name="imageio_gone")

    monkeypatch.setattr(d4rl, "load_env_creator", fails)
    with pytest.raises(MissingExtraError, match=r"needs imageio_gone.*argwhy\[mujoco\]"):
        d4rl.build("hopper")

    def renamed(name: str) -> Any:
        raise ModuleNotFoundError("No module named 'gymnasium.envs.mujoco.hopper_v4'", name="gymnasium.envs.mujoco.hopper_v4")

    monkeypatch.setattr(d4rl, "load_env_creator", renamed)
    with pytest.raises(ImportError, match="gymnasium<2"):
        d4rl.build("hopper")
