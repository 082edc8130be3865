"""What will be measured, on which data: made once, read by every section."""

import dataclasses
import pathlib

from child import Runner

HOPPER = "d4rl/hopper-expert-v2-subset.npz"
# Of --large: file, k.
LARGE = {"hopper": ("hopper-medium-expert.npz", 1e-6), "walker2d": ("walker2d-medium-expert.npz", 1e-5)}
# Rows at the end that no regression is trained on (peers/problem.py has the same number).
HELD_OUT = 4000


@dataclasses.dataclass
class Sizes:
    """Full and `--quick`."""

    sdp: list
    qp: list
    regression: list
    growth: list
    large: int
    prediction: int
    prediction_calls: int
    prediction_batch: int
    svr_patience: float
    repeats: int

    @classmethod
    def of(cls, quick):
        if quick:
            return cls([250], [250], [1000], [1000, 2000, 4000], 4000, 2000, 300, 5000, 60.0, 2)
        growth = [2500, 5000, 10000, 20000, 40000, 100000]
        return cls([250, 500, 1000], [1000, 2000], [5000, 10000, 20000], growth, 100000, 5000, 2000, 10000, 180.0, 3)


@dataclasses.dataclass
class Data:
    """A file argwhy reads, in two halves that differ; `k` goes with it."""

    path: pathlib.Path
    n_rows: int
    k: float
    note: str

    def rows(self, n_samples):
        """As many from the beginning of either half."""
        half, middle = n_samples // 2, self.n_rows // 2
        return f"0:{half},{middle}:{middle + n_samples - half}"


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
    sizes: Sizes
    quick: bool
    large_folder: pathlib.Path | None
    built_here: bool
    regularization: float = 1e-6
    limit: float = 1.0
    fitted: dict = dataclasses.field(default_factory=dict)
    synthetic: Data | None = None

    @classmethod
    def prepare(cls, runner, python, argwhy, bench, arguments):
        work = bench / ".work"
        work.mkdir(exist_ok=True)
        for pattern in ("*.argwhy", "ridge-*.npy", "svr-*.npz", "decided-*.npy"):
            for stale in work.glob(pattern):
                stale.unlink()  # nothing of an earlier run, perhaps on other data, may be mistaken for this one's
        peers = bench / "peers"
        if arguments.data:
            data = pathlib.Path(arguments.data).resolve() / HOPPER
            if not data.exists():
                raise SystemExit(f"bench: {data} is not there; --data wants a folder with {HOPPER}")
            note = f"`{HOPPER}` (D4RL hopper-expert-v2, first rows)"
        else:
            data = work / "synthetic.npz"
            required(runner.run([python, peers / "synthetic.py", data]))
            note = "synthetic: smooth 11-dimensional signals, a smooth controller with saturation (seed 0)"
        large = None
        if arguments.large:
            large = pathlib.Path(arguments.large).resolve()
            if not any((large / name).exists() for name, _ in LARGE.values()):
                names = " or ".join(name for name, _ in LARGE.values())
                raise SystemExit(f"bench: --large wants a folder with {names}; {large} has neither")
        features = required(runner.run([python, peers / "features.py", data, work]))
        sizes = Sizes.of(arguments.quick)
        n_rows, feature_dim = features["n_rows"], features["feature_dim"]
        known = (runner, python, argwhy, peers, work, data, note, n_rows, feature_dim, sizes)
        return cls(*known, arguments.quick, large, not arguments.argwhy)

    def fit(self, n_samples, *options):
        """`argwhy fit` on the first rows, or None without argwhy."""
        if self.argwhy is None:
            return None
        return self.fit_rows(self.data, f"0:{n_samples}", self.regularization, self.model(n_samples), *options, "--quiet")

    def fit_halves(self, data, n_samples, *options):
        """`argwhy fit` on both halves of a large file. It says its plan on stderr."""
        return self.fit_rows(data.path, data.rows(n_samples), data.k, self.work / "halves.argwhy", *options)

    def fit_rows(self, data, rows, k, model, *options):
        command = [self.argwhy, "fit", data, "--rows", rows, "--features", "poly2", "--kernel", "rbf", "--trend", "none"]
        command += [f"--bounds=-{self.limit:g},{self.limit:g}", "-k", f"{k:g}", *options]
        return self.runner.run([*command, "-o", model, "--json"], accept=(0, 1))

    def fit_halves_once(self, data, n_samples, *options):
        """As `fit_halves`; what takes minutes and was measured in this run is not repeated."""
        key = (data.path, n_samples, options)
        if key not in self.fitted:
            self.fitted[key] = self.fit_halves(data, n_samples, *options)
        return self.fitted[key]

    def large(self, name):
        """A data set of --large, None where there is none."""
        file, k = LARGE[name]
        path = self.large_folder / file if self.large_folder else None
        if path is None or not path.exists():
            return None
        counted = required(self.runner.run([self.python, self.peers / "count_rows.py", path]))
        return Data(path, counted["n_rows"], k, f"`{file}`, {counted['n_rows']} rows")

    def growing(self):
        """What growth is measured on."""
        data = self.large("hopper")
        if data is None:
            if self.synthetic is None:
                n_rows, path = self.sizes.growth[-1], self.work / "synthetic-large.npz"
                required(self.runner.run([self.python, self.peers / "synthetic.py", path, "--rows", n_rows]))
                # Harder than a robot's signals, which fill fewer dimensions: with 1e-6 ten times
                # the products.
                self.synthetic = Data(path, n_rows, 1e-4, f"synthetic, {n_rows} rows")
            data = self.synthetic
        return data

    def model(self, n_samples):
        return self.work / f"first-{n_samples}.argwhy"

    def peer(self, script, *arguments, patience=None):
        """A script of peers/; all of them take the work folder first."""
        return self.runner.run([self.python, self.peers / script, self.work, *arguments], patience=patience)

    def problem(self, n_samples):
        """The arguments that describe the problem to a peer."""
        return ["--rows", n_samples, "-k", f"{self.regularization:g}", "--limit", f"{self.limit:g}"]

    def enough_rows(self, n_samples):
        """Whether so many can be trained on and the last ones kept apart."""
        return n_samples <= self.n_rows - HELD_OUT


def required(result):
    if result.answer is None:
        raise SystemExit(f"bench: {result.failure}")
    return result.answer
