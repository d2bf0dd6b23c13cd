# SPDX-License-Identifier: Apache-2.0
"""Programs that use cuda-bindings, the driver API and NVRTC in Python: tests/clients/cuda_bindings."""
from . import pytest_suite

TITLE = "cuda-bindings 13.3.1"
LANDMARK = None
PACKAGES = ("cuda-bindings==13.3.1", "cuda-toolkit[nvrtc]==13.0.2", "numpy==2.4.6",
            *pytest_suite.PACKAGES)


def cases(job):
    files = sorted(path.name for path in job.tests.glob("test_*.py"))
    selection = ["-k", " or ".join(job.only)] if job.only else []
    yield from pytest_suite.run_files(job, [job.python(PACKAGES)], files, lambda file: ["-W", "ignore", *selection, file], lambda file: {}, job.tests)
