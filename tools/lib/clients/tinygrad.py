# SPDX-License-Identifier: Apache-2.0
"""tinygrad's own tests, with its two renderers for CUDA: CUDA C++ through NVRTC, and PTX."""
import re

from . import pytest_suite

TITLE = "tinygrad"
LANDMARK = "test/test_tiny.py"
PACKAGES = (*pytest_suite.PACKAGES, "numpy", "torch==2.9.1", "hypothesis", "z3-solver<4.15.4")
FILES = ("test_tiny", "backend/test_ops", "backend/test_uops", "backend/test_graph", "backend/test_jit", "backend/test_dtype_alu")
RENDERERS = ("CUDA", "CUDA:PTX")
# These end the context, and with it what runs after them in the same process.
ALONE = {"backend/test_uops.py": ("TestBitcastBufferView::test_load", "TestBitcastBufferView::test_store")}
# Without matrix instructions (mma.sync), which the CPU device does not have.
VARIABLES = {"TC": "0", "CACHELEVEL": "0", "OMP_NUM_THREADS": "1"}


def cases(job):
    python = job.python(PACKAGES)
    files = [f"{renderer}/{file}.py" for renderer in RENDERERS for file in job.selected(FILES)]
    alone = [f"{file}::{test}" for file in files for test in ALONE.get(file.partition("/")[2], ())]

    def arguments(file):
        path = f"test/{file.partition('/')[2]}"
        return [path, *(f"--deselect={path}::{test}" for test in ALONE.get(file.partition("/")[2], ()))]

    def variables(file):
        return VARIABLES | {"DEV": file.partition("/")[0], "PYTHONPATH": job.source}

    for case in pytest_suite.run_files(job, [python], files + alone, arguments, variables, job.source):
        if case.outcome == "failed" and not on_own_back_end(job, python, case):
            case.outcome, case.reason = "skipped", "fails on tinygrad's own Python back end as well"
        yield case


def on_own_back_end(job, python, case):
    """True if the failed test passes with the back end that tinygrad has written in Python."""
    file, *rest = case.name.split("::")
    test = "::".join([f"test/{file.partition('/')[2]}", *rest])
    log = job.folder / "results" / (re.sub(r"\W", "_", case.name) + ".python.log")
    ended = job.run([python, "-m", "pytest", "-q", "-p", "no:cacheprovider", test], log, job.source,
                    VARIABLES | {"DEV": "PYTHON", "PYTHONPATH": job.source}, on_device=False)
    return ended.status == 0
