# SPDX-License-Identifier: Apache-2.0
"""The works in Numba: parallel loops over contiguous arrays. Products and sums may be fused, as all the others do; fastmath is off, since
none of the others may reorder sums. Where there are several ways to write a work, the fastest counts."""
import math

import numpy as np
from numba import njit, prange

from works import FILTER

parallel = njit(parallel=True, fastmath={"contract"}, error_model="numpy", cache=True)
inline = njit(fastmath={"contract"}, error_model="numpy", cache=True)
f32, one, two = np.float32, np.float32(1), np.float32(2)


@parallel
def saxpy(a, x, y):
    for i in prange(x.size):
        y[i] = a * x[i] + y[i]


C = tuple(f32(c) for c in (0.2316419, 0.31938153, -0.356563782, 1.781477937, -1.821255978, 1.330274429, 0.39894228040143267794, -0.5))
C0, C1, C2, C3, C4, C5, C6, MINUS_HALF = C
HALF = f32(0.5)


@inline
def normal_cdf(x):
    k = one / (one + C0 * abs(x))
    polynomial = k * (C1 + k * (C2 + k * (C3 + k * (C4 + k * C5))))
    tail = C6 * math.exp(MINUS_HALF * x * x) * polynomial
    return one - tail if x > f32(0) else tail


@parallel
def black_scholes(spot, strike, years, rate, volatility, call, put):
    for i in prange(spot.size):
        root = volatility * math.sqrt(years[i])
        d1 = (math.log(spot[i] / strike[i]) + (rate + HALF * volatility * volatility) * years[i]) / root
        discounted = strike[i] * math.exp(-rate * years[i])
        price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - root)
        call[i] = price
        put[i] = price - spot[i] + discounted


@parallel
def nbody(position, acceleration, softening):
    n = position.shape[0]
    for i in prange(n):
        x, y, z = position[i, 0], position[i, 1], position[i, 2]
        ax = ay = az = f32(0)
        for j in range(n):
            dx, dy, dz = position[j, 0] - x, position[j, 1] - y, position[j, 2] - z
            inverse = one / math.sqrt(dx * dx + dy * dy + dz * dz + softening)
            pull = position[j, 3] * inverse * inverse * inverse
            ax += dx * pull
            ay += dy * pull
            az += dz * pull
        acceleration[i, 0], acceleration[i, 1], acceleration[i, 2], acceleration[i, 3] = ax, ay, az, f32(0)


@inline
def attract(own, sums, j_position, softening):
    """One body on a strip of bodies: the inner loop is over the strip and vectorises."""
    px, py, pz, mass = j_position[0], j_position[1], j_position[2], j_position[3]
    for k in range(256):
        dx, dy, dz = px - own[0, k], py - own[1, k], pz - own[2, k]
        inverse = one / math.sqrt(dx * dx + dy * dy + dz * dz + softening)
        pull = mass * inverse * inverse * inverse
        sums[0, k] += dx * pull
        sums[1, k] += dy * pull
        sums[2, k] += dz * pull


