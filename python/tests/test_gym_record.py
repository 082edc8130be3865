"""Recordings: of an environment that draws by itself, and of one that MuJoCo draws."""

from __future__ import annotations

import ctypes.util
import os
import pathlib
import sys
from typing import Any

import gymnasium
import imageio_ffmpeg  # type: ignore[import-untyped]
import numpy as np
import pytest
from PIL import Image

from argwhy.gym import evaluate, make_d4rl_env, record


needs_egl = pytest.mark.skipif(
    sys.platform == "linux" and ctypes.util.find_library("EGL") is None, reason="no libEGL: apt install libegl1"
)


class Canvas(gymnasium.Env[Any, Any]):
    """Fifty steps a second; a line moves by the action and is drawn without OpenGL."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}
    observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (1,), np.float64)
    action_space = gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)

    def __init__(self, render_mode: str | None = "rgb_array", fails: bool = False) -> None:
        self.render_mode, self.fails = render_mode, fails
        self.place, self.steps = np.zeros(1), 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self.place, self.steps = np.zeros(1), 0
        return self.place, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.place, self.steps = self.place + action, self.steps + 1
        return self.place, 1.0, False, self.steps == 30, {}

    def render(self) -> Any:
        if self.fails:
            raise OSError("no paint")
        picture = np.zeros((25, 33, 3), np.uint8)  # odd sides, which mp4 has to survive
        picture[:, self.steps % 33] = 255
        return picture


def still(X: Any) -> Any:  # noqa: N803
    return np.zeros((len(X), 1))


def test_a_gif_at_real_speed(tmp_path: pathlib.Path) -> None:
    made = record(still, Canvas, tmp_path / "canvas.gif", fps=25)
    assert (made.n_frames, made.fps, made.length, made.total) == (16, 25.0, 30, 30.0)
    image: Any
    with Image.open(made.path) as image:
        assert image.format == "GIF" and image.n_frames == 16
        assert image.info["duration"] == 40 and image.size == (33, 25)


def test_an_mp4_of_odd_sides(tmp_path: pathlib.Path) -> None:
    made = record(still, Canvas(), str(tmp_path / "canvas.mp4"), max_steps=10)
    assert (made.length, made.n_frames) == (10, 6)
    frames, _seconds = imageio_ffmpeg.count_frames_and_secs(str(made.path))
    assert frames == 6


def test_what_cannot_be_recorded_says_why(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ValueError, match=r"a recording ends in .gif or .mp4"):
        record(still, Canvas, tmp_path / "canvas.avi")
    with pytest.raises(ValueError, match=r"render_mode=None; recording wants render_mode='rgb_array'"):
        record(still, Canvas(render_mode=None), tmp_path / "canvas.gif")
    with pytest.raises(OSError, match="no paint"):
        record(still, Canvas(fails=True), tmp_path / "canvas.gif")
    with pytest.raises(ValueError, match="fps is positive"):
        record(still, Canvas, tmp_path / "canvas.gif", fps=0)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("ending", "module", "hint"), [("gif", "PIL.Image", "argwhy[gym]"), ("mp4", "imageio_ffmpeg", "argwhy[video]")])
def test_missing_writers_are_named(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, ending: str, module: str, hint: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError) as caught:
        record(still, Canvas, tmp_path / f"canvas.{ending}")
    assert hint in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there is a display")
def test_mujoco_is_told_how_to_draw_for_pictures_alone(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = []
    for name in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Canvas, "render", lambda self: told.append(os.environ.get("MUJOCO_GL")) or np.zeros((9, 9, 3), np.uint8))
    record(still, Canvas, tmp_path / "canvas.gif", max_steps=3)
    # Children would inherit what is left: without EGL they could not even import MuJoCo.
    assert set(told) == {"egl"} and "MUJOCO_GL" not in os.environ


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Gymnasium's half-made viewer, when it is collected
def test_no_opengl_says_what_to_do(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUJOCO_GL", "nonsense")
    with pytest.raises(RuntimeError, match=r"MUJOCO_GL=egl .*apt install libegl1.*MUJOCO_GL=osmesa"):
        record(lambda X: np.zeros((len(X), 3)), "hopper", tmp_path / "hopper.gif", max_steps=2)


@needs_egl
def test_mujoco_draws_what_evaluate_judges(tmp_path: pathlib.Path) -> None:
    def policy(X: Any) -> Any:  # noqa: N803
        return np.zeros((len(X), 3))

    made = record(policy, "hopper", tmp_path / "hopper.gif", fps=5, size=(96, 64))
    judged = evaluate(policy, "hopper", episodes=1)
    assert (made.length, made.total, made.env) == (judged.lengths[0], judged.returns[0], judged.env)
    with Image.open(made.path) as image:
        assert image.size == (96, 64)
        assert np.asarray(image.convert("RGB")).std() > 10.0  # a picture, not a blank
    env: Any = make_d4rl_env("hopper", render_mode="rgb_array")
    assert record(policy, env, tmp_path / "again.gif", max_steps=1).length == 1
    assert np.asarray(env.render()).shape == (480, 480, 3)  # still open


@needs_egl
@pytest.mark.parametrize("task", ["hopper", "walker2d", "halfcheetah"])
def test_the_camera_goes_along(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform == "linux":
        monkeypatch.setenv("MUJOCO_GL", "egl")  # `render` by itself is Gymnasium's, which tries a display first
    env: Any = make_d4rl_env(task, render_mode="rgb_array")
    env.reset(seed=0)
    body = env.unwrapped
    visible: list[int] = []
    for place in (0.0, 20.0):
        position = body.init_qpos.copy()
        position[0] = place
        body.set_state(position, body.init_qvel)
        red, _, blue = np.moveaxis(np.asarray(env.render(), dtype=float), -1, 0)
        visible.append(int((red > blue + 30.0).sum()))  # the robots are of orange wood, the floor is grey and green
    env.close()
    assert visible[0] > 100 and visible[1] > visible[0] / 2
