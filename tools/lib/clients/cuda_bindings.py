# SPDX-License-Identifier: Apache-2.0
"""Programs that use cuda-bindings, the driver API and NVRTC in Python: tests/clients/cuda_bindings."""
from . import pytest_suite

TITLE = "cuda-bindings 13.3.1"
LANDMARK = None
PACKAGES = ("cuda-bindings==13.3.1", "cuda-toolkit[nvrtc]==13.0.2", "numpy==2.4.6",
            *pytest_suite.PACKAGES)


def cases(job):
    return pytest_suite.run_own_programs(job, PACKAGES)
