# SPDX-License-Identifier: Apache-2.0
"""What a file's own level may compute: Python's numbers of any length, NumPy's scalars, arrays and records."""
import math

import numpy as np
from numba import cuda, uint64

MASK = 0xFFFF_FFFF_FFFF_FFFF
LEAST = -9223372036854775808
ONES = (1 << 64) - 1
LARGE = uint64(0xFFFF_FFFF_FFFF_FFFF)
INF = math.inf
NONE = float("nan")
TENTH = 10**-1
THIRD = np.float32(1) / np.float32(3)
ROOT = math.log(10) * 2 + np.sqrt(2.0)
CHOSEN = max(3, 4) if 2 < 3 and MASK else min(1, 2)
SIZES = (abs(-3), round(2.5)) + (len((1, 2)),)
TURN = 1 + 2j
HALF = np.array([1.5, -0.1, 70000], np.float16)
WIDE = np.array([0xFFFF_FFFF_FFFF_FFFF, 2], dtype=np.uint64)
EDGES = np.array([math.inf, -np.inf, np.nan], dtype=np.dtype("f4"))
WAVES = np.array([1 + 2j, 3], dtype=np.complex64)
GRID = np.array([[1j, 2], [3, 4.5 - 1j]])
HALVES = np.array([[0.5, 1], [2, 3]], np.float16)
PAIR = np.dtype([("a", np.int16), ("z", np.complex64), ("m", np.complex128, (2, 2))], align=True)
PAIRS = np.array([[(1, 2j, [[1, 2], [3, 4j]])], [(3, 4, [[5, 6], [7, 8]])]], dtype=PAIR)
CUBE = np.array([1, 2], ndmin=3, dtype=int)
STEPS = np.arange(1, 2, 0.1, dtype=np.float32)
POINT = np.dtype([("x", np.float32), ("tag", np.int8), ("v", np.float64, (2,))], align=True)
POINTS = np.array([(1.5, 2, (0.1, 0.2)), (3, -4, (0.3, 0.4))], dtype=POINT)


@cuda.jit
def computed(unsigned, ints, reals, waves):
    points = cuda.const.array_like(POINTS)
    unsigned[0] = MASK
    unsigned[1] = ONES >> 3
    unsigned[2] = LARGE
    unsigned[3] = WIDE[0]
    ints[0] = LEAST
    ints[1] = CHOSEN
    for i in range(3):
        ints[2 + i] = SIZES[i]
    ints[5] = CUBE[0, 0, 1] + CUBE.ndim
    ints[6] = points[1].tag
    ints[7] = STEPS.size
    reals[0] = INF
    reals[1] = NONE
    reals[2] = TENTH
    reals[3] = THIRD
    reals[4] = ROOT
    for i in range(3):
        reals[5 + i] = HALF[i]
        reals[8 + i] = EDGES[i]
    for i in range(2):
        reals[11 + i] = points[i].x
        for k in range(2):
            reals[13 + 2 * i + k] = points[i].v[k]
    for i in range(STEPS.size):
        reals[17 + i] = STEPS[i]
    pairs = cuda.const.array_like(PAIRS)
    for i in range(2):
        for k in range(2):
            waves[3 + 2 * i + k] = GRID[i, k] + HALVES[i, k]
            waves[7 + 2 * i + k] = pairs[i, 0].m[k, 1] * pairs[i, 0].a + pairs[1 - i, 0].z
    waves[0] = TURN
    waves[1] = WAVES[0]
    waves[2] = WAVES[1]
