# SPDX-License-Identifier: Apache-2.0
"""Records: particles in a box, each a record with fields that are arrays; a name for a record refers to it."""
import numpy as np
from numba import cuda

particle = np.dtype([("position", np.float32, (3,)), ("velocity", np.float32, (3,)), ("mass", np.float64), ("bounces", np.int32)], align=True)


@cuda.jit
def step(particles, dt, energy):
    i = cuda.grid(1)
    if i >= particles.size:
        return
    p = particles[i]
    total = 0.0
    for k in range(3):
        p.position[k] += p.velocity[k] * dt
        if p.position[k] < 0 or p.position[k] > 1:
            p["velocity"][k] = -p.velocity[k]
            p.bounces += 1
        total += p.velocity[k] * p.velocity[k]
    energy[i] = 0.5 * p.mass * total
