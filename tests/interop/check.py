# SPDX-License-Identifier: Apache-2.0
"""Exchanges arrays between quern and packages from PyPI, in both directions. Run by tools/check_interop."""
import faulthandler
import os

# Releasing device memory waits for all work, and here some work waits until the check releases it.
os.environ["QUERN_MAX_PENDING_DEALLOCS_COUNT"] = os.environ["NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT"] = "100000"
faulthandler.dump_traceback_later(300, exit=True)

import device_arrays
import host_arrays
import npy_files
import quern_interop

session = quern_interop.Session("cpu")
for part in (host_arrays, npy_files, device_arrays):
    print(part.check(session), flush=True)
