"""Compiles the CUDA sources beside this file with NVRTC: no GPU, driver or CUDA toolkit needed.

    python build.py ptx      writes ../ptx/programs.zst, which the crate embeds
    python build.py check    compiles every kernel to machine code for sm_80, sm_90 and sm_100

libnvrtc comes from a wheel: `pip install nvidia-cuda-nvrtc-cu12`. `ptx` wants version 12.0.140: a
driver loads PTX of its own CUDA version or an older one, so the oldest compiler serves the most
drivers; it packs with `zstandard` from PyPI. `check` wants 12.8 or later, the first that knows
sm_100.
"""

import ctypes
import hashlib
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
PTX_TARGET = "compute_80"  # tensor cores with f16 and asynchronous copies; newer chips run it too
MARK = b"// program "
CHECKED = ("sm_80", "sm_90", "sm_100")
KINDS = ("rbf", "laplace", "matern32", "matern52")


def variants():
    """(name of the PTX file, source, definitions) of everything that is compiled."""
    for name in ("pack", "linear", "factor", "descent"):
        yield name, f"{name}.cu", {}
    for distances in range(4):
        yield f"exact_{distances}", "exact.cu", {"DISTANCES": distances}
    for width in (4, 8):
        yield f"exact_tensor_{width}", "exact_tensor.cu", {"WIDTH": width}
        yield f"exact_rbf_{width}", "exact_tensor.cu", {"WIDTH": width, "SINGLE": 1}
    for kind, name in enumerate(KINDS):
        # Differences are f32 whatever the parts: one precision is enough for laplace.
        for parts in (2,) if name == "laplace" else (1, 2):
            for groups in (1, 2):
                definitions = {"KIND": kind, "PARTS": parts, "GROUPS": groups}
                yield f"fused_{name}_{parts}_{groups}", "fused.cu", definitions


def sources():
    """What PTX is made from, a line a file: kept beside it, so that a test sees when it is old."""
    files = sorted(HERE.glob("*.cu")) + [HERE / "build.py"]
    return "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)


def nvrtc():
    """libnvrtc of the wheel that this Python has installed."""
    import nvidia

    for folder in nvidia.__path__:
        for found in sorted(pathlib.Path(folder).glob("*/lib/libnvrtc.so.1*")):
            return ctypes.CDLL(str(found))
    raise RuntimeError("no libnvrtc here: pip install nvidia-cuda-nvrtc-cu12")


def compile_source(library, source, target, definitions):
    """PTX for a target compute_NN, machine code for sm_NN."""
    program = ctypes.c_void_p()
    text = (HERE / source).read_bytes()
    library.nvrtcCreateProgram(ctypes.byref(program), text, source.encode(), 0, None, None)
    options = [f"--gpu-architecture={target}", "-std=c++17", "-default-device"]
    options += [f"-D{name}={value}" for name, value in definitions.items()]
    array = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    failed = library.nvrtcCompileProgram(program, len(options), array)
    log = _read(library, program, "ProgramLog").rstrip(b"\0").decode().strip()
    if failed:
        raise RuntimeError(f"{source} {definitions} for {target}:\n{log}")
    if log:
        print(f"{source} {definitions} for {target}:\n{log}")
    code = _read(library, program, "PTX" if target.startswith("compute") else "CUBIN")
    library.nvrtcDestroyProgram(ctypes.byref(program))
    return code


def _read(library, program, what):
    size = ctypes.c_size_t()
    getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    buffer = ctypes.create_string_buffer(size.value)
    getattr(library, f"nvrtcGet{what}")(program, buffer)
    return buffer.raw


def build_ptx(library):
    folder = HERE.parent / "ptx"
    folder.mkdir(exist_ok=True)
    programs = {}
    for name, source, definitions in variants():
        programs[name] = compile_source(library, source, PTX_TARGET, definitions).rstrip(b"\0")
        print(f"{name}: {len(programs[name])} bytes")
    packed = pack(programs)
    (folder / "programs.zst").write_bytes(packed)
    print(f"programs.zst: {len(packed)} bytes")
    (folder / "SOURCES").write_text(sources())


def pack(programs):
    """All programs, each behind its name: alike as they are, two fifths of what they are alone."""
    import zstandard

    text = b"".join(MARK + name.encode() + b"\n" + code.rstrip() + b"\n" for name, code in programs.items())
    # A window that holds all of them: they are alike.
    parameters = zstandard.ZstdCompressionParameters.from_level(19, window_log=23)
    return zstandard.ZstdCompressor(compression_params=parameters).compress(text)


def check(library):
    for target in CHECKED:
        for name, source, definitions in variants():
            code = compile_source(library, source, target, definitions)
            assert code.startswith(b"\x7fELF"), f"{name} for {target} is no machine code"
        print(f"{target}: all kernels compile")


if __name__ == "__main__":
    command = {"ptx": build_ptx, "check": check}.get("".join(sys.argv[1:]))
    if command is None:
        raise SystemExit(__doc__)
    command(nvrtc())
