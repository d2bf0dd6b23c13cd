# SPDX-License-Identifier: Apache-2.0
"""The works that quern and its peers do: arguments, and results by NumPy.

Each peer has the arguments of a work by name, runs it in its own way and leaves its results in the arrays that `results` names. `check`
compares a part of them where NumPy takes long for all.
"""
import dataclasses
from collections.abc import Callable

import numpy as np

f32, f64, i32 = np.float32, np.float64, np.int32
FILTER = np.array([1, 2, 3, 4, 3, 2, 1, 2, 5, 7, 8, 6, 4, 2, 3, 7, 9, 12, 10, 6, 3, 4, 9, 13, 16, 13, 8, 4, 3, 6, 11, 12, 9, 7, 3, 2, 4, 6, 8, 7,
                   5, 2, 1, 2, 3, 4, 3, 2, 1], f32)
BLOCK_SUM, SCAN_BLOCK, NEIGHBOURS, BINS, ATOMS_EDGE = 512, 256, 64, 256, 32


@dataclasses.dataclass(frozen=True)
class Work:
    name: str
    what: str
    make: Callable  # (NumPy's generator of random numbers) -> arguments by name
    results: tuple  # names of arrays that the work writes
    check: Callable  # (arguments before the work, results) -> yields (results, expected ones, error times 1 + magnitude, fraction that may differ by more)


def close(got, expected, error, fraction=0.0):
    """None, or words about the difference."""
    if got.shape != expected.shape:
        return f"{got.shape}, expected {expected.shape}"
    wrong = ~(np.abs(got.astype(f64) - expected) <= error * (1 + np.abs(expected)))
    if np.count_nonzero(wrong) <= fraction * wrong.size:
        return None
    at = int(np.flatnonzero(wrong)[0])
    return f"{np.count_nonzero(wrong)} of {wrong.size} elements, the first at {at}: {got.flat[at]}, expected {expected.flat[at]}"


def difference(work, arguments, results):
    return next((words for row in work.check(arguments, results) if (words := close(*row))), None)


def uniform(random, low, high, shape, dtype=f32):
    return (random.random(shape, dtype) * dtype(high - low) + dtype(low)).astype(dtype)


def make_saxpy(random, n=1 << 24):
    return {"n": n, "a": f32(1.5), "x": uniform(random, -1, 1, n), "y": uniform(random, 1, 2, n)}


def check_saxpy(before, after):
    yield after["y"], before["a"] * before["x"].astype(f64) + before["y"], 1e-6


def make_black_scholes(random, n=1 << 21):
    return {"n": n, "rate": f32(0.02), "volatility": f32(0.3), "spot": uniform(random, 5, 30, n), "strike": uniform(random, 1, 100, n),
            "years": uniform(random, 0.25, 10, n), "call": np.zeros(n, f32), "put": np.zeros(n, f32)}


