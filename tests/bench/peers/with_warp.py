# SPDX-License-Identifier: Apache-2.0
"""NVIDIA Warp on its CPU device, which runs all threads on one of the machine's: recorded launches over arrays of the host."""
import os

import numpy as np
import warp as wp

wp.config.log_level = wp.config.LOG_ERROR if hasattr(wp.config, "LOG_ERROR") else 40
wp.config.enable_backward = False
wp.config.default_grid_stride = False
wp.config.optimization_level = 3
wp.config.kernel_cache_dir = os.environ["QUERN_BENCH_WARP_CACHE"]
wp.init()

import warp_kernels as kernels  # noqa: E402  (reads the settings)

VECTORS = {"position": wp.vec4, "acceleration": wp.vec4}


# work -> ways: kernel, grid and arguments, by names of the work's. The fastest way counts.
def ways(name, a):
    if name in ("saxpy", "black_scholes", "nbody", "histogram", "lennard_jones"):
        words = {"saxpy": "a x y", "black_scholes": "spot strike years rate volatility call put", "nbody": "position acceleration n softening",
                 "histogram": "data counts", "lennard_jones": "x y z neighbour cutoff_squared fx fy fz"}[name]
        return [(getattr(kernels, name), a["n"], words)]
    tiles = lambda side: (a[side] // 32, a[side] // 32)
    return {
        "matmul": lambda: [(kernels.matmul, (a["n"], a["n"]), "a b c n"), (kernels.matmul_rows, a["n"], "a b c n"),
                           (kernels.matmul_tiles, tiles("n"), "a b c n")],
        "mandelbrot": lambda: [(kernels.mandelbrot, (a["height"], a["width"]), "image width height limit")],
        "stencil": lambda: [(kernels.stencil, (a["height"], a["width"]), "grid out"), (kernels.stencil_rows, a["height"] - 2, "grid out")],
        "transpose": lambda: [(kernels.transpose, (a["side"], a["side"]), "matrix out"), (kernels.transpose_blocks, tiles("side"), "matrix out"),
                              (kernels.transpose_tiles, tiles("side"), "matrix out")],
        "block_sums": lambda: [(kernel, a["n"] // 512, "x sums") for kernel in (kernels.block_sums, kernels.block_sums_tiles)],
        "softmax": lambda: [(kernels.softmax, a["rows"], "matrix out columns")],
        "csr": lambda: [(kernels.csr, a["rows"], "begin column value x y")],
        "convolve": lambda: [(kernels.convolve, (a["height"], a["width"]), "image out width height")],
        "scan": lambda: [(kernels.scan, a["n"] // 256, "numbers out")],
    }.get(name, lambda: [])()


class Peer:
    name = "Warp"

    def __init__(self, threads):
        self.version = f"{wp.__version__}, one thread only"

    def prepare(self, name, arguments):
        self.host = arguments
        self.arrays = {key: wp.array(value, dtype=VECTORS.get(key, wp.dtype_from_numpy(value.dtype)), device="cpu", copy=False) for key, value in arguments.items() if isinstance(value, np.ndarray)}
        for key, array in self.arrays.items():
            if array.ptr != arguments[key].ctypes.data:
                raise RuntimeError(f"Warp has copied {key}")
        result = {}
        for kernel, grid, words in ways(name, arguments):
            inputs = [self.arrays.get(word, arguments[word]) for word in words.split()]
            label = kernel.key
            result[label] = self.launch(kernel, grid, inputs)
        return result

    def launch(self, kernel, grid, inputs):
        command = []

        def run():
            if not command:  # compiles
                command.append(wp.launch(kernel, dim=grid, inputs=inputs, device="cpu", record_cmd=True))
            command[0].launch()
        return run

    def write(self, name, values):
        np.copyto(self.host[name], values)

    def read(self, name):
        return self.host[name].copy()

    def drop(self):
        self.arrays = self.host = None
