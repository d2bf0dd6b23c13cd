import math, cmath
import numpy as np
from enum import IntEnum
from numba import cuda, float32, int32
from numba.cuda.random import *
T = np.array([1, 2, 3], dtype=np.float32)
class Mode(IntEnum):
    ADD = 1

@cuda.jit(device=True)
def bump(a, i):
    a[i] += 1
    return a[i]

@cuda.jit(debug=True)
def k(a, n):
    scale = a[0]
    def f(x, y=2):
        return x * scale + y
    g = lambda t: f(t, 1) + n
    i = cuda.grid(1)
    v = cuda.float32x4(1, a[0], cuda.float2(1, 2))
    if i < a.size and a[0] < bump(a, i) < g(1) < 9:
        a[bump(a, 1)] += f(v.x) // n
    z = cmath.sqrt(complex(a[0], 1))
    for j, x in enumerate(a):
        a[j] = x % Mode.ADD + np.where(n > 1, z.real, math.log(n, 2))
    assert n > 0, "positive"
    cuda.cg.this_grid().sync()

@cuda.jit
def r(ps, o):
    p = ps[cuda.grid(1)]
    p.x = p.y[1]
    q = ps[0] if p.x > 1 else ps[1]
    o[0] = q['x'] + ps.x[1]
