# SPDX-License-Identifier: Apache-2.0
"""Inputs and expected values of the Kernel Python samples that expected.py does not write itself; it calls write()."""
import math

import numpy as np


def rng(seed):
    return np.random.default_rng(seed)


def basics(save):
    save("basics/halves_1000.npy", (np.arange(1000) + 0.5).astype(np.float32))
    save("scans/counting_64.npy", np.arange(64, dtype=np.float64))
    save("scans/triangular_256.npy", np.cumsum(np.arange(256), dtype=np.int32))
    rest = np.zeros((256, 4), np.float32)
    rest[:, 3] = 7  # no thread writes the last column
    save("physics/nbody_one_place.npy", rest)
    save("reductions/dot_random.npy", np.array([math.fsum(rng(15).random(20000) * rng(16).random(20000))]))


def heat(now, rate):
    following = now.copy()
    inner = now[1:-1, 1:-1, 1:-1]
    around = sum(np.roll(now, shift, axis)[1:-1, 1:-1, 1:-1] for axis in range(3) for shift in (1, -1))
    following[1:-1, 1:-1, 1:-1] = inner + rate * (around - 6 * inner)
    return following


def convolve(image, weights):
    padded = np.pad(image, 1)
    h, w = image.shape
    return sum(weights[j, i] * padded[j:j + h, i:i + w] for j in range(3) for i in range(3)) / 16


