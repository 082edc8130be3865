"""Who decides beside argwhy: behaviour cloning and the teachers."""

import sys
import pathlib

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import rollout  # noqa: E402

HIDDEN = 256
BATCH = 256
LEARNING_RATE = 1e-3
PATIENCE = 50  # epochs without a better error aside


class Cloning:
    """A network with two hidden layers of 256 units that imitates decisions, early-stopped.

    Mean squared error, Adam, relu inside and tanh at the end, signals z-scored; the weights with
    the least error on rows kept aside are used. NumPy does what PyTorch would: the sums are the
    same, and a package of 800 MB is not asked for.
    """

    def __init__(self, seed, max_epochs=1000):
        self.seed, self.max_epochs = seed, max_epochs

    def fit(self, signals, decisions, aside):
        """Learns from the rows that are not `aside`, judged by those that are."""
        draw = np.random.default_rng(self.seed)
        self.mean, self.scale = signals.mean(axis=0), signals.std(axis=0) + 1e-6
        inputs, targets = self._scaled(signals), decisions.astype(np.float32)
        self.layers = self._start(draw, signals.shape[1], decisions.shape[1])
        kept, judged = np.flatnonzero(~aside), np.flatnonzero(aside)
        state = [(np.zeros_like(p), np.zeros_like(p)) for p in self.layers]
        best, self.steps, waited = (np.inf, self.layers), 0, 0
        for self.epochs in range(1, self.max_epochs + 1):
            for rows in batches(draw.permutation(kept)):
                self._step(inputs[rows], targets[rows], state)
            error = float(np.mean((self._forward(inputs[judged])[-1] - targets[judged]) ** 2))
            waited = 0 if error < best[0] else waited + 1
            if error < best[0]:
                best = error, [p.copy() for p in self.layers]
            if waited >= PATIENCE:
                break
        self.error, self.layers = best
        return self

    def predict(self, signals):
        return self._forward(self._scaled(np.asarray(signals)))[-1].astype(np.float64)

    def _scaled(self, signals):
        return ((signals - self.mean) / self.scale).astype(np.float32)

    @staticmethod
    def _start(draw, n_inputs, n_outputs):
        """He's start for relu layers, a small last one."""
        sizes, layers = [n_inputs, HIDDEN, HIDDEN, n_outputs], []
        for fan_in, fan_out in zip(sizes, sizes[1:], strict=False):
            spread = np.sqrt(2.0 / fan_in)
            layers.append((draw.standard_normal((fan_in, fan_out)) * spread).astype(np.float32))
            layers.append(np.zeros(fan_out, np.float32))
        layers[-2] *= 0.1
        return layers

    def _forward(self, inputs):
        """What every layer puts out, the signals first."""
        w0, b0, w1, b1, w2, b2 = self.layers
        first = np.maximum(inputs @ w0 + b0, 0.0)
        second = np.maximum(first @ w1 + b1, 0.0)
        return [inputs, first, second, np.tanh(second @ w2 + b2)]

    def _step(self, inputs, targets, state):
        """One step of Adam along the gradient of the mean squared error."""
        values = self._forward(inputs)
        back = (values[3] - targets) * (1.0 - values[3] ** 2) * (2.0 / targets.size)
        gradient = []
        for layer in (2, 1, 0):
            gradient = [values[layer].T @ back, back.sum(axis=0), *gradient]
            back = (back @ self.layers[2 * layer].T) * (values[layer] > 0)
        self.steps += 1
        rate = LEARNING_RATE * np.sqrt(1 - 0.999**self.steps) / (1 - 0.9**self.steps)
        for place, (slope, (mean, square)) in enumerate(zip(gradient, state, strict=True)):
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            update = np.float32(rate) * mean / (np.sqrt(square) + 1e-8)
            self.layers[place] = self.layers[place] - update


def batches(rows):
    return np.array_split(rows, max(1, round(len(rows) / BATCH)))


class NoisyTeacher:
    """A teacher as it was when it made the data: with the noise of its own policy."""

    def __init__(self, path, seed):
        self.teacher, self.draw = rollout.Teacher(path), np.random.default_rng(seed)
        self.n_actions = len(self.teacher.mean[1])

    def predict(self, signals):
        noise = self.draw.standard_normal((len(signals), self.n_actions))
        return self.teacher.decide(np.asarray(signals, float), noise)


def record_chunk(path, d4rl, world, teacher, teacher_path, n_rows, number):
    """`n_rows` rows of whole episodes of a teacher, the last one cut; their seeds are their own."""
    rollout.AT_ONCE = 10
    policy = rollout.Teacher(teacher_path)
    arrays, note = rollout.half(d4rl, world, teacher, policy, n_rows, 1_000_000 + 10_000 * number)
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part.npz")
    np.savez_compressed(part, **arrays)
    part.rename(path)
    return note
