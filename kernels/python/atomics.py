# SPDX-License-Identifier: Apache-2.0
"""Every atomic operation, on integers and floats, on one and on two dimensions."""
from numba import cuda


@cuda.jit
def integers(values, out):
    i = cuda.grid(1)
    if i < values.size:
        v = values[i]
        cuda.atomic.add(out, 0, v)
        cuda.atomic.sub(out, 1, v)
        cuda.atomic.max(out, 2, v)
        cuda.atomic.min(out, 3, v)
        cuda.atomic.and_(out, 4, v)
        cuda.atomic.or_(out, 5, v)
        cuda.atomic.xor(out, 6, v)
        cuda.atomic.cas(out, 7, 0, 1)
        cuda.atomic.compare_and_swap(out[8:], 0, 5)


@cuda.jit
def counters(turns, out):
    cuda.atomic.inc(out, 0, turns)
    cuda.atomic.dec(out, 1, turns)
    if cuda.grid(1) == 0:
        out[2] = cuda.atomic.exch(out, 3, 42)


@cuda.jit
def floats(values, out):
    i = cuda.grid(1)
    if i < values.size:
        row = i % 2
        cuda.atomic.add(out, (row, 0), values[i])
        cuda.atomic.nanmax(out, (row, 1), values[i])
        cuda.atomic.nanmin(out, (row, 2), values[i])


@cuda.jit
def with_nan(there, values, before):
    i = cuda.grid(1)
    if i < there.shape[0]:
        before[i, 0] = cuda.atomic.max(there, (i, 0), values[i])
        before[i, 1] = cuda.atomic.min(there, (i, 1), values[i])
