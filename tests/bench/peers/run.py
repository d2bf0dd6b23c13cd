# SPDX-License-Identifier: Apache-2.0
"""Does the works with quern and its peers, which take turns, and writes what it measured as JSON. tools/bench --peers starts it.

Each of them is a process of its own that lives through the run, so that threads and settings of one do not touch the others.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import numpy as np

from works import WORKS

HERE = pathlib.Path(__file__).resolve().parent
TURNS = 6
# name, module, variables of its environment: (threads, folder of compiled code, quern's library)
MEASURED = [
    ("quern", "with_quern", lambda threads, cache, library: {"QUERN_CPU_WORKERS": threads, "QUERN_CPU_MEMORY": "1G", "QUERN_CACHE": 0,
                                                             "QUERN_BENCH_LIBRARY": library}),
    ("PoCL", "with_pocl", lambda threads, cache, library: {"POCL_MAX_PTHREAD_COUNT": threads, "POCL_CACHE_DIR": cache / "pocl",
                                                           "OCL_ICD_VENDORS": "/etc/OpenCL/vendors"}),
    ("Warp", "with_warp", lambda threads, cache, library: {"QUERN_BENCH_WARP_CACHE": cache / "warp"}),
    ("Numba", "with_numba", lambda threads, cache, library: {"NUMBA_NUM_THREADS": threads, "NUMBA_CACHE_DIR": cache / "numba"}),
]


class Measured:
    """A process that does the works. `absent`: why there is none."""

    def __init__(self, module, variables, threads, realtime):
        processors = sorted(os.sched_getaffinity(0))[:threads]
        command = (["chrt", "-f", "10"] if realtime else []) + ["taskset", "-c", ",".join(map(str, processors)), sys.executable,
                                                               str(HERE / "worker.py"), module, str(threads)]
        environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", **{name: str(value) for name, value in variables.items()})
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True)
        answer = self.ask(do="hello")
        self.version, self.absent = answer.get("version"), answer.get("error")

    def ask(self, **request):
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
            if line := self.process.stdout.readline():
                return json.loads(line)
        except BrokenPipeError:
            pass
        self.errors.seek(0)
        lines = self.errors.read().strip().splitlines()
        return {"error": lines[-1] if lines else f"its process ended with {self.process.wait()}"}

    def close(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def save(arguments, folder):
    numbers = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            np.save(folder / (name + ".npy"), value)
            numbers[name] = ("array", None)
        else:
            numbers[name] = ("int", value) if isinstance(value, int) else (value.dtype.name, float(value))
    (folder / "numbers.json").write_text(json.dumps(numbers))


def measure(work, running, options):
    """What each of the running measured for one work, on one number of threads."""
    cells = {}
    for name, process in running.items():
        cells[name] = process.ask(do="prepare", work=work.name, folder=str(options.data), probe_ms=options.probe_ms)
        if "wrong" in cells[name]:
            sys.exit(f"{name} gives a wrong result for {work.name}: {cells[name]['wrong']}")
        if "error" in cells[name]:
            print(f"{name} could not do {work.name}: {cells[name]['error']}", file=sys.stderr)
    able = [name for name in running if "way" in cells[name]]
    for name in able:
        cells[name]["ms"] = float("inf")
    for _ in range(TURNS):
        for name in able:
            answer = running[name].ask(do="time", budget_ms=options.budget_ms / TURNS)
            if "error" in answer:
                sys.exit(f"{name} failed at {work.name}: {answer['error']}")
            cells[name]["ms"] = min(cells[name]["ms"], answer["ms"])
            time.sleep(0.01)  # threads that wait in a loop for more work give up
    for process in running.values():
        process.ask(do="drop")
    return cells


def start(options):
    """Processes by number of threads and name, and why some are absent."""
    absent, running = {}, {}
    for threads in options.threads:
        running[threads] = {}
        for name, module, variables in MEASURED:
            process = Measured(module, variables(threads, options.cache, options.library), threads, options.realtime)
            if process.absent:
                absent[name] = process.absent
                process.close()
            else:
                running[threads][name] = process
    if "quern" in absent:
        sys.exit(f"quern: {absent['quern']}")
    return running, absent


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--library", type=pathlib.Path, required=True, help="libquern.so")
    parser.add_argument("--cache", type=pathlib.Path, required=True, help="a folder for the peers' compiled code")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--filter", default="")
    parser.add_argument("--threads", type=int, nargs="+", default=sorted({1, len(os.sched_getaffinity(0))}))
    parser.add_argument("--budget-ms", type=float, default=600, help="of measurement for each work, peer and number of threads")
    parser.add_argument("--probe-ms", type=float, default=60, help="of choosing the fastest way, each")
    parser.add_argument("--realtime", action="store_true")
    options = parser.parse_args()
    running, absent = start(options)
    rows = []
    for work in WORKS:
        if not re.search(options.filter, work.name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            options.data = pathlib.Path(folder)
            save(work.make(np.random.default_rng(1)), options.data)
            rows.append({"name": work.name, "what": work.what,
                         "threads": {str(threads): measure(work, running[threads], options) for threads in options.threads}})
        print(f"{len(rows)} {work.name}", file=sys.stderr, flush=True)
    versions = {name: process.version for name, process in running[options.threads[-1]].items()}
    for processes in running.values():
        for process in processes.values():
            process.close()
    options.out.write_text(json.dumps({"versions": versions, "absent": absent, "threads": options.threads, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
