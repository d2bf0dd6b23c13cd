# SPDX-License-Identifier: Apache-2.0
"""stumpy's GPU functions, compared with its functions for processors: tests/clients/stumpy."""
from . import pytest_suite

TITLE = "stumpy 1.14.1"
LANDMARK = None
PACKAGES = ("stumpy==1.14.1", "numba-cuda[cu13]==0.30.4", "numba==0.68.1", "cuda-bindings==13.3.1", "cuda-core==1.2.2", *pytest_suite.PACKAGES)


def cases(job):
    selection = ["-k", " or ".join(job.only)] if job.only else []
    yield from pytest_suite.run_files(job, [job.python(PACKAGES)], ["test_gpu_functions.py"], lambda file: ["-W", "ignore", *selection, file],
                                      lambda file: {}, job.tests)
