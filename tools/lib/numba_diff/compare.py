# SPDX-License-Identifier: Apache-2.0
"""What is common to comparing quern's results with Numba's: the parameters of Numba's kernels, and what counts as a difference."""
import re

import numpy as np


def numba_arguments(arrays):
    """Numba's parameters for arrays: meminfo, parent, nitems, itemsize, data, shape and strides."""
    flat = []
    for array in arrays:
        host = array.host
        flat += [np.int64(0), np.int64(0), np.int64(host.size), np.int64(host.itemsize), np.int64(array.address())]
        flat += [np.int64(n) for n in host.shape + host.strides]
    return flat


def entry_of(ptx):
    return re.search(r"\.visible \.entry (\S+)\(", ptx).group(1)


def difference(name, a, b, ulp, rtol=0):
    """Nothing where `a` (quern's) and `b` (Numba's) agree: to the bit, floats within `ulp` units in the last place or `rtol`."""
    if a.dtype.kind not in "fc":
        wrong = a != b
    else:
        with np.errstate(all="ignore"):
            larger = np.maximum(np.abs(a), np.abs(b))
            bound = np.maximum(ulp * np.spacing(np.where(np.isfinite(larger), larger, 1)), rtol * larger)
            if ulp > 0 and a.dtype == np.float64:  # float32 results that were stored as float64
                single = larger.astype(np.float32)
                narrow = (a == a.astype(np.float32)) & (b == b.astype(np.float32)) & np.isfinite(single)
                bound = np.where(narrow, np.maximum(bound, ulp * np.spacing(np.where(narrow, single, np.float32(1)))), bound)
            wrong = ~((np.abs(a - b) <= bound) | (a == b) | (np.isnan(a) & np.isnan(b)))
            if ulp == 0 and a.dtype.kind == "f":
                wrong |= (np.signbit(a) != np.signbit(b)) & ~np.isnan(a)
    if not wrong.any():
        return ""
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{name}{list(at)}: quern {a[at]!r}, Numba {b[at]!r} ({int(wrong.sum())} of {a.size} differ)"
