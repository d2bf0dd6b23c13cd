# SPDX-License-Identifier: Apache-2.0
"""quern's CPU device, through the C interface: the kernels of tools/bench --styles, and other ways to write them."""
import os
import pathlib
import sys

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools" / "lib"))
from numba_diff import quern_c  # noqa: E402

STYLES, SAMPLES, OWN = ROOT / "tests/bench/styles/kernels", ROOT / "kernels", ROOT / "tests/bench/peers"


# work -> ways: file, kernel, grid, block, arguments by names of the work's. The fastest way counts.
def ways(name, a):
    line = lambda count, block: ((count // block, 1, 1), (block, 1, 1))
    square = lambda side, x, y: (a[side] // x, a[side] // y, 1)
    return {
        "saxpy": lambda: [(STYLES / "maps.cu", "saxpy", *line(a["n"], 256), "n a x y")],
        "black_scholes": lambda: [(SAMPLES / "finance/black_scholes.cu", "black_scholes", *line(a["n"], 256),
                                   "spot strike years rate volatility call put n")],
        "nbody": lambda: [(STYLES / "tiles.cu", "nbody", *line(a["n"], 256), "position acceleration n softening")],
        "matmul": lambda: [(STYLES / "tiles.cu", "matmul", square("n", 16, 16), (16, 16, 1), "a b c n"),
                           (OWN / "kernels.cu", "matmul_two_rows", square("n", 16, 32), (16, 16, 1), "a b c n"),
                           (OWN / "kernels.cu", "matmul_eight_rows", square("n", 64, 8), (64, 1, 1), "a b c n")],
        "mandelbrot": lambda: [(SAMPLES / "fractals/mandelbrot.cu", "mandelbrot", square("width", 16, 16), (16, 16, 1), "image width height limit")],
        "stencil": lambda: [(STYLES / "tiles.cu", "stencil", square("width", 32, 8), (32, 8, 1), "grid out width height"),
                            (OWN / "kernels.cu", "stencil_columns", square("width", 256, 64), (256, 1, 1), "grid out width height")],
        "transpose": lambda: [(STYLES / "tiles.cu", "transpose", square("side", 32, 32), (32, 8, 1), "matrix out side")],
        "block_sums": lambda: [(STYLES / "reduce.cu", "reduce_shuffle", *line(a["n"] // 2, 256), "x sums"),
                               (OWN / "kernels.cu", "block_sums_warps", *line(a["n"] // 16, 256), "x sums")],
        "histogram": lambda: [(STYLES / "counting.cu", "histogram_shared", (512, 1, 1), (256, 1, 1), "data n counts")],
        "softmax": lambda: [(STYLES / "rows.cu", "softmax", (a["rows"], 1, 1), (256, 1, 1), "matrix out columns"),
                            (OWN / "kernels.cu", "softmax_warps", *line(a["rows"] * 32, 256), "matrix out columns"),
                            (OWN / "kernels.cu", "softmax_registers", *line(a["rows"] * 32, 256), "matrix out columns")],
        "csr": lambda: [(STYLES / "rows.cu", "csr_scalar", *line(a["rows"], 256), "rows begin column value x y")],
        "convolve": lambda: [(STYLES / "tiles.cu", "convolve", square("width", 16, 16), (16, 16, 1), "image out width height"),
                             (OWN / "kernels.cu", "convolve_plain", square("width", 256, 1), (256, 1, 1), "image out width height")],
        "lennard_jones": lambda: [(STYLES / "molecules.cu", "lennard_jones", *line(a["n"], 128), "n neighbours x y z neighbour cutoff_squared fx fy fz")],
        "scan": lambda: [(STYLES / "counting.cu", "scan", *line(a["n"], 256), "numbers out"),
                         (OWN / "kernels.cu", "scan_shuffles", *line(a["n"], 256), "numbers out"),
                         (OWN / "kernels.cu", "scan_threads", *line(a["n"] // 256, 64), "numbers out")],
    }[name]()


class Peer:
    name = "quern"

    def __init__(self, threads):
        self.session = quern_c.Session(os.environ["QUERN_BENCH_LIBRARY"])
        self.version = self.session.version()

    def prepare(self, name, arguments):
        self.arrays = {key: quern_c.Array(self.session, value) for key, value in arguments.items() if isinstance(value, np.ndarray)}
        result = {}
        for file, entry, grid, block, words in ways(name, arguments):
            kernel = self.session.kernel("cuda", file.read_text(), entry)
            values = [self.arrays.get(word, np.int32(arguments[word]) if isinstance(arguments[word], int) else arguments[word]) for word in words.split()]
            result[entry] = self.session.prepared(kernel, grid, block, values)
        return result

    def write(self, name, values):
        self.arrays[name].fill(values)

    def read(self, name):
        return self.arrays[name].fetch()

    def drop(self):
        self.arrays = None
