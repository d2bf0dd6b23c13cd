# SPDX-License-Identifier: Apache-2.0
"""Compiles generated kernels both with quern and with Numba, runs both on the CPU device, and compares; one line of JSON a kernel.

usage: random_run.py OPTIONS    a JSON object: python, environment, library, cache, seed, numbers, versions
"""
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from numba_diff import compare, kernels, quern_c

HERE = pathlib.Path(__file__).resolve().parent
LIBM_ULP = 4


def values(dtype, shape, seed):
    """Small numbers with zeros among them and, of each type, its extremes."""
    rng = np.random.default_rng([seed, len(shape), shape[0]])
    if dtype == "bool":
        return rng.random(shape) < 0.5
    floating = dtype.startswith("float")
    drawn = np.round(rng.normal(0, 20, shape), 2) if floating else rng.integers(0 if dtype[0] == "u" else -100, 100, shape)
    drawn = np.where(rng.random(shape) < 0.1, 0, drawn).astype(dtype)
    flat = drawn.reshape(-1)
    if floating:
        flat[3:10] = [np.inf, -np.inf, np.nan, -0.0, 1e-42, np.finfo(dtype).max, 0.5]
    else:
        flat[3:5] = [np.iinfo(dtype).min, np.iinfo(dtype).max]
    return drawn


class Run:
    def __init__(self, options):
        self.options = options
        self.cache = pathlib.Path(options["cache"])
        self.session = quern_c.Session(options["library"])

    def place(self, kernel):
        """Where Numba's PTX is kept: under a digest of all that it depends on."""
        text = json.dumps([kernels.HEADER, kernel.source, kernel.types, self.options["versions"]])
        return self.cache / (hashlib.sha256(text.encode()).hexdigest()[:24] + ".ptx")

    def compile(self, chunk):
        missing = [k for k in chunk if not self.place(k).exists() and not self.place(k).with_suffix(".refused").exists()]
        if not missing:
            return
        stem = self.cache / f"chunk_{os.getpid()}"
        source = stem.with_suffix(".py")
        source.write_text(kernels.HEADER + "".join(k.source for k in missing))
        jobs = [{"file": str(source), "kernel": k.name, "out": str(self.place(k)), "arguments": [[t, len(s)] for _, t, s in k.arguments()]} for k in missing]
        stem.with_suffix(".json").write_text(json.dumps(jobs))
        subprocess.run([self.options["python"], str(HERE / "compile.py"), str(stem.with_suffix(".json"))], env=self.options["environment"],
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for suffix in (".py", ".json"):
            stem.with_suffix(suffix).unlink()

    def arrays(self, kernel):
        names = kernel.arguments()
        hosts = [values(t, s, k) if k < 4 else np.zeros(s, t) for k, (_, t, s) in enumerate(names)]
        return [quern_c.Array(self.session, host) for host in hosts]

    def launch(self, language, source, name, arguments):
        options = ["--fmad=false"] if language == "python" else []
        function = self.session.kernel(language, source, name, options)
        self.session.launch(function, (2, 1, 1), (kernels.BLOCK, 1, 1), arguments)

    def judge(self, kernel):
        """("agrees" | "differs" | "not for Numba" | "neither", what is to say of it)"""
        source = kernels.HEADER + kernel.source
        refused = self.place(kernel).with_suffix(".refused")
        ours, theirs = self.arrays(kernel), self.arrays(kernel)
        try:
            self.launch("python", source, kernel.name, ours)
        except quern_c.Failure as failure:
            if failure.fault:
                self.session = quern_c.Session(self.options["library"])
            if refused.exists():
                return "neither", str(failure).splitlines()[0]
            return "differs", f"quern: {failure}"
        if refused.exists():
            return "not for Numba", refused.read_text()[:300]
        ptx = self.place(kernel).read_text()
        try:
            self.launch("ptx", ptx, compare.entry_of(ptx), compare.numba_arguments(theirs))
        except quern_c.Failure as failure:
            if failure.fault:
                self.session = quern_c.Session(self.options["library"])
            return "differs", f"Numba's PTX: {failure}"
        problems = []
        for name, mine, other in zip(("whole", "real"), ours[4:], theirs[4:]):
            a, b = mine.fetch(), other.fetch()
            libm = kernel.libm and name == "real"
            for row in range(kernels.SLOTS):
                if problem := compare.difference(f"{name}[{row}]", a[row], b[row], LIBM_ULP if libm and row >= kernels.SLOTS - 3 else 0):
                    problems.append(f"{problem} in {statement(kernel, name, row)}")
        return ("differs", "; ".join(problems[:6])) if problems else ("agrees", "")


def statement(kernel, name, row):
    found = re.search(rf"{name}\[{row}, i\] = (.*)", kernel.source)
    return found.group(1) if found else "?"


def main():
    options = json.loads(sys.argv[1])
    run = Run(options)
    numbers = options["numbers"]
    for begin in range(0, len(numbers), 40):
        chunk = [kernels.kernel(n, options["seed"]) for n in numbers[begin:begin + 40]]
        run.compile(chunk)
        for kernel in chunk:
            if not run.place(kernel).exists() and not run.place(kernel).with_suffix(".refused").exists():
                verdict = "differs", "Numba's compiler ended"
            else:
                verdict = run.judge(kernel)
            print(json.dumps({"number": kernel.number, "verdict": verdict[0], "text": verdict[1], "types": kernel.types}), flush=True)


main()