def normal_cdf(x):
    k = 1 / (1 + 0.2316419 * np.abs(x))
    tail = 0.39894228040143267794 * np.exp(-0.5 * x * x) * k * (
        0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    return np.where(x > 0, 1 - tail, tail)


def check_black_scholes(before, after):
    spot, strike, years = (before[name].astype(f64) for name in ("spot", "strike", "years"))
    rate, volatility = f64(before["rate"]), f64(before["volatility"])
    root = volatility * np.sqrt(years)
    d1 = (np.log(spot / strike) + (rate + 0.5 * volatility**2) * years) / root
    discounted = strike * np.exp(-rate * years)
    call = spot * normal_cdf(d1) - discounted * normal_cdf(d1 - root)
    yield after["call"], call, 1e-4
    yield after["put"], call - spot + discounted, 1e-4


def make_nbody(random, n=8192):
    return {"n": n, "softening": f32(0.01), "position": uniform(random, 0, 1, (n, 4)), "acceleration": np.zeros((n, 4), f32)}


def check_nbody(before, after):
    position = before["position"].astype(f64)
    some = slice(0, None, 61)
    apart = position[None, :, :3] - position[some, None, :3]
    pull = position[None, :, 3] / (np.square(apart).sum(axis=2) + f64(before["softening"]))**1.5
    yield after["acceleration"][some, :3], (apart * pull[:, :, None]).sum(axis=1), 1e-3


def make_matmul(random, n=768):
    return {"n": n, "a": uniform(random, -1, 1, (n, n)), "b": uniform(random, -1, 1, (n, n)), "c": np.zeros((n, n), f32)}


def check_matmul(before, after):
    yield after["c"], before["a"].astype(f64) @ before["b"].astype(f64), 1e-4


def make_mandelbrot(random, width=1024):
    return {"width": width, "height": width, "limit": 256, "image": np.zeros((width, width), i32)}


def check_mandelbrot(before, after):
    width, height = before["width"], before["height"]
    some = np.arange(0, height, 16)
    cx = f32(-2) + f32(3) * np.arange(width, dtype=f32)[None, :] / f32(width)
    cy = f32(-1) + f32(2) * some.astype(f32)[:, None] / f32(height)
    x = y = np.zeros((some.size, width), f32)
    steps = np.zeros((some.size, width), i32)
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(before["limit"]):
            xx, yy = x * x, y * y
            inside = xx + yy < 4
            steps += inside
            x, y = np.where(inside, xx - yy + cx, x), np.where(inside, 2 * x * y + cy, y)
    yield after["image"][some], steps, 0.0, 0.02  # products are fused differently: points at the edge of the set


def make_stencil(random, side=4096):
    return {"width": side, "height": side, "grid": uniform(random, -1, 1, (side, side)), "out": np.zeros((side, side), f32)}


def check_stencil(before, after):
    grid = before["grid"]
    yield after["out"][1:-1, 1:-1], 0.25 * (grid[1:-1, :-2] + grid[1:-1, 2:] + grid[:-2, 1:-1] + grid[2:, 1:-1]), 1e-6


def make_transpose(random, side=4096):
    return {"side": side, "matrix": uniform(random, -1, 1, (side, side)), "out": np.zeros((side, side), f32)}


def check_transpose(before, after):
    yield after["out"], np.ascontiguousarray(before["matrix"].T), 0.0


def make_block_sums(random, n=1 << 24):
    return {"n": n, "x": uniform(random, 0, 1, n), "sums": np.zeros(n // BLOCK_SUM, f32)}


def check_block_sums(before, after):
    yield after["sums"], before["x"].reshape(-1, BLOCK_SUM).sum(axis=1, dtype=f64), 1e-5


def make_histogram(random, n=1 << 23):
    return {"n": n, "data": random.integers(0, BINS, n, np.uint8), "counts": np.zeros(BINS, np.uint32)}


def check_histogram(before, after):
    yield after["counts"], np.bincount(before["data"], minlength=BINS), 0.0


def make_softmax(random, rows=8192, columns=1000):
    return {"rows": rows, "columns": columns, "matrix": uniform(random, -4, 4, (rows, columns)), "out": np.zeros((rows, columns), f32)}


def check_softmax(before, after):
    powers = np.exp(before["matrix"] - before["matrix"].max(axis=1, keepdims=True))
    yield after["out"], powers / powers.sum(axis=1, keepdims=True, dtype=f64), 1e-6


def make_csr(random, rows=1 << 18, columns=1 << 16):
    begin = np.concatenate([[0], np.cumsum(random.integers(8, 25, rows))]).astype(i32)
    return {"rows": rows, "begin": begin, "column": random.integers(0, columns, begin[-1], i32), "value": uniform(random, -1, 1, int(begin[-1])),
            "x": uniform(random, -1, 1, columns), "y": np.zeros(rows, f32)}


def check_csr(before, after):
    products = before["value"].astype(f64) * before["x"][before["column"]]
    yield after["y"], np.add.reduceat(products, before["begin"][:-1]), 1e-4


def make_convolve(random, side=2048):
    return {"width": side, "height": side, "image": uniform(random, -1, 1, (side, side)), "out": np.zeros((side, side), f32)}


def check_convolve(before, after):
    width, height = before["width"], before["height"]
    padded = np.pad(before["image"], 3)
    expected = np.zeros((height, width), f64)
    for number, factor in enumerate(FILTER):
        j, i = divmod(number, 7)
        expected += f64(factor) * padded[j:j + height, i:i + width]
    yield after["out"], expected, 1e-3


def make_lennard_jones(random):
    edge, n = ATOMS_EDGE, ATOMS_EDGE**3
    place = np.arange(n)
    lattice = np.stack([place % edge, place // edge % edge, place // edge**2])
    x, y, z = 1.2 * lattice + 0.2 * random.random((3, n))
    # The neighbours are the 5 x 5 x 5 around an atom without itself, in lists that threads with consecutive atoms read side by side.
    steps = np.delete(np.arange(125), 62)[random.integers(0, 124, (NEIGHBOURS, n))]
    moved = [(lattice[axis] + steps // 5**axis % 5 - 2) % edge for axis in range(3)]
    neighbour = (moved[0] + edge * moved[1] + edge**2 * moved[2]).astype(i32)
    return {"n": n, "neighbours": NEIGHBOURS, "x": x.copy(), "y": y.copy(), "z": z.copy(), "neighbour": neighbour, "cutoff_squared": f64(6.25),
            "fx": np.zeros(n), "fy": np.zeros(n), "fz": np.zeros(n)}


def check_lennard_jones(before, after):
    x, y, z, neighbour = (before[name] for name in ("x", "y", "z", "neighbour"))
    dx, dy, dz = x - x[neighbour], y - y[neighbour], z - z[neighbour]
    squared = dx * dx + dy * dy + dz * dz
    six = squared**-3.0
    force = np.where(squared < before["cutoff_squared"], 48 / squared * six * (six - 0.5), 0)
    for name, along in (("fx", dx), ("fy", dy), ("fz", dz)):
        yield after[name], (force * along).sum(axis=0), 1e-9 * (1 + np.abs(force * along).sum(axis=0))


def make_scan(random, n=1 << 23):
    return {"n": n, "numbers": random.integers(-1000, 1000, n, i32), "out": np.zeros(n, i32)}


def check_scan(before, after):
    yield after["out"], np.cumsum(before["numbers"].reshape(-1, SCAN_BLOCK), axis=1).reshape(-1), 0.0


WORKS = [
    Work("saxpy", "saxpy, 16 Mi elements, f32", make_saxpy, ("y",), check_saxpy),
    Work("black_scholes", "Black-Scholes, 2 Mi options, f32", make_black_scholes, ("call", "put"), check_black_scholes),
    Work("nbody", "n bodies, 8,192, f32", make_nbody, ("acceleration",), check_nbody),
    Work("matmul", "matrix product, 768 x 768, f32", make_matmul, ("c",), check_matmul),
    Work("mandelbrot", "mandelbrot, 1024 x 1024, 256 steps", make_mandelbrot, ("image",), check_mandelbrot),
    Work("stencil", "5-point stencil, 4096 x 4096, f32", make_stencil, ("out",), check_stencil),
    Work("transpose", "transpose, 4096 x 4096, f32", make_transpose, ("out",), check_transpose),
    Work("block_sums", "sums of 512 elements, 16 Mi, f32", make_block_sums, ("sums",), check_block_sums),
    Work("histogram", "histogram, 256 bins, 8 Mi bytes", make_histogram, ("counts",), check_histogram),
    Work("softmax", "softmax, 8,192 rows of 1,000, f32", make_softmax, ("out",), check_softmax),
    Work("csr", "sparse product, 256 Ki rows, f32", make_csr, ("y",), check_csr),
    Work("convolve", "7 x 7 filter, 2048 x 2048, f32", make_convolve, ("out",), check_convolve),
    Work("lennard_jones", "neighbour lists, 32 Ki atoms, f64", make_lennard_jones, ("fx", "fy", "fz"), check_lennard_jones),
    Work("scan", "running sums of 256, 8 Mi, i32", make_scan, ("out",), check_scan),
]
BY_NAME = {work.name: work for work in WORKS}
