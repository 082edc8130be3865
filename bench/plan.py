"""What will be measured, on which data: made once, read by every section."""

import dataclasses
import pathlib

from child import Runner

HOPPER = "d4rl/hopper-expert-v2-subset.npz"


@dataclasses.dataclass
class Plan:
    runner: Runner
    python: pathlib.Path
    argwhy: pathlib.Path | None
    peers: pathlib.Path
    work: pathlib.Path
    data: pathlib.Path
    data_note: str
    n_rows: int
    feature_dim: int
    sdp_sizes: list
    ridge_sizes: list
    repeats: int
    tiled_size: int
    prediction_size: int
    prediction_calls: int
    prediction_batch: int
    regularization: float = 1e-6
    limit: float = 1.0

    @classmethod
    def prepare(cls, runner, python, argwhy, bench, data_folder, quick):
        work = bench / ".work"
        work.mkdir(exist_ok=True)
        for stale in (*work.glob("*.argwhy"), *work.glob("ridge-*.npy")):
            stale.unlink()  # nothing of an earlier run, perhaps on other data, may be mistaken for this one's
        peers = bench / "peers"
        if data_folder:
            data = pathlib.Path(data_folder).resolve() / HOPPER
            if not data.exists():
                raise SystemExit(f"bench: {data} is not there; --data wants a folder with {HOPPER}")
            note = f"`{HOPPER}` (D4RL hopper-expert-v2, first rows)"
        else:
            data = work / "synthetic.npz"
            required(runner.run([python, peers / "synthetic.py", data]))
            note = "synthetic: smooth 11-dimensional signals, a smooth controller with saturation (seed 0)"
        features = required(runner.run([python, peers / "features.py", data, work]))
        sizes = {
            "sdp_sizes": [250] if quick else [250, 500, 1000],
            "ridge_sizes": [2000] if quick else [5000, 10000],
            "repeats": 3,
            "tiled_size": 5000 if quick else 20000,
            "prediction_size": 2000 if quick else 5000,
            "prediction_calls": 300 if quick else 2000,
            "prediction_batch": 10000,
        }
        return cls(runner, python, argwhy, peers, work, data, note, features["n_rows"], features["feature_dim"], **sizes)

    def fit(self, n_samples, *options):
        """`argwhy fit` on the first rows, or None without argwhy."""
        if self.argwhy is None:
            return None
        command = [self.argwhy, "fit", self.data, "--rows", f"0:{n_samples}", "--features", "poly2", "--kernel", "rbf"]
        command += [f"--bounds=-{self.limit:g},{self.limit:g}", "-k", f"{self.regularization:g}", *options]
        command += ["-o", self.model(n_samples), "--json", "--quiet"]
        return self.runner.run(command, accept=(0, 1))

    def model(self, n_samples):
        return self.work / f"first-{n_samples}.argwhy"

    def peer(self, script, *arguments):
        """A script of peers/; all of them take the work folder first."""
        return self.runner.run([self.python, self.peers / script, self.work, *arguments])

    def problem(self, n_samples):
        """The arguments that describe the problem to a peer."""
        return ["--rows", n_samples, "-k", f"{self.regularization:g}", "--limit", f"{self.limit:g}"]


def required(result):
    if result.answer is None:
        raise SystemExit(f"bench: {result.failure}")
    return result.answer
