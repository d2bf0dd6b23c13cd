# SPDX-License-Identifier: Apache-2.0
"""`pytest --quern`: the test run finds the CPU device as the CUDA driver. The loader reads its variables when a process starts, so
pytest is started again by `quern exec`, once."""
import os
import sys

import pytest

import quern


def pytest_addoption(parser):
    parser.getgroup("quern").addoption("--quern", action="store_true", help="run CUDA programs on quern's CPU device instead of a GPU")


# Before pytest's own wrapper redirects stdout and stderr.
@pytest.hookimpl(tryfirst=True, hookwrapper=True)
def pytest_load_initial_conftests(early_config):
    if early_config.known_args_namespace.quern and os.environ.get("QUERN_EXEC") != "1":
        sys.stdout.flush()
        sys.stderr.flush()
        os.execv(quern.program(), ["quern", "exec", "--", sys.executable, *sys.orig_argv[1:]])
    yield


def pytest_report_header(config):
    return "quern: CUDA programs run on the CPU device" if config.getoption("quern") else None
