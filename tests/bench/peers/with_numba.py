# SPDX-License-Identifier: Apache-2.0
"""Numba: functions over NumPy's arrays."""

import llvmlite
import numba
import numpy as np

import numba_kernels as kernels

# work -> ways: function and arguments, by names of the work's. The fastest way counts.
WAYS = {
    "saxpy": [(kernels.saxpy, "a x y")],
    "black_scholes": [(kernels.black_scholes, "spot strike years rate volatility call put")],
    "nbody": [(function, "position acceleration softening") for function in (kernels.nbody, kernels.nbody_strips)],
    "matmul": [(function, "a b c") for function in (kernels.matmul, kernels.matmul_four_rows)],
    "mandelbrot": [(function, "image limit") for function in (kernels.mandelbrot, kernels.mandelbrot_strips)],
    "stencil": [(kernels.stencil, "grid out")],
    "transpose": [(function, "matrix out") for function in (kernels.transpose_tiles, kernels.transpose_slices, kernels.transpose_buffers)],
    "block_sums": [(function, "x sums") for function in (kernels.block_sums, kernels.block_sums_lanes)],
    "histogram": [(kernels.histogram, "data counts parts")],
    "softmax": [(kernels.softmax, "matrix out")],
    "csr": [(kernels.csr, "begin column value x y")],
    "convolve": [(function, "image out") for function in (kernels.convolve, kernels.convolve_rows)],
    "lennard_jones": [(function, "x y z neighbour cutoff_squared fx fy fz") for function in (kernels.lennard_jones, kernels.lennard_jones_strips)],
    "scan": [(kernels.scan, "numbers out")],
}


class Peer:
    name = "Numba"

    def __init__(self, threads):
        numba.set_num_threads(threads)
        self.threads = threads
        self.version = f"{numba.__version__} (LLVM {'.'.join(map(str, llvmlite.binding.llvm_version_info))})"

    def prepare(self, name, arguments):
        self.arrays = {**arguments, "parts": 4 * self.threads}
        return {function.__name__: self.call(function, [self.arrays[word] for word in words.split()]) for function, words in WAYS.get(name, [])}

    def call(self, function, arguments):
        return lambda: function(*arguments)

    def write(self, name, values):
        np.copyto(self.arrays[name], values)

    def read(self, name):
        return self.arrays[name].copy()

    def drop(self):
        self.arrays = None
