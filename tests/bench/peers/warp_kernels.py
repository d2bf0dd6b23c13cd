# SPDX-License-Identifier: Apache-2.0
"""The works in NVIDIA Warp: a thread an element, a row or a block, as its CPU device runs threads one after another; tiles where they are
its own way to write the work."""
import warp as wp

from works import FILTER

f = wp.float32
d = wp.float64
N_BLOCK = wp.constant(512)
N_SCAN = wp.constant(256)
filter_values = wp.constant(wp.types.vector(length=49, dtype=wp.float32)(*FILTER.tolist()))


@wp.kernel
def saxpy(a: f, x: wp.array(dtype=f), y: wp.array(dtype=f)):
    i = wp.tid()
    y[i] = a * x[i] + y[i]


@wp.func
def normal_cdf(x: f):
    k = 1.0 / (1.0 + 0.2316419 * wp.abs(x))
    polynomial = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    tail = 0.39894228040143267794 * wp.exp(-0.5 * x * x) * polynomial
    return wp.where(x > 0.0, 1.0 - tail, tail)


@wp.kernel
def black_scholes(spot: wp.array(dtype=f), strike: wp.array(dtype=f), years: wp.array(dtype=f), rate: f, volatility: f, call: wp.array(dtype=f),
                  put: wp.array(dtype=f)):
    i = wp.tid()
    root = volatility * wp.sqrt(years[i])
    d1 = (wp.log(spot[i] / strike[i]) + (rate + 0.5 * volatility * volatility) * years[i]) / root
    discounted = strike[i] * wp.exp(-rate * years[i])
    price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - root)
    call[i] = price
    put[i] = price - spot[i] + discounted


@wp.kernel
def nbody(position: wp.array(dtype=wp.vec4), acceleration: wp.array(dtype=wp.vec4), n: int, softening: f):
    i = wp.tid()
    own = position[i]
    ax = float(0.0)
    ay = float(0.0)
    az = float(0.0)
    for j in range(n):
        other = position[j]
        dx = other[0] - own[0]
        dy = other[1] - own[1]
        dz = other[2] - own[2]
        inverse = 1.0 / wp.sqrt(dx * dx + dy * dy + dz * dz + softening)
        pull = other[3] * inverse * inverse * inverse
        ax += dx * pull
        ay += dy * pull
        az += dz * pull
    acceleration[i] = wp.vec4(ax, ay, az, 0.0)


@wp.kernel
def matmul(a: wp.array2d(dtype=f), b: wp.array2d(dtype=f), c: wp.array2d(dtype=f), n: int):
    i, j = wp.tid()
    total = float(0.0)
    for k in range(n):
        total += a[i, k] * b[k, j]
    c[i, j] = total


@wp.kernel
def matmul_rows(a: wp.array2d(dtype=f), b: wp.array2d(dtype=f), c: wp.array2d(dtype=f), n: int):
    i = wp.tid()
    for j in range(n):
        c[i, j] = 0.0
    for k in range(n):
        factor = a[i, k]
        for j in range(n):
            c[i, j] = c[i, j] + factor * b[k, j]


TILE = wp.constant(32)


@wp.kernel
def matmul_tiles(a: wp.array2d(dtype=f), b: wp.array2d(dtype=f), c: wp.array2d(dtype=f), n: int):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=f)
    for k in range(n / TILE):
        left = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, k * TILE))
        right = wp.tile_load(b, shape=(TILE, TILE), offset=(k * TILE, j * TILE))
        wp.tile_matmul(left, right, total)
    wp.tile_store(c, total, offset=(i * TILE, j * TILE))


@wp.kernel
def mandelbrot(image: wp.array2d(dtype=int), width: int, height: int, limit: int):
    row, column = wp.tid()
    cx = -2.0 + 3.0 * float(column) / float(width)
    cy = -1.0 + 2.0 * float(row) / float(height)
    x = float(0.0)
    y = float(0.0)
    steps = int(0)
    while steps < limit and x * x + y * y < 4.0:
        further = x * x - y * y + cx
        y = 2.0 * x * y + cy
        x = further
        steps += 1
    image[row, column] = steps


@wp.kernel
def stencil(grid: wp.array2d(dtype=f), out: wp.array2d(dtype=f)):
    y, x = wp.tid()
    if x > 0 and x < grid.shape[1] - 1 and y > 0 and y < grid.shape[0] - 1:
        out[y, x] = 0.25 * (grid[y, x - 1] + grid[y, x + 1] + grid[y - 1, x] + grid[y + 1, x])


@wp.kernel
def stencil_rows(grid: wp.array2d(dtype=f), out: wp.array2d(dtype=f)):
    y = wp.tid() + 1
    for x in range(1, grid.shape[1] - 1):
        out[y, x] = 0.25 * (grid[y, x - 1] + grid[y, x + 1] + grid[y - 1, x] + grid[y + 1, x])


