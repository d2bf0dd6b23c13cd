# SPDX-License-Identifier: Apache-2.0
"""One of the measured, in a process of its own: does what run.py says, one JSON document a line, and answers with one.

  worker.py MODULE THREADS       MODULE: with_quern, with_pocl, with_warp, with_numba
"""
import importlib
import json
import os
import sys
import time

import numpy as np

from works import BY_NAME, difference


def milliseconds(run):
    begin = time.perf_counter_ns()
    run()
    return (time.perf_counter_ns() - begin) / 1e6


def best(run, budget_ms, least=1):
    """The shortest of at least so many calls; more are made until the budget is spent."""
    shortest, spent, count = float("inf"), 0.0, 0
    while count < least or spent < budget_ms:
        took = milliseconds(run)
        shortest, spent, count = min(shortest, took), spent + took, count + 1
    return shortest


def aligned(values):
    """A copy that begins at a cache line; NumPy asks for large pages for arrays of this size."""
    room = np.empty(values.nbytes + 64, np.uint8)
    first = -room.ctypes.data % 64
    copy = room[first:first + values.nbytes].view(values.dtype).reshape(values.shape)
    copy[...] = values
    return copy


def load(folder):
    arguments = json.load(open(os.path.join(folder, "numbers.json")))
    result = {}
    for name, (kind, value) in arguments.items():
        result[name] = aligned(np.load(os.path.join(folder, name + ".npy"))) if kind == "array" else value if kind == "int" else np.dtype(kind).type(value)
    return result


class Worker:
    def __init__(self, module, threads):
        self.peer = importlib.import_module(module).Peer(threads)
        self.run = None

    def hello(self):
        return {"version": self.peer.version}

    def prepare(self, work, folder, probe_ms):
        """Runs every way once, compares its results, and keeps the fastest."""
        description, arguments = BY_NAME[work], load(folder)
        before = {name: value.copy() if name in description.results else value for name, value in arguments.items()}
        times, first = {}, {}
        ways = self.peer.prepare(work, arguments)
        for label, run in ways.items():
            for name in description.results:
                self.peer.write(name, before[name])
            first[label] = milliseconds(run)
            words = difference(description, before, {name: self.peer.read(name) for name in description.results})
            if words:
                return {"wrong": f"{label}: {words}"}
            times[label] = milliseconds(run)
            if times[label] < 2 * min(times.values()):
                times[label] = min(times[label], best(run, probe_ms))
        if not times:
            return {"cannot": True}
        way = min(times, key=times.get)
        self.run = ways[way]
        return {"way": way, "ways": times, "first": first[way]}

    def time(self, budget_ms):
        return {"ms": best(self.run, budget_ms)}

    def drop(self):
        self.run = None
        self.peer.drop()
        return {}


def main(module, threads):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # libraries that print
    worker = Worker(module, int(threads))
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = getattr(worker, request.pop("do"))(**request)
        except Exception as error:  # the answer says what went wrong, and run.py goes on
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