@parallel
def nbody_strips(position, acceleration, softening):
    n = position.shape[0]
    for strip in prange(n // 256):
        own, sums = np.empty((3, 256), np.float32), np.zeros((3, 256), np.float32)
        for k in range(256):
            for d in range(3):
                own[d, k] = position[strip * 256 + k, d]
        for j in range(n):
            attract(own, sums, position[j], softening)
        for k in range(256):
            for d in range(3):
                acceleration[strip * 256 + k, d] = sums[d, k]
            acceleration[strip * 256 + k, 3] = 0


@parallel
def matmul(a, b, c):
    n = a.shape[0]
    for i in prange(n):
        for j in range(n):
            c[i, j] = 0
        for k in range(n):
            factor = a[i, k]
            for j in range(n):
                c[i, j] += factor * b[k, j]


@parallel
def matmul_four_rows(a, b, c):
    n = a.shape[0]
    for strip in prange(n // 4):
        i = 4 * strip
        c[i:i + 4, :] = 0
        c0, c1, c2, c3 = c[i], c[i + 1], c[i + 2], c[i + 3]
        for k in range(0, n, 2):
            x0, x1, x2, x3 = a[i, k], a[i + 1, k], a[i + 2, k], a[i + 3, k]
            y0, y1, y2, y3 = a[i, k + 1], a[i + 1, k + 1], a[i + 2, k + 1], a[i + 3, k + 1]
            for j in range(n):
                p, q = b[k, j], b[k + 1, j]
                c0[j] += x0 * p + y0 * q
                c1[j] += x1 * p + y1 * q
                c2[j] += x2 * p + y2 * q
                c3[j] += x3 * p + y3 * q


@parallel
def mandelbrot(image, limit):
    height, width = image.shape
    for row in prange(height):
        cy = f32(-1) + two * f32(row) / f32(height)
        for column in range(width):
            cx = f32(-2) + f32(3) * f32(column) / f32(width)
            x = y = f32(0)
            steps = 0
            while steps < limit and x * x + y * y < f32(4):
                x, y = x * x - y * y + cx, two * x * y + cy
                steps += 1
            image[row, column] = steps


@inline
def mandelbrot_step(x, y, cx, cy, steps):
    """One step of 64 points, without a branch: it vectorises. Returns how many are still inside the circle."""
    inside = np.int32(0)
    for k in range(64):
        xx, yy = x[k] * x[k], y[k] * y[k]
        here = np.int32(xx + yy < f32(4))
        y[k] = two * x[k] * y[k] + cy
        x[k] = xx - yy + cx[k]
        steps[k] += here
        inside += here
    return inside


@parallel
def mandelbrot_strips(image, limit):
    height, width = image.shape
    for row in prange(height):
        cy = f32(-1) + two * f32(row) / f32(height)
        x, y, cx = np.empty(64, np.float32), np.empty(64, np.float32), np.empty(64, np.float32)
        for first in range(0, width, 64):
            steps = image[row, first:first + 64]
            for k in range(64):
                cx[k] = f32(-2) + f32(3) * f32(first + k) / f32(width)
                x[k] = y[k] = 0
                steps[k] = 0
            for _ in range(limit):
                if mandelbrot_step(x, y, cx, cy, steps) == 0:
                    break


QUARTER = f32(0.25)


@parallel
def stencil(grid, out):
    height, width = grid.shape
    for y in prange(1, height - 1):
        for x in range(1, width - 1):
            out[y, x] = QUARTER * (grid[y, x - 1] + grid[y, x + 1] + grid[y - 1, x] + grid[y + 1, x])


@parallel
def transpose_tiles(matrix, out):
    side = matrix.shape[0]
    for strip in prange(side // 32):
        y0 = strip * 32
        for x0 in range(0, side, 32):
            for x in range(x0, x0 + 32):
                for y in range(y0, y0 + 32):
                    out[x, y] = matrix[y, x]


@parallel
def transpose_slices(matrix, out):
    side = matrix.shape[0]
    for strip in prange(side // 16):
        x = strip * 16
        for y in range(0, side, 16):
            out[x:x + 16, y:y + 16] = matrix[y:y + 16, x:x + 16].T


@parallel
def transpose_buffers(matrix, out):
    """Through a tile of its own, which stays in the nearest cache."""
    side = matrix.shape[0]
    for strip in prange(side // 32):
        y0 = strip * 32
        tile = np.empty((32, 32), np.float32)
        for x0 in range(0, side, 32):
            for y in range(32):
                for x in range(32):
                    tile[y, x] = matrix[y0 + y, x0 + x]
            for x in range(32):
                for y in range(32):
                    out[x0 + x, y0 + y] = tile[y, x]


@parallel
def block_sums(x, sums):
    for block in prange(sums.size):
        total = f32(0)
        for i in range(block * 512, block * 512 + 512):
            total += x[i]
        sums[block] = total


@parallel
def block_sums_lanes(x, sums):
    """64 sums at a time, whose loop vectorises."""
    for strip in prange(sums.size // 64):
        lanes = np.empty(64, np.float32)
        for block in range(strip * 64, strip * 64 + 64):
            part = x[block * 512:block * 512 + 512]
            for k in range(64):
                lanes[k] = part[k]
            for first in range(64, 512, 64):
                for k in range(64):
                    lanes[k] += part[first + k]
            for k in range(16):
                lanes[k] = (lanes[k] + lanes[k + 16]) + (lanes[k + 32] + lanes[k + 48])
            total = f32(0)
            for k in range(16):
                total += lanes[k]
            sums[block] = total


@parallel
def histogram(data, counts, parts):
    """Tables of each part, four of them, so that equal neighbours do not wait for each other."""
    tables = np.zeros((parts, 4, 256), np.uint32)
    step = data.size // parts
    for part in prange(parts):
        own = tables[part]
        for i in range(part * step, part * step + step, 4):
            own[0, data[i]] += 1
            own[1, data[i + 1]] += 1
            own[2, data[i + 2]] += 1
            own[3, data[i + 3]] += 1
    for part in range(parts):
        for k in range(4):
            for b in range(256):
                counts[b] += tables[part, k, b]


@parallel
def softmax(matrix, out):
    rows, columns = matrix.shape
    for row in prange(rows):
        most = matrix[row, 0]
        for i in range(columns):
            most = max(most, matrix[row, i])
        total = f32(0)
        for i in range(columns):
            e = math.exp(matrix[row, i] - most)
            out[row, i] = e
            total += e
        scale = one / total
        for i in range(columns):
            out[row, i] *= scale


@parallel
def csr(begin, column, value, x, y):
    for row in prange(y.size):
        total = f32(0)
        for i in range(begin[row], begin[row + 1]):
            total += value[i] * x[column[i]]
        y[row] = total


@inline
def filtered(image, x, y):
    height, width = image.shape
    total = f32(0)
    for j in range(max(0, 3 - y), min(7, height + 3 - y)):
        for i in range(max(0, 3 - x), min(7, width + 3 - x)):
            total += FILTER[7 * j + i] * image[y + j - 3, x + i - 3]
    return total


@parallel
def convolve(image, out):
    height, width = image.shape
    for y in prange(height):
        if 3 <= y < height - 3:
            for x in range(3, width - 3):
                total = f32(0)
                for j in range(7):
                    for i in range(7):
                        total += FILTER[7 * j + i] * image[y + j - 3, x + i - 3]
                out[y, x] = total
            for x in range(3):
                out[y, x] = filtered(image, x, y)
                out[y, width - 1 - x] = filtered(image, width - 1 - x, y)
        else:
            for x in range(width):
                out[y, x] = filtered(image, x, y)


@inline
def add_row(to, row, first, factors):
    """Seven products of one row of the image: the loop over the row vectorises."""
    f0, f1, f2, f3, f4, f5, f6 = factors[0], factors[1], factors[2], factors[3], factors[4], factors[5], factors[6]
    for x in range(to.size - 6):
        total = f0 * row[x] + f1 * row[x + 1] + f2 * row[x + 2] + f3 * row[x + 3] + f4 * row[x + 4] + f5 * row[x + 5] + f6 * row[x + 6]
        to[x + 3] = total if first else to[x + 3] + total


@parallel
def convolve_rows(image, out):
    height, width = image.shape
    for y in prange(height):
        if 3 <= y < height - 3:
            for j in range(7):
                add_row(out[y], image[y + j - 3], j == 0, FILTER[7 * j:7 * j + 7])
            for x in range(3):
                out[y, x] = filtered(image, x, y)
                out[y, width - 1 - x] = filtered(image, width - 1 - x, y)
        else:
            for x in range(width):
                out[y, x] = filtered(image, x, y)


@inline
def force_of(squared, cutoff_squared):
    inverse = 1.0 / squared
    six = inverse * inverse * inverse
    return 48.0 * inverse * six * (six - 0.5) if squared < cutoff_squared else 0.0


@parallel
def lennard_jones(x, y, z, neighbour, cutoff_squared, fx, fy, fz):
    for i in prange(x.size):
        sx = sy = sz = 0.0
        for k in range(neighbour.shape[0]):
            j = neighbour[k, i]
            dx, dy, dz = x[i] - x[j], y[i] - y[j], z[i] - z[j]
            squared = dx * dx + dy * dy + dz * dz
            if squared < cutoff_squared:
                force = force_of(squared, cutoff_squared)
                sx += force * dx
                sy += force * dy
                sz += force * dz
        fx[i], fy[i], fz[i] = sx, sy, sz


@parallel
def lennard_jones_strips(x, y, z, neighbour, cutoff_squared, fx, fy, fz):
    """The inner loop is over 128 atoms, with a select and not a branch, so that it can vectorise."""
    for strip in prange(x.size // 128):
        first = strip * 128
        sums = np.zeros((3, 128))
        for k in range(neighbour.shape[0]):
            for i in range(128):
                j = neighbour[k, first + i]
                dx, dy, dz = x[first + i] - x[j], y[first + i] - y[j], z[first + i] - z[j]
                force = force_of(dx * dx + dy * dy + dz * dz, cutoff_squared)
                sums[0, i] += force * dx
                sums[1, i] += force * dy
                sums[2, i] += force * dz
        for i in range(128):
            fx[first + i], fy[first + i], fz[first + i] = sums[0, i], sums[1, i], sums[2, i]


@parallel
def scan(numbers, out):
    for block in prange(numbers.size // 256):
        total = np.int32(0)
        for i in range(block * 256, block * 256 + 256):
            total += numbers[i]
            out[i] = total
