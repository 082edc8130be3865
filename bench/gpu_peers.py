#!/usr/bin/env python3
"""Kernel ridge on one GPU, by argwhy and by GPyTorch's conjugate gradients, to the same residual.

    python bench/gpu_peers.py DATA.npz --argwhy target/release/argwhy [-k 1e-6] [--rank 100]

Both solve (K + kN I) a = u without limits, rbf on the same features (monomials up to degree two,
z-scored). Needs an NVIDIA GPU with room for K in f32 (40 GB at N = 100,000), PyTorch, GPyTorch and
NumPy. GPyTorch keeps K in memory and uses its pivoted-Cholesky preconditioner; what it takes to
build K is in its time, as everything from the file's arrays on is in argwhy's. A third column
recomputes K in every product, as KeOps does, where memory is short. Residuals are measured in f64,
all three alike.
"""

import argparse
import json
import pathlib
import subprocess
import tempfile
import time

import numpy as np

BLOCK = 4096
ITERATIONS = (100, 300, 1000)
"""GPyTorch is stopped after each of these."""


def features(signals):
    """What argwhy's poly2 and zscore make of signals."""
    x = signals.astype(float)
    i, j = np.triu_indices(x.shape[1])
    z = np.hstack([np.ones((len(x), 1)), x, x[:, i] * x[:, j]])
    return np.clip((z - z.mean(0)) / (z.std(0) + 1e-7), -1000, 1000)


def tensors(path):
    """The arrays of a model file (safetensors)."""
    data = pathlib.Path(path).read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    dtypes = {"F64": "<f8", "F32": "<f4", "U64": "<u8", "U32": "<u4"}
    arrays = {}
    for name, about in header.items():
        if name != "__metadata__":
            first, last = (8 + size + at for at in about["data_offsets"])
            arrays[name] = np.frombuffer(data[first:last], dtypes[about["dtype"]]).reshape(about["shape"])
    return arrays


def by_argwhy(binary, data, k, n, dim):
    """Coefficients, and what the second of two fits says of itself."""
    with tempfile.TemporaryDirectory() as folder:
        model = pathlib.Path(folder, "model.argwhy")
        command = [binary, "fit", data, "-o", model, "-k", str(k), "--features", "poly2", "--kernel", "rbf",
                   "--trend", "none", "--device", "cuda",
                   "--memory", "16GiB", "--json", "--quiet"]
        for _ in range(2):
            done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
        arrays = tensors(model)
    coefficients = np.zeros((n, dim))
    coefficients[arrays["support_rows"].astype(int)] = arrays["coefficients"]
    return coefficients, json.loads(done.stdout)


class System:
    """K + kN I on the GPU."""

    def __init__(self, z, k):
        import torch

        self.torch, self.k, self.n = torch, k, len(z)
        self.gamma = 1 / z.shape[1]
        self.z = torch.tensor(z - z.mean(0), device="cuda")

    def rows(self, part, dtype):
        """K's rows, squares of distances as ‖a‖² + ‖b‖² − 2ab."""
        z = self.z.to(dtype)
        square = (z * z).sum(1)
        distances = square[part, None] + square - 2 * z[part] @ z.T
        return distances.clamp_(min=0).mul_(-self.gamma).exp_()

    def product(self, v, dtype):
        out = self.torch.empty_like(v)
        for first in range(0, self.n, BLOCK):
            part = slice(first, first + BLOCK)
            out[part] = self.rows(part, dtype) @ v
        return out + self.k * self.n * v

    def residual(self, a, u):
        """The largest over columns, in f64."""
        a, u = (self.torch.as_tensor(v, dtype=self.torch.float64, device="cuda") for v in (a, u))
        left = self.product(a, self.torch.float64) - u
        return float((left.norm(dim=0) / u.norm(dim=0)).max())

    def dense(self):
        """K in f32."""
        full = self.torch.empty((self.n, self.n), dtype=self.torch.float32, device="cuda")
        for first in range(0, self.n, BLOCK):
            part = slice(first, first + BLOCK)
            full[part] = self.rows(part, self.torch.float32)
        return full


def by_gpytorch(system, u, rank, iterations):
    """Coefficients and seconds."""
    import linear_operator
    from linear_operator.operators import (
        AddedDiagLinearOperator, ConstantDiagLinearOperator, DenseLinearOperator,
    )

    torch, settings = system.torch, linear_operator.settings
    torch.cuda.synchronize()
    start = time.monotonic()
    ridge = torch.tensor([system.k * system.n], dtype=torch.float32, device="cuda")
    diagonal = ConstantDiagLinearOperator(ridge, system.n)
    operator = AddedDiagLinearOperator(DenseLinearOperator(system.dense()), diagonal)
    u = torch.tensor(u, dtype=torch.float32, device="cuda")
    with settings.max_preconditioner_size(rank), settings.cg_tolerance(1e-10), \
            settings.max_cg_iterations(iterations), settings.max_cholesky_size(1), \
            settings.fast_computations(solves=True), torch.no_grad():
        found = operator.solve(u)
    torch.cuda.synchronize()
    return found, time.monotonic() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=pathlib.Path, help="observations and actions")
    parser.add_argument("--argwhy", type=pathlib.Path, required=True, help="the binary")
    parser.add_argument("-k", type=float, default=1e-6)
    parser.add_argument("--rank", type=int, default=100, help="of GPyTorch's preconditioner")
    arguments = parser.parse_args()
    with np.load(arguments.data) as arrays:
        signals, u = arrays["observations"], arrays["actions"].astype(float)
    found, answer = by_argwhy(arguments.argwhy.resolve(), arguments.data, arguments.k, *u.shape)

    import gpytorch
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    system = System(features(signals), arguments.k)
    print(f"N = {len(u):,}, d = {system.z.shape[1]}, n = {u.shape[1]}, k = {arguments.k}; "
          f"torch {torch.__version__}, gpytorch {gpytorch.__version__}, {torch.cuda.get_device_name()}")
    print(f"argwhy: {answer['seconds']:.2f} s, {answer['kernel_products']} products, relative gap "
          f"{answer['relative_gap']:.1e}, residual {system.residual(found, u):.1e}", flush=True)
    v = torch.tensor(u, dtype=torch.float32, device="cuda")
    system.product(v, torch.float32)
    torch.cuda.synchronize()
    start = time.monotonic()
    system.product(v, torch.float32)
    torch.cuda.synchronize()
    print(f"a product that recomputes K in f32, block by block: {time.monotonic() - start:.3f} s", flush=True)
    by_gpytorch(system, u, 10, 50)
    for iterations in ITERATIONS:
        found, seconds = by_gpytorch(system, u, arguments.rank, iterations)
        print(f"GPyTorch, preconditioner of rank {arguments.rank}, {iterations} iterations: "
              f"{seconds:.2f} s, residual {system.residual(found, u):.1e}", flush=True)
        del found


if __name__ == "__main__":
    main()
