# SPDX-License-Identifier: Apache-2.0
"""Compiles kernels with Numba; run by an interpreter that has numba and numba-cuda, without a GPU.

usage: compile.py JOBS    a JSON list of {"file", "kernel", "arguments": [[dtype, ndim or null], ...], "out"}
Writes each kernel's PTX to `out`, or what Numba says against it to `out` with the suffix .refused. With fma=False NVVM fuses no products
and sums, so that bits can be compared.
"""
import importlib.util
import json
import pathlib
import sys
import warnings

warnings.simplefilter("ignore")
import numpy as np
from numba import types
from numba.np.numpy_support import from_dtype
from numba.cuda import dispatcher
from numba.cuda.compiler import compile_ptx
from numba.cuda.cudadrv import error as driver, nvvm

fused = nvvm.compile_ir
nvvm.compile_ir = lambda ir, **options: fused(ir, **dict(options, fma=False))
# A kernel with a signature is compiled while the file is read, and loaded onto the device, of which only the name is needed here.
dispatcher._Kernel.bind = lambda kernel: None


def load(path):
    spec = importlib.util.spec_from_file_location(pathlib.Path(path).stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tuples(described):
    """NumPy's description of a record, whose tuples JSON made lists of."""
    return [tuple(tuples(part) if isinstance(part, list) and part and isinstance(part[0], list) else tuple(part) if isinstance(part, list) else part
                  for part in field) for field in described]


def type_of(dtype, ndim):
    scalar = from_dtype(np.dtype(dtype) if isinstance(dtype, str) else np.lib.format.descr_to_dtype(tuples(dtype)))
    return scalar if ndim is None else types.Array(scalar, ndim, "C")


def main():
    modules = {}
    for job in json.load(open(sys.argv[1])):
        out = pathlib.Path(job["out"])
        try:
            if job["file"] not in modules:
                modules[job["file"]] = load(job["file"])
            function = getattr(modules[job["file"]], job["kernel"]).py_func
            ptx, _ = compile_ptx(function, tuple(type_of(*a) for a in job["arguments"]), cc=(8, 9))
        except driver.CudaSupportError:
            raise  # no driver to ask for the device: says nothing of the kernel
        except Exception as error:
            out.with_suffix(".refused").write_text(str(error))
        else:
            partial = out.with_suffix(".partial")
            partial.write_text(ptx)
            partial.rename(out)


main()
