"""Whether two builds of the command make the same models: twenty fixed fits, compared to the bit.

    python bench/same_models.py --before OLD/argwhy --after NEW/argwhy

Needs NumPy. Prints for each fit whether the arrays of both models are equal to the bit, and where
they are not by how much coefficients differ, relative to the largest; exits with 1 if any differ.
"""

from __future__ import annotations

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

FITS: dict[str, list[str]] = {
    "boxes": ["box.npz", "--bounds=-1,1"],
    "boxes, f64": ["box.npz", "--bounds=-1,1", "--precision", "f64"],
    "boxes, tiled": ["box.npz", "--bounds=-1,1", "--operator", "tiled"],
    "boxes, low rank": ["large.npz", "--bounds=-1,1"],
    "boxes, k 1e-4": ["box.npz", "--bounds=-1,1", "-k", "1e-4"],
    "half saturated": ["box.npz", "--bounds=-0.3,0.3", "--infeasible", "clip"],
    "no limits": ["box.npz", "--unbounded"],
    "laplace": ["box.npz", "--bounds=-1,1", "--kernel", "laplace"],
    "matern52 + linear": ["box.npz", "--bounds=-1,1", "--kernel", "matern52 + 0.1*linear"],
    "linear": ["box.npz", "--bounds=-1,1", "--kernel", "linear", "-k", "1e-3"],
    "raw features": ["box.npz", "--bounds=-1,1", "--features", "raw"],
    "shared polytope": ["shared.npz", "--constraints"],
    "own polytopes": ["own.npz", "--constraints"],
    "weights": ["weighted.npz", "--bounds=-1,1", "--weights"],
    "weights, polytope": ["weighted-shared.npz", "--constraints", "--weights"],
    "theta, boxes": ["small.npz", "--bounds=-1,1", "--theta", "learn", "-k", "1e-3"],
    "theta, polytope": ["small-shared.npz", "--constraints", "--theta", "learn", "-k", "1e-3"],
    "sso": ["box.npz", "--bounds=-1,1", "--solver", "sso", "--max-iterations", "15"],
    "plain": ["box.npz", "--bounds=-1,1", "--kernel", "linear", "--primal", "-k", "1e-3"],
    "path": ["box.npz", "--bounds=-1,1", "--path", "1e-3,1e-4,1e-5"],
}


def write_data(folder: Path) -> None:
    # Under what each fit says: a default that changes is no other answer to the same question.
    settings = 'features = "poly2"\nkernel = "rbf"\ntrend = "none"\nregularization = 1e-6\n'
    (folder / "paper.toml").write_text(settings)
    rng = np.random.default_rng(20)

    def problem(n: int, d: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
        signals = rng.normal(size=(n, d))
        wish = np.sin(signals @ rng.normal(size=(d, dim))) + 0.3 * (signals[:, :1] ** 2 - 1)
        return signals, np.clip(1.2 * wish + 0.02 * rng.normal(size=wish.shape), -1, 1)

    def inside(decisions: np.ndarray, matrix: np.ndarray) -> np.ndarray:
        """Limits that every decision keeps and that touch some of them."""
        levels = decisions @ matrix.T
        return np.quantile(levels, 0.999, axis=0) + 1e-3 + np.maximum(levels.max(0) - np.quantile(levels, 0.999, axis=0), 0)

    signals, decisions = problem(900, 5, 3)
    np.savez(folder / "box.npz", signals=signals, decisions=decisions)
    large, wide = problem(3500, 5, 2)
    np.savez(folder / "large.npz", signals=large, decisions=wide)
    matrix = np.vstack([np.eye(3), -np.eye(3), rng.normal(size=(3, 3))])
    limits = inside(decisions, matrix)
    np.savez(folder / "shared.npz", signals=signals, decisions=decisions, M=matrix, W=limits)
    own = np.repeat(limits[None], len(decisions), axis=0) + 0.05 * rng.random((len(decisions), len(limits)))
    np.savez(folder / "own.npz", signals=signals, decisions=decisions, M=matrix, W=own)
    weights = rng.integers(1, 5, len(decisions)).astype(float)
    np.savez(folder / "weighted.npz", signals=signals, decisions=decisions, weights=weights)
    np.savez(folder / "weighted-shared.npz", signals=signals, decisions=decisions, M=matrix, W=limits, weights=weights)
    np.savez(folder / "small.npz", signals=signals[:200], decisions=decisions[:200])
    np.savez(folder / "small-shared.npz", signals=signals[:200], decisions=decisions[:200], M=matrix, W=limits)


def arrays(path: Path) -> dict[str, bytes]:
    """Name → dtype, shape and bytes of every array of a model (safetensors)."""
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    body = raw[8 + size :]
    return {
        name: json.dumps([entry["dtype"], entry["shape"]]).encode() + body[slice(*entry["data_offsets"])]
        for name, entry in header.items()
        if name != "__metadata__"
    }


def fit(command: Path, folder: Path, arguments: list[str], name: str) -> list[Path]:
    model = folder / f"{name}.argwhy"
    done = subprocess.run(
        [command, "fit", *arguments, "--config", "paper.toml", "-o", model, "-q", "--threads", "2"],
        cwd=folder,
        capture_output=True,
        text=True,
    )
    if done.returncode not in (0, 1):
        raise SystemExit(f"{command} fit {' '.join(arguments)}: {done.stderr}")
    return sorted(folder.glob(f"{name}*.argwhy"))


def difference(a: bytes, b: bytes) -> float:
    x, y = (np.frombuffer(v[v.index(b"]]") + 2 :], dtype="<f8") for v in (a, b))
    return float(np.abs(x - y).max() / np.abs(x).max()) if x.shape == y.shape and x.size else float("inf")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="the command as it was")
    parser.add_argument("--after", type=Path, required=True, help="the command as it is")
    options = parser.parse_args()
    differing = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)
        for number, (title, arguments) in enumerate(FITS.items(), 1):
            sides = [
                fit(command.resolve(), folder, arguments, f"{side}{number:02}")
                for side, command in (("before", options.before), ("after", options.after))
            ]
            pairs = [(arrays(a), arrays(b)) for a, b in zip(*sides, strict=True)]
            off = sorted({key for a, b in pairs for key in a.keys() | b.keys() if a.get(key) != b.get(key)})
            far = max((difference(a["coefficients"], b["coefficients"]) for a, b in pairs if "coefficients" in off), default=0.0)
            verdict = "equal to the bit" if not off else f"differs in {', '.join(off)}; coefficients by {far:.1e}"
            print(f"{number:2} {title:20} {verdict}", flush=True)
            differing += bool(off)
    print(f"{len(FITS) - differing} of {len(FITS)} equal to the bit")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
