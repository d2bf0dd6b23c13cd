# SPDX-License-Identifier: Apache-2.0
"""stumpy's GPU functions, compared with its functions for processors: tests/clients/stumpy."""
from . import pytest_suite
from .numba import NUMBA

TITLE = "stumpy 1.14.1"
LANDMARK = None
PACKAGES = ("stumpy==1.14.1", *NUMBA, *pytest_suite.PACKAGES)


def cases(job):
    return pytest_suite.run_own_programs(job, PACKAGES)
