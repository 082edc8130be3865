"""Runs the f64 kernels beside this file on a CPU, by emulate.h: what they compute, without a GPU.

    kernels = Emulated("factor.cu", folder)
    kernels("shifted", (4,), 256, gram, matrix, side, rank, 0.5)

Arguments are NumPy arrays for pointers (None for a null one), int, float, u64(n) and `Terms`.
Needs a C++ compiler (c++) for x86-64.
"""

import ctypes
import pathlib
import re
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ENTRY = re.compile(r'extern "C" __global__ void\s*(?:__launch_bounds__\([^)]*\))?\s*(\w+)\((.*?)\)\s*\{', re.S)
# What stands for instructions that only a GPU has.
REPLACED = [
    (r"(void multiply\(double \(&d\)\[2\], double a, double b\) \{).*?\n\}", r"\1 tensor_multiply(d, a, b); }"),
    (r"__device__ __forceinline__ void copy16\(u32 to, .*?\n\}", "static void copy16(void* to, const void* from) { memcpy(to, from, 16); }"),
    (r"\(u32\)__cvta_generic_to_shared\((.*?)\), ", r"\1, "),
    (r'asm volatile\("cp.async.*?\);', ""),
    (r"extern __shared__ __align__\(128\) double shared\[\];", "double* shared = dynamic_shared;"),
]


class u64(int):
    """A 64-bit count."""


class Terms(ctypes.Structure):
    """As in exact.cu; one term."""

    _fields_ = [("weight", ctypes.c_double * 8), ("rate", ctypes.c_double * 8), ("kind", ctypes.c_int * 8)]
    _fields_ += [("count", ctypes.c_int), ("linear", ctypes.c_double), ("constant", ctypes.c_double)]

    def __init__(self, kind, rate, weight=1.0, linear=0.0, constant=0.0):
        super().__init__(count=1, linear=linear, constant=constant)
        self.kind[0], self.rate[0], self.weight[0] = kind, rate, weight


class Emulated:
    """The kernels of one source, compiled with `definitions` in `folder`."""

    def __init__(self, source, folder, **definitions):
        text = (HERE / source).read_text()
        for pattern, replacement in REPLACED:
            text = re.sub(pattern, replacement, text, flags=re.S)
        launches = "".join(_launch(*found) for found in ENTRY.findall(text))
        code, library = pathlib.Path(folder) / "emulated.cpp", pathlib.Path(folder) / "emulated.so"
        code.write_text(f'#include "{HERE / "emulate.h"}"\n{text}\n{launches}')
        options = [f"-D{name}={value}" for name, value in definitions.items()]
        command = ["c++", "-O2", "-std=c++17", "-shared", "-fPIC", "-w", "-fno-strict-aliasing", *options]
        subprocess.run([*command, "-o", str(library), str(code)], check=True)
        self.library = ctypes.CDLL(str(library))

    def __call__(self, name, grid, threads, *arguments):
        x, y, z = (*grid, 1, 1)[:3]
        launch = getattr(self.library, f"launch_{name}")
        launch(*map(ctypes.c_int, (x, y, z, threads)), *map(_argument, arguments))


def _launch(name, parameters):
    """A function that C can call with the grid and the kernel's arguments, `Terms` by address."""
    parameters = [" ".join(re.sub(r"//[^\n]*", "", p).split()) for p in re.sub(r"//[^\n]*", "", parameters).split(",")]
    names = [re.search(r"\w+$", p).group() for p in parameters]
    terms = [p.split()[-2] == "Terms" for p in parameters]
    taken = ", ".join(f"const Terms* {n}" if t else p for p, n, t in zip(parameters, names, terms))
    handed = ", ".join(f"*{n}" if t else n for n, t in zip(names, terms))
    return (
        f'extern "C" void launch_{name}(int x_, int y_, int z_, int threads_, {taken}) {{\n'
        f"    run([=]() {{ {name}({handed}); }}, x_, y_, z_, threads_);\n}}\n"
    )


def _argument(value):
    if value is None:
        return ctypes.c_void_p(0)
    if isinstance(value, Terms):
        return ctypes.byref(value)
    if isinstance(value, u64):
        return ctypes.c_uint64(value)
    if isinstance(value, int):
        return ctypes.c_int(value)
    if isinstance(value, float):
        return ctypes.c_double(value)
    return ctypes.c_void_p(value.ctypes.data)
