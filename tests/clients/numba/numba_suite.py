# SPDX-License-Identifier: Apache-2.0
"""What numba-cuda's tests expect of their pytest configuration, which its wheel does not hold."""
import pytest


def pytest_addoption(parser):
    parser.addoption("--dump-failed-filechecks", action="store_true", help="write the input of failed file checks")


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    request.cls._dump_failed_filechecks = request.config.getoption("dump_failed_filechecks")
