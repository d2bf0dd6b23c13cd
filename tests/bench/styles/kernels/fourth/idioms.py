# SPDX-License-Identifier: Apache-2.0
"""A bilateral filter, JPEG's transform, the density of a fluid of particles, the nearest station on the globe: for Numba."""
import math

from numba import cuda, float32

RADIUS = 2
SIDE = 16
EARTH_RADIUS = 6371.0


@cuda.jit
def bilateral(image, space, scale, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if x >= width or y >= height:
        return
    centre = image[y, x]
    total = float32(0)
    weights = float32(0)
    for dy in range(-RADIUS, RADIUS + 1):
        for dx in range(-RADIUS, RADIUS + 1):
            yy = min(max(y + dy, 0), height - 1)
            xx = min(max(x + dx, 0), width - 1)
            value = image[yy, xx]
            difference = value - centre
            weight = space[dy + RADIUS, dx + RADIUS] * math.exp(-difference * difference * scale)
            total += weight * value
            weights += weight
    out[y, x] = total / weights


@cuda.jit
def dct(image, basis, quant, out):
    tile = cuda.shared.array((8, 8), float32)
    columns = cuda.shared.array((8, 8), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    x, y = cuda.grid(2)
    tile[ty, tx] = float32(image[y, x]) - float32(128)
    cuda.syncthreads()
    s = float32(0)
    for k in range(8):
        s += basis[ty, k] * tile[k, tx]
    columns[ty, tx] = s
    cuda.syncthreads()
    s = float32(0)
    for k in range(8):
        s += columns[ty, k] * basis[tx, k]
    out[y, x] = round(s / quant[ty, tx])


@cuda.jit
def density(pos, cell_start, h, mass, rho):
    i = cuda.grid(1)
    if i >= pos.shape[0]:
        return
    xi = pos[i, 0]
    yi = pos[i, 1]
    zi = pos[i, 2]
    cx = int(xi / h)
    cy = int(yi / h)
    cz = int(zi / h)
    h2 = h * h
    total = float32(0)
    for z in range(max(cz - 1, 0), min(cz + 2, SIDE)):
        for y in range(max(cy - 1, 0), min(cy + 2, SIDE)):
            for x in range(max(cx - 1, 0), min(cx + 2, SIDE)):
                cell = (z * SIDE + y) * SIDE + x
                for j in range(cell_start[cell], cell_start[cell + 1]):
                    dx = xi - pos[j, 0]
                    dy = yi - pos[j, 1]
                    dz = zi - pos[j, 2]
                    r2 = dx * dx + dy * dy + dz * dz
                    if r2 < h2:
                        d = h2 - r2
                        total += d * d * d
    rho[i] = mass * 315.0 / (64.0 * math.pi * h ** 9) * total


@cuda.jit(device=True)
def haversine(lat1, lon1, lat2, lon2):
    dlat = lat2 - lat1
    dlon = lon2 - lon1
    a = math.sin(dlat / 2) ** 2 + math.cos(lat1) * math.cos(lat2) * math.sin(dlon / 2) ** 2
    return 2 * EARTH_RADIUS * math.asin(math.sqrt(a))


@cuda.jit
def nearest(lat, lon, station_lat, station_lon, station, distance):
    i = cuda.grid(1)
    if i < lat.size:
        lat1 = math.radians(lat[i])
        lon1 = math.radians(lon[i])
        best = -1
        least = math.inf
        for s in range(station_lat.size):
            d = haversine(lat1, lon1, math.radians(station_lat[s]), math.radians(station_lon[s]))
            if d < least:
                least = d
                best = s
        station[i] = best
        distance[i] = least