def images(save):
    save("physics/heat_9x14x11.npy", heat(rng(13).random((9, 14, 11)), 0.1))
    image = rng(14).random((35, 50), np.float32).astype(np.float64)
    save("stencils/convolve_35x50.npy", convolve(image, np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]])).astype(np.float32))
    noise = rng(18).integers(0, 256, (30, 41)).astype(np.uint8)
    result = noise.copy()
    for y in range(1, 29):
        for x in range(1, 40):
            result[y, x] = np.median(noise[y - 1:y + 2, x - 1:x + 2])
    save("images/noise_30x41.npy", noise)
    save("images/median_30x41.npy", result)
    colours = rng(19).integers(0, 256, (11, 13, 3)).astype(np.uint8)
    save("images/colours_11x13.npy", colours)
    save("images/grey_11x13.npy", (colours.astype(np.int64) @ [299, 587, 114] // 1000).astype(np.uint8))
    red = colours.copy()
    red[:, ::2, 1:] = 0
    red[:, 1::2, 0] = 255 - red[:, 1::2, 0]
    save("images/red_11x13.npy", red)


def warps(save):
    values = rng(20).integers(-40, 40, 256)
    save("reductions/warp_values.npy", values)
    rows = [[w.sum(), w.max(), (w % 2 == 0).sum(), w[0] >= 0, (w == w[0]).sum(), w[0], w[0] < 0] for w in values.reshape(8, 32)]
    save("reductions/warp_results.npy", np.array(rows, np.int64))


def signals(save):
    signal = rng(17).random(100)
    turns = lambda n: np.exp(-2j * np.pi * (np.outer(np.arange(n), np.arange(n)) % n) / n)
    save("signal/dft_100.npy", turns(100) @ signal)
    complex_signal = rng(21).normal(size=64) + 1j * rng(22).normal(size=64)
    save("signal/signal_64.npy", complex_signal)
    save("signal/dft_64.npy", turns(64) @ complex_signal)
    save("signal/power_64.npy", np.stack([np.abs(complex_signal), np.abs(complex_signal) ** 2, complex_signal.imag], 1))


def compressed(edges, count):
    """A graph without directions in compressed rows."""
    rows = [[] for _ in range(count)]
    for a, b in edges:
        rows[a].append(b)
        rows[b].append(a)
    begin = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
    return begin, np.array(sum(rows, []), np.int64)


def breadth_first(begin, neighbours):
    distance = [-1] * (len(begin) - 1)
    distance[0], queue = 0, [0]
    for node in queue:
        for other in neighbours[begin[node]:begin[node + 1]]:
            if distance[other] < 0:
                distance[other] = distance[node] + 1
                queue.append(other)
    return np.array(distance, np.int32)


def graphs(save):
    random_edges = rng(23).integers(0, 200, (230, 2)).tolist()
    for name, edges, count in (("ring", [(i, (i + 1) % 6) for i in range(6)], 7), ("star", [(0, i) for i in range(1, 5)], 5),
                               ("graph", random_edges, 200)):
        begin, neighbours = compressed(edges, count)
        save(f"graphs/{name}_begin.npy", begin)
        save(f"graphs/{name}_neighbours.npy", neighbours)
        if name == "graph":
            save("graphs/graph_distances.npy", breadth_first(begin, neighbours))


def atomics(save):
    save("python/atomics_start.npy", np.array([0, 0, 0, 1000, -1, 0, 0, 0, 0], np.int32))
    values = rng(24).integers(-64, 64, 20) / 8.0  # sums of eighths are exact in any order
    values[7] = np.nan
    save("python/atomics_floats.npy", values)
    save("python/atomics_limits.npy", np.array([[0, -1e9, 1e9]] * 2))
    save("python/atomics_results.npy", np.array([[v.sum(), np.nanmax(v), np.nanmin(v)] for v in (values[::2], values[1::2])]))
    # Python's max(there, value) and min(there, value)
    there, values = [1.5, np.nan, np.nan, -2.0], [np.nan, 3.0, np.nan, 7.0]
    save("python/atomics_there.npy", np.array([there, there]).T.copy())
    save("python/atomics_values.npy", np.array(values))
    save("python/atomics_kept.npy", np.array([[max(a, b), min(a, b)] for a, b in zip(there, values)]))


def roundings(save):
    """By CPython, which rounds a float64 exactly. A float32 is rounded as a float64: 100 times 2.675 is 267.5 in float32."""
    for kind, first in ((np.float64, 2.674), (np.float32, 2.675)):
        with np.errstate(over="ignore"):
            values = np.array([first, 0.125, -0.375, 2.5, -3.5, 1234.5678, -0.04, 250, 1e9, 0]).astype(kind)
        name = np.dtype(kind).name
        save(f"python/roundings_{name}.npy", values)
        save(f"python/rounded_{name}.npy", np.array([[round(float(v), d) if np.isfinite(v) else v for d in range(-2, 4)] for v in values], kind))


def bits(save):
    values = np.concatenate([[0, 1, 2, 2**31, 2**32 - 1], rng(25).integers(0, 2**32, 59)]).astype(np.uint32)
    rows = []
    for v in map(int, values):
        signed = v - 2**32 if v >= 2**31 else v
        rows.append([bin(v).count("1"), 32 - v.bit_length(), (v & -v).bit_length(), int(f"{v:032b}"[::-1], 2), (v & 255) + 255, (v - 1) % 2**32,
                     (v >> 3) & 255, ~v & 65535, 1 if v > 1000 else 2, signed * signed])
    save("python/bits_values.npy", values)
    save("python/bits_results.npy", np.array(rows, np.int64))
    save("python/bits_int8_counts.npy", np.array([bin(abs(v)).count("1") for v in range(-128, 128)], np.uint8))
    wide = np.concatenate([[-(2**63), -(2**63) + 1, 2**63 - 1, -(2**31), 2**31, -1, 0, 1], rng(36).integers(-(2**63), 2**63, 56)]).astype(np.int64)
    save("python/bits_int64.npy", wide)
    save("python/bits_int64_counts.npy", np.array([bin(abs(v)).count("1") for v in wide.tolist()], np.uint8))


ONE = [math.sqrt, math.exp, math.log, math.log10, math.sin, math.atan, math.tanh, math.asinh, math.floor, math.ceil, math.erf, math.degrees]


def functions(save):
    x = rng(26).uniform(0.05, 5, 200)
    y = rng(27).uniform(-6, 6, 200)
    y[3] = math.inf
    save("python/functions_x.npy", x)
    save("python/functions_x32.npy", x.astype(np.float32))
    save("python/functions_y.npy", y)
    save("python/functions_one.npy", np.array([[f(v) for v in x] for f in ONE]))
    save("python/functions_one32.npy", np.array([[f(v) for v in x.astype(np.float32).astype(float)] for f in ONE]).astype(np.float32))
    columns = [[math.pow(a, b), math.atan2(a, b), math.hypot(a, b), math.fmod(a, b), math.copysign(a, b), a**b, 2 * abs(b), *math.frexp(a), *math.modf(b),
                math.isinf(b)] for a, b in zip(x.tolist(), y.tolist())]
    save("python/functions_two.npy", np.array(columns, float).T.copy())


def typing(save):
    unsigned = np.array([1, 20, 200, 255], np.uint8)
    save("python/typing_unsigned.npy", unsigned)
    wrap = lambda value, bits: (value + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1)
    for suffix, small in (("", np.array([1, -2, 50000, 100000], np.int32)), ("16", np.array([-3, 7, 300, -30000], np.int16))):
        rows = [[s * s, u + u, s - u, -s, wrap(s * s, 32), (u + u) % 256, s / u, np.float32(s) / np.float32(3), np.float32(wrap(s, 16)) + np.float32(0.5),
                 0.5 if u > 10 else s, 2 * (s > 0), 1 if s > 0 else 2] for s, u in zip(small.tolist(), unsigned.tolist())]
        save(f"python/typing_small{suffix}.npy", small)
        save(f"python/typing_results{suffix}.npy", np.array(rows, float))


def mixed(save):
    z = np.array([1j, 1, 2j, 3 - 1j, 0.5 + 4j, 3], np.complex64)
    w = np.array([1j, 0, 0.1, 3 - 1j, 2 + 2j, 3], np.complex128)
    real = np.array([0.25, 1, 3, 0.1, 4, 3], np.float32)
    ints = np.array([2, 1, 0, -3, 7, 3])
    h = np.array([1, 1, 2.5, 3.25, -0.5, 3], np.float16)
    for name, values in (("z", z), ("w", w), ("real", real), ("ints", ints), ("h", h)):
        save(f"python/mixed_{name}.npy", values)
    wide = lambda values: values.astype(np.complex128)
    save("python/mixed_narrow.npy", np.stack([wide(z) + 2, wide(z) * 2.5, wide(z) - ints, wide(z) + 1j, wide(z) + w, z / real.astype(np.complex64), w * wide(z)],
                                             1).astype(np.complex64))
    rows = np.tile(w, (6, 1))
    rows[:, 0] = np.where(ints > 1, z, w)
    rows[:, 1] = np.where(ints == 0, 0, z)
    save("python/mixed_wide.npy", rows)
    truths = [z == 1j, z == real, wide(z) != w, w == 0, real == 1j, (z == 1j) | (z == 2j), wide(z) == w, ~((z == ints) & (w == real))]
    save("python/mixed_complex_truths.npy", np.stack(truths, 1))
    h64 = h.astype(np.float64)
    numbers = [np.where(ints > 1, h, real), np.where(ints > 1, h64, 0.1), h64 + 1.5, h.astype(np.float32) * real, h64 // 2]
    save("python/mixed_numbers.npy", np.stack([row.astype(np.float64) for row in numbers], 1))
    truths = [h64 > 2.5, h64 == 1, h < real, (h64 > 0) & (h64 <= 3), (h64 == 1) | (h64 == 2), h64 == ints, h64 == 1 + 2.0**-12]
    save("python/mixed_half_truths.npy", np.stack(truths, 1))
    rows = []
    for x, n in zip(real.tolist(), ints.tolist()):
        a, b = (x, n), (n, x, 3)
        rows.append([a < b, a <= a, b > a, (1, (n, 2)) >= (True, (x, 2.5)), (1, 2) < (1, 2, 3)])
    save("python/mixed_ordered.npy", np.array(rows))


def literals(save):
    reals = [10**-2, 2**64 - 1, 7 // -2 * 2.5 + -7 % 3.5, ((-8) ** (1 / 3)).real, (1 + 2j).imag - (3 - 1j).real, 2**-1 + True / 4,
             100000000000000000000000 // 10**22 / 3, -7.5 // 2]
    ints = [(2**64 - 1) >> 60, 1 << 70 >> 68, -9223372036854775808, 2**63 % 10, ~(1 << 64) >> 3 ^ -5, -(1 << 70) // (1 << 65) - (-7 // 2) % 3,
            (1 << 100 | 3) & ~(1 << 100)]
    save("python/literals_reals.npy", np.array(reals, np.float64))
    save("python/literals_ints.npy", np.array(ints))
    save("python/literals_unsigned.npy", np.array([2**63, 0xFFFF_FFFF_FFFF_FFFF - 3, 0x1_0000_0000_0000_0000 >> 1], np.uint64))


def constants(save):
    most = 2**64 - 1
    save("python/constants_unsigned.npy", np.array([most, most >> 3, most, most], np.uint64))
    save("python/constants_ints.npy", np.array([-(2**63), 4, 3, 2, 2, 2 + 3, -4, 10]))
    steps = np.arange(1, 2, 0.1, dtype=np.float32)
    reals = [np.inf, np.nan, 10**-1, np.float32(1) / np.float32(3), math.log(10) * 2 + np.sqrt(2.0), *np.array([1.5, -0.1, np.inf], np.float16),
             np.inf, -np.inf, np.nan, 1.5, 3, 0.1, 0.2, 0.3, 0.4, *steps]
    save("python/constants_reals.npy", np.array(reals, np.float64))
    waves = [1 + 2j, 1 + 2j, 3, 0.5 + 1j, 3, 5, 7.5 - 1j]
    waves += [2 * 1 + 4, 4j * 1 + 4, 6 * 3 + 2j, 8 * 3 + 2j]
    save("python/constants_waves.npy", np.array(waves))


def rows(save):
    middle = rng(27).integers(0, 100, (6, 3)).astype(np.int32)
    save("python/rows_middle.npy", middle)
    table = np.tile(np.arange(8.0), (6, 1))
    table[:, 2:5] = middle[:, ::-1]
    table[:, ::7] = np.arange(6)[:, None]
    save("python/rows_table.npy", table)


def small(save):
    save("python/tuples_values.npy", np.array([-11, 3, 7, 8, 9]))
    save("python/tuples_floats.npy", np.array([6.5, 2, 2.5, 2.25, 0.5, 7.5]))
    save("python/layouts_cube.npy", np.arange(24, dtype=np.int32).reshape(2, 3, 4))
    save("python/layouts_single.npy", np.array(5))
    save("roc/counting_from_1.npy", np.arange(1, 101, dtype=np.float32))
    where = [[[i % 4, j // 2, 402, 23, 6, 2] for j in range(6)] for i in range(8)]
    save("roc/where_8x6.npy", np.array(where))


def xoroshiro(states, draws):
    """The generator of D. Blackman and S. Vigna, "xoroshiro128+", 2016: 53 of its bits as a number in [0, 1)."""
    mask = 2**64 - 1
    rotate = lambda x, k: (x << k | x >> (64 - k)) & mask
    numbers = np.zeros((len(states), draws))
    for row, (s0, s1) in enumerate(states.tolist()):
        for k in range(draws):
            numbers[row, k] = ((s0 + s1 & mask) >> 11) * 2.0**-53
            s1 ^= s0
            s0, s1 = rotate(s0, 55) ^ s1 ^ (s1 << 14 & mask), rotate(s1, 36)
    return numbers


def random_numbers(save):
    states = np.zeros(40, np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True))
    states["s0"], states["s1"] = rng(31).integers(1, 2**63, (2, 40))
    save("random_numbers/xoroshiro_states.npy", states)
    save("random_numbers/xoroshiro_numbers.npy", xoroshiro(states, 5))
    points = xoroshiro(states, 400).astype(np.float32).reshape(40, 200, 2)
    save("random_numbers/xoroshiro_hits.npy", (points[..., 0] * points[..., 0] + points[..., 1] * points[..., 1] <= 1).sum(1).astype(np.int32))


PARTICLE = np.dtype([("position", np.float32, (3,)), ("velocity", np.float32, (3,)), ("mass", np.float64), ("bounces", np.int32)], align=True)


def particles(save):
    now = np.zeros(50, PARTICLE)
    now["position"], now["velocity"], now["mass"] = rng(32).random((50, 3)), rng(33).normal(0, 1, (50, 3)), rng(34).random(50)
    following = np.zeros(50, PARTICLE)  # its padding, too
    for name in PARTICLE.names:
        following[name] = now[name]
    following["position"] += following["velocity"] * np.float32(0.25)
    outside = (following["position"] < 0) | (following["position"] > 1)
    following["velocity"][outside] *= -1
    following["bounces"] += outside.sum(1)
    save("physics/particles_50.npy", now)
    save("physics/particles_50_next.npy", following)
    squares = following["velocity"] * following["velocity"]  # in float32, summed in float64
    save("physics/particles_energy.npy", 0.5 * following["mass"] * (squares[:, 0].astype(float) + squares[:, 1] + squares[:, 2]))


def features(save):
    limits = np.array([[0.0, 1.0], [-2.0, 3.0], [5.0, 1.0]])
    save("python/closures_limits.npy", limits)
    middle = limits[:, :1] + (np.arange(100) + 0.5) * (limits[:, 1:] - limits[:, :1]) / 100
    save("python/closures_integrals.npy", ((middle**2 - limits[:, :1]) * (limits[:, 1:] - limits[:, :1]) / 100).sum(1))
    places = np.linspace(limits[:, 0], limits[:, 1], 101)
    curves = [places**2, 1 / (1 + places**2), np.exp(places), places + 1]
    areas = [(f.sum(0) - (f[0] + f[-1]) / 2) * (limits[:, 1] - limits[:, 0]) / 100 for f in curves]
    save("python/callbacks_integrals.npy", np.stack([*areas, 2 * limits[:, 1], 3 * limits[:, 1]], 1))
    t = rng(30).random((30, 3, 3), np.float32)
    a, b = t[:, 1] - t[:, 0], t[:, 2] - t[:, 0]
    save("python/vectors_normals.npy", np.stack([a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1], a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2],
                                                 a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]], 1))
    x = rng(35).normal(0, 8, 500).astype(np.float16)
    fused = (x.astype(np.float64) * x + x).astype(np.float16)  # exact in float64, rounded once
    save("half_precision/polynomial_x.npy", x)
    save("half_precision/polynomial_out.npy", np.stack([x * x + x, fused, np.maximum(x, np.float16(1)), np.abs(x)], 1))
    w = np.linspace(0, 3, 31)
    for name, taps in (("response", [0.25, 0.5, 0.25]), ("bound", [2.0])):
        total = sum(tap * np.exp(-1j * k * w) for k, tap in enumerate(taps))
        save(f"signal/filter_{name}.npy", np.stack([np.abs(total), np.angle(total)], 1))


def write(save):
    for part in (random_numbers, particles, features, basics, images, warps, signals, graphs, atomics, roundings, bits, functions, typing, mixed, literals, constants, rows, small):
        part(save)
