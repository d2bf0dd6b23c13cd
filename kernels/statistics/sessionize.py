# SPDX-License-Identifier: Apache-2.0
"""Numbers the sessions of users: a new one begins with another user, or after a pause. Runs in one block."""
from numba import cuda, int64

THREADS = 256


@cuda.jit
def sessionize(user, time, pause, session):
    marks = cuda.shared.array(THREADS, int64)
    i = cuda.threadIdx.x
    n = len(user)
    begins = 0
    if i < n and (i == 0 or user[i] != user[i - 1] or time[i] - time[i - 1] > pause):
        begins = 1
    marks[i] = begins
    cuda.syncthreads()
    step = 1
    while step < THREADS:
        before = marks[i - step] if i >= step else 0
        cuda.syncthreads()
        marks[i] += before
        cuda.syncthreads()
        step *= 2
    if i < n:
        session[i] = marks[i] - 1
