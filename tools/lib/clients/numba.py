# SPDX-License-Identifier: Apache-2.0
"""numba-cuda's own suite, which its wheel holds."""
import os
import shutil

from . import pytest_suite

TITLE = "numba-cuda 0.30.4"
LANDMARK = None
# cuda-bindings 13.4 and 13.5 break the suite's tests of IPC, on every driver.
NUMBA = ("numba-cuda[cu13]==0.30.4", "numba==0.68.1", "cuda-bindings==13.3.1", "cuda-core==1.2.2")
PACKAGES = (*NUMBA, *pytest_suite.PACKAGES, "nvidia-curand", "filecheck", "pytest-benchmark", "py-cpuinfo", "cffi", "ml_dtypes", "psutil")

# Some tests want two devices.
VARIABLES = {"QUERN_CPU_DEVICES": "2"}


def without_privileges():
    """The beginning of a command for root, which then may not write everywhere: the suite tests folders without write permission."""
    if os.geteuid() != 0 or not shutil.which("setpriv"):
        return []
    return ["setpriv", "--inh-caps=-dac_override,-dac_read_search", "--bounding-set=-dac_override,-dac_read_search"]


def cases(job):
    python = job.python(PACKAGES)
    tests = next(python.parent.parent.glob("lib/python3*/site-packages/numba_cuda/numba/cuda/tests"))
    files = job.selected(sorted(path.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")))

    def arguments(file):
        module = file.removesuffix(".py").replace("/", ".")
        return ["-c", job.tests / "pytest.ini", "-p", "numba_suite", "--pyargs", f"numba.cuda.tests.{module}"]

    yield from pytest_suite.run_files(job, [*without_privileges(), python], files, arguments,
                                      lambda file: VARIABLES | {"PYTHONPATH": job.tests})
