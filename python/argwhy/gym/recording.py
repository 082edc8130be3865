"""One episode as a picture that moves."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .._extras import extra
from .environment import AnyEnv, EnvLike, env_name, is_shared, make_env, takes_size
from .episodes import Episode, whole_number
from .policy import Decider, Policy

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Frame = NDArray[np.uint8]

NO_OPENGL = (
    "no picture: OpenGL is missing or has no display. Without a display set MUJOCO_GL=egl (Debian, Ubuntu: apt install libegl1) "
    "or MUJOCO_GL=osmesa (apt install libosmesa6) before Python starts"
)


@dataclass(frozen=True)
class Recording:
    """What was recorded, and how the episode went."""

    path: pathlib.Path
    env: str
    seed: int
    n_frames: int
    fps: float
    total: float
    """The episode's return."""
    length: int
    """The episode's steps; not all of them are frames."""


def record(
    policy: Policy,
    env: EnvLike,
    path: str | os.PathLike[str],
    *,
    seed: int = 0,
    max_steps: int | None = None,
    fps: float = 25.0,
    size: tuple[int, int] = (320, 320),
) -> Recording:
    """Render the episode that `evaluate` with this seed begins with into a .gif or .mp4.

    It plays at real speed.

    Parameters
    ----------
    policy:
        As for `evaluate`.
    env:
        As for `evaluate`. What is not a name has to render arrays:
        ``make_d4rl_env("hopper", render_mode="rgb_array")``.
    path:
        Ends in ``.gif`` or ``.mp4``; the ending chooses the format. An existing file is replaced.
    seed:
        The environment is reset with it.
    max_steps:
        Stop there; the whole episode unless said.
    fps:
        Pictures a second, about; steps in between are not rendered.
    size:
        Width and height of the picture, for environments of MuJoCo's given by name.

    Without a display MuJoCo is told to draw with EGL, unless MUJOCO_GL says otherwise.
    """
    path = pathlib.Path(path)
    write = _writer_for(path)  # before an episode is run for nothing
    seed = whole_number(seed, "seed", 0)
    if max_steps is not None:
        max_steps = whole_number(max_steps, "max_steps", 1)
    if not fps > 0:
        raise ValueError(f"fps is positive; this is {fps}")
    owned = not is_shared(env)
    one = _rendering(env, size)
    try:
        every, shown = _frames_to_keep(one, fps)
        with _drawing_without_display():
            episode, frames = _film(policy, one, seed, every, max_steps)
        write(path, frames, shown)
        return Recording(path, env_name(one), seed, len(frames), shown, episode.total, episode.length)
    finally:
        if owned:
            one.close()


def _rendering(env: EnvLike, size: tuple[int, int]) -> AnyEnv:
    """An environment whose `render` gives arrays."""
    if isinstance(env, str):
        width, height = size
        # The camera goes along where the model has one that does
        options: dict[str, Any] = {"width": width, "height": height, "camera_name": "track"} if takes_size(env) else {}
        return make_env(env, render_mode="rgb_array", **options)
    one = make_env(env)
    if one.render_mode != "rgb_array":
        raise ValueError(f"the environment was made with render_mode={one.render_mode!r}; recording wants render_mode='rgb_array'")
    return one


def _frames_to_keep(env: AnyEnv, fps: float) -> tuple[int, float]:
    """Every how manyeth step is a frame, and how many frames a second that makes at real speed."""
    steps_a_second = float(env.metadata.get("render_fps") or 30.0)
    every = max(1, round(steps_a_second / fps))
    return every, steps_a_second / every


def _film(policy: Policy, env: AnyEnv, seed: int, every: int, max_steps: int | None) -> tuple[Episode, list[Frame]]:
    decide = Decider(policy, env)
    episode = Episode(0, env, seed)
    frames = [_picture(env)]
    while not episode.over and (max_steps is None or episode.length < max_steps):
        episode.step(decide([episode.observation])[0])
        if episode.length % every == 0:
            frames.append(_picture(env))
    return episode, frames


def _picture(env: AnyEnv) -> Frame:
    try:
        frame: Any = env.render()
    except Exception as error:  # each backend of OpenGL fails with errors of its own
        if hasattr(env.unwrapped, "mujoco_renderer"):
            raise RuntimeError(f"{NO_OPENGL} ({type(error).__name__}: {error})") from error
        raise
    picture: Frame = frame
    return picture


@contextlib.contextmanager
def _drawing_without_display() -> Generator[None, None, None]:
    """Gymnasium tries GLFW first and takes its failure for success where there is no display.

    It reads the variable at the first picture, MuJoCo when it is imported, which fails where there
    is no EGL: so it is set for pictures alone, and no child process inherits it.
    """
    shown = sys.platform != "linux" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if shown or "MUJOCO_GL" in os.environ:
        yield
        return
    os.environ["MUJOCO_GL"] = "egl"
    try:
        yield
    finally:
        del os.environ["MUJOCO_GL"]


def _writer_for(path: pathlib.Path) -> Callable[[pathlib.Path, list[Frame], float], None]:
    ending = path.suffix.lower()
    if ending == ".gif":
        extra("PIL.Image", "a .gif", "gym")
        return _write_gif
    if ending == ".mp4":
        extra("imageio_ffmpeg", "an .mp4 (a .gif does not)", "video")
        return _write_mp4
    raise ValueError(f"{path}: a recording ends in .gif or .mp4")


def _write_gif(path: pathlib.Path, frames: list[Frame], fps: float) -> None:
    image = extra("PIL.Image", "a .gif", "gym")
    # 64 colours suffice for a drawn scene and halve the file
    first, *others = [image.fromarray(frame).quantize(64) for frame in frames]
    # GIF counts hundredths of a second, and players slow down what is faster than two
    first.save(path, save_all=True, append_images=others, duration=max(20, 10 * round(100.0 / fps)), loop=0)


def _write_mp4(path: pathlib.Path, frames: list[Frame], fps: float) -> None:
    ffmpeg = extra("imageio_ffmpeg", "an .mp4", "video")
    height, width, _ = frames[0].shape
    # Players want sides that are even (4:2:0): cut the odd line instead of scaling everything
    height, width = height - height % 2, width - width % 2
    writer = ffmpeg.write_frames(str(path), (width, height), fps=fps, macro_block_size=1, ffmpeg_log_level="error")
    writer.send(None)
    try:
        for frame in frames:
            writer.send(np.ascontiguousarray(frame[:height, :width]))
    finally:
        writer.close()