@wp.kernel
def transpose(matrix: wp.array2d(dtype=f), out: wp.array2d(dtype=f)):
    y, x = wp.tid()
    out[x, y] = matrix[y, x]


@wp.kernel
def transpose_blocks(matrix: wp.array2d(dtype=f), out: wp.array2d(dtype=f)):
    i, j = wp.tid()
    for x in range(i * 32, i * 32 + 32):
        for y in range(j * 32, j * 32 + 32):
            out[x, y] = matrix[y, x]


@wp.kernel
def transpose_tiles(matrix: wp.array2d(dtype=f), out: wp.array2d(dtype=f)):
    i, j = wp.tid()
    tile = wp.tile_load(matrix, shape=(TILE, TILE), offset=(i * TILE, j * TILE))
    wp.tile_store(out, wp.tile_transpose(tile), offset=(j * TILE, i * TILE))


@wp.kernel
def block_sums(x: wp.array(dtype=f), sums: wp.array(dtype=f)):
    block = wp.tid()
    total = float(0.0)
    for i in range(block * N_BLOCK, block * N_BLOCK + N_BLOCK):
        total += x[i]
    sums[block] = total


@wp.kernel
def block_sums_tiles(x: wp.array(dtype=f), sums: wp.array(dtype=f)):
    block = wp.tid()
    tile = wp.tile_load(x, shape=N_BLOCK, offset=block * N_BLOCK)
    wp.tile_store(sums, wp.tile_sum(tile), offset=block)


@wp.kernel
def histogram(data: wp.array(dtype=wp.uint8), counts: wp.array(dtype=wp.uint32)):
    i = wp.tid()
    wp.atomic_add(counts, wp.int32(data[i]), wp.uint32(1))


@wp.kernel
def softmax(matrix: wp.array2d(dtype=f), out: wp.array2d(dtype=f), columns: int):
    row = wp.tid()
    most = float(-3.402823466e38)
    for i in range(columns):
        most = wp.max(most, matrix[row, i])
    total = float(0.0)
    for i in range(columns):
        e = wp.exp(matrix[row, i] - most)
        out[row, i] = e
        total += e
    scale = 1.0 / total
    for i in range(columns):
        out[row, i] = out[row, i] * scale


@wp.kernel
def csr(begin: wp.array(dtype=int), column: wp.array(dtype=int), value: wp.array(dtype=f), x: wp.array(dtype=f), y: wp.array(dtype=f)):
    row = wp.tid()
    total = float(0.0)
    for i in range(begin[row], begin[row + 1]):
        total += value[i] * x[column[i]]
    y[row] = total


@wp.kernel
def convolve(image: wp.array2d(dtype=f), out: wp.array2d(dtype=f), width: int, height: int):
    y, x = wp.tid()
    total = float(0.0)
    if x >= 3 and x < width - 3 and y >= 3 and y < height - 3:
        for j in range(7):
            for i in range(7):
                total += filter_values[j * 7 + i] * image[y + j - 3, x + i - 3]
    else:
        for j in range(7):
            for i in range(7):
                from_x = x + i - 3
                from_y = y + j - 3
                if from_x >= 0 and from_x < width and from_y >= 0 and from_y < height:
                    total += filter_values[j * 7 + i] * image[from_y, from_x]
    out[y, x] = total


@wp.kernel
def lennard_jones(x: wp.array(dtype=d), y: wp.array(dtype=d), z: wp.array(dtype=d), neighbour: wp.array2d(dtype=int), cutoff_squared: d,
                  fx: wp.array(dtype=d), fy: wp.array(dtype=d), fz: wp.array(dtype=d)):
    i = wp.tid()
    sx = d(0.0)
    sy = d(0.0)
    sz = d(0.0)
    for k in range(neighbour.shape[0]):
        j = neighbour[k, i]
        dx = x[i] - x[j]
        dy = y[i] - y[j]
        dz = z[i] - z[j]
        squared = dx * dx + dy * dy + dz * dz
        if squared < cutoff_squared:
            inverse = d(1.0) / squared
            six = inverse * inverse * inverse
            force = d(48.0) * inverse * six * (six - d(0.5))
            sx += force * dx
            sy += force * dy
            sz += force * dz
    fx[i] = sx
    fy[i] = sy
    fz[i] = sz


@wp.kernel
def scan(numbers: wp.array(dtype=int), out: wp.array(dtype=int)):
    block = wp.tid()
    total = int(0)
    for i in range(block * N_SCAN, block * N_SCAN + N_SCAN):
        total += numbers[i]
        out[i] = total
