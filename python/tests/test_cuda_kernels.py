"""The CUDA kernels, without a GPU: they compile for every supported chip, their PTX is current."""

import hashlib
import importlib.util
import os
import pathlib
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

CRATE = pathlib.Path(__file__).resolve().parents[2] / "crates" / "cuda"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_kernels", CRATE / "kernels" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_embedded_ptx_was_made_from_these_sources(build):
    written = (CRATE / "ptx" / "SOURCES").read_text()
    assert written == build.sources(), "the kernels changed: run crates/cuda/kernels/build.py ptx"
    assert (CRATE / "ptx" / "programs.zst").stat().st_size > 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="the compiler's wheel is installed on Linux only")
@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100"])
def test_every_kernel_compiles_without_a_gpu(build, target):
    library = build.nvrtc()
    # A minute a chip on two cores: once for each state of the sources.
    key = hashlib.sha256((build.sources() + target).encode()).hexdigest()[:16]
    stamp = CRATE.parents[1] / "target" / f"cuda-kernels-{target}-{key}"
    if stamp.exists():
        return

    def compile_variant(variant):
        name, source, definitions = variant
        code = build.compile_source(library, source, target, definitions)
        assert code.startswith(b"\x7fELF"), name

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile_variant, build.variants()))
    stamp.write_text("compiled\n")
