# SPDX-License-Identifier: Apache-2.0
"""CUDA's vector types, made of numbers and of shorter vectors, and the members of an enumeration."""
from enum import IntEnum
from numba import cuda


class Axis(IntEnum):
    X = 0
    Y = 1
    Z = 2


@cuda.jit(device=True)
def cross(a, b):
    return cuda.float32x3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)


@cuda.jit
def normals(triangles, out):
    i = cuda.grid(1)
    if i >= out.shape[0]:
        return
    t = triangles[i]
    xy = cuda.float32x2(t[1, 0] - t[0, 0], t[1, 1] - t[0, 1])
    a = cuda.float32x3(xy, t[1, 2] - t[0, 2])
    b = cuda.float32x3(t[2, 0] - t[0, 0], t[2, 1] - t[0, 1], t[2, 2] - t[0, 2])
    n = cross(a, b)
    out[i, Axis.X.value] = n.x
    out[i, Axis.Y.value] = n.y
    out[i, Axis.Z.value] = n.z
