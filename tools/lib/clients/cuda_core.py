# SPDX-License-Identifier: Apache-2.0
"""Programs that use cuda.core, of 34 kinds: tests/clients/cuda_core."""
from . import pytest_suite

TITLE = "cuda-core 1.2.2"
LANDMARK = None
PACKAGES = ("cuda-core==1.2.2", "cuda-bindings==13.3.1", "cuda-toolkit[nvrtc,cudart,crt,cccl]==13.0.2", "numpy==2.4.6",
            *pytest_suite.PACKAGES)


def cases(job):
    return pytest_suite.run_own_programs(job, PACKAGES)
