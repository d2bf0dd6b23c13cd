# SPDX-License-Identifier: Apache-2.0
"""C programs of our own, written against cuda.h alone: tests/clients/c_programs."""
from .case import Case

TITLE = "C programs"
LANDMARK = None


def cases(job):
    include, results = job.toolkit_include(), job.work("results")

    def run(name):
        program, log = results / name, results / f"{name}.log"
        compile_it = ["cc", "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-isystem", include, job.tests / f"{name}.c", "-o", program,
                      "-Wl,--as-needed", f"-L{job.libcuda}", "-lcuda", "-lpthread", "-ldl"]
        ended = job.run(compile_it, log, on_device=False)
        if ended.status:
            return Case(name, "failed", f"the compiler ended with {ended.status}")
        ended = job.run([program], log, seconds=120)
        lines = ended.output.strip().splitlines()
        return Case(name, "failed", f"ended with {ended.status}: {' '.join(lines[-1:])}") if ended.status else Case(name, "passed")

    for _, case in job.side_by_side(run, job.selected(sorted(path.stem for path in job.tests.glob("*.c")))):
        yield case
