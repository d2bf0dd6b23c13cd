# SPDX-License-Identifier: Apache-2.0
"""The samples: each case of a Kernel Python file, run as quern compiles it and as Numba does."""
import ast
import json
import pathlib
import re
import subprocess
import tempfile
import tomllib

import numpy as np

from . import compare

ROOT = pathlib.Path(__file__).resolve().parents[3]
COMPILE = pathlib.Path(__file__).resolve().parent / "compile.py"


def checked(command, **options):
    result = subprocess.run(command, capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise RuntimeError((result.stderr or result.stdout).strip()[-2000:])
    return result.stdout


def flattened(words, arguments):
    """quern's words for Numba's parameters (compare.numba_arguments has them as numbers), and where each array's data stand."""
    flat, places = [], {}
    for word, argument in zip(words, arguments):
        if argument["ndim"] is None:
            flat.append(word)
            continue
        shape, item = argument["shape"], argument["itemsize"]
        strides = [item * int(np.prod(shape[k + 1:], dtype=np.int64)) for k in range(len(shape))]
        places[argument["name"]] = len(flat) + 4
        flat += ["0", "0", str(int(np.prod(shape, dtype=np.int64))), str(item), word, *map(str, shape), *map(str, strides)]
    return flat, places


class Sample:
    def __init__(self, options, environment, file, root, case):
        self.options, self.environment, self.folder = options, environment, file.parent
        self.source, self.kernel = case.get("kernel", root.get("kernel")).split("::")
        self.words = case.get("args", [])
        self.launch = [f"--{word}={case[word]}" for word in ("grid", "block", "shared") if word in case]
        self.nvrtc = [f"--option={o}" for o in case.get("options", root.get("options", []))] + ["--option=--fmad=false"]
        self.nvrtc += [word for name, text in case.get("bind", {}).items() for word in ("--bind", f"{name}={text}")]
        self.name = f"{file.parent.name}/{file.name}: {case['name']}"

    def quern(self, *words):
        program = self.options.build / "quern"
        return checked([str(program), "run", *words, *self.launch, "--device=cpu"], cwd=self.folder, env=dict(self.environment, QUERN_CPU_MEMORY="2G"))

    def arguments(self):
        """Name, dtype and shape of every argument, as quern reports them after a run."""
        document = json.loads(self.quern(f"{self.source}::{self.kernel}", *self.words, *self.nvrtc, "--json"))
        arrays = {a["name"]: a for a in document["arguments"]}
        function = next(n for n in ast.walk(ast.parse((self.folder / self.source).read_text())) if isinstance(n, ast.FunctionDef) and n.name == self.kernel)
        arguments = []
        for parameter, word in zip((p.arg for p in function.args.args), self.words):
            if parameter in arrays:
                shape = arrays[parameter]["shape"]
                dtype = np.load(self.folder / word).dtype if word.endswith(".npy") else np.dtype(arrays[parameter]["dtype"])
                described = np.lib.format.dtype_to_descr(dtype)
                arguments.append({"name": parameter, "dtype": described, "ndim": len(shape), "shape": shape, "itemsize": dtype.itemsize})
            else:
                typed = re.match(r"(\w+)\(", word)
                dtype = typed.group(1) if typed else "float64" if "." in word else "int64"
                arguments.append({"name": parameter, "dtype": dtype, "ndim": None})
        return arguments

    def numba_ptx(self, arguments, scratch):
        out = scratch / "numba.ptx"
        out.unlink(missing_ok=True)
        jobs = [{"file": str(self.folder / self.source), "kernel": self.kernel, "out": str(out), "arguments": [[a["dtype"], a["ndim"]] for a in arguments]}]
        (scratch / "jobs.json").write_text(json.dumps(jobs))
        checked([self.options.python, str(COMPILE), str(scratch / "jobs.json")], env=self.environment)
        if not out.exists():
            raise RuntimeError("Numba: " + out.with_suffix(".refused").read_text()[-1500:])
        return out

    def compare(self, scratch):
        if any(word.startswith("value(") for word in self.words):
            return "passed over: a struct argument"
        if "--bind" in self.nvrtc:
            return "passed over: constants from the host"
        arguments = self.arguments()
        ptx = self.numba_ptx(arguments, scratch)
        flat, places = flattened(self.words, arguments)
        saved = lambda name, whose: str(scratch / f"{name}.{whose}.npy")
        self.quern(f"{self.source}::{self.kernel}", *self.words, *self.nvrtc, *(f"--save={name}={saved(name, 'q')}" for name in places))
        self.quern(f"{ptx}::{compare.entry_of(ptx.read_text())}", *flat, *(f"--save=#{place}={saved(name, 'n')}" for name, place in places.items()))
        for name in places:
            if problem := compare.difference(name, np.load(saved(name, "q")), np.load(saved(name, "n")), self.options.ulp, self.options.rtol):
                return problem
        return ""


def samples(options, environment):
    files = [pathlib.Path(c).resolve() for c in options.cases] or sorted((ROOT / "kernels").rglob("*.case.toml"))
    for file in files:
        root = tomllib.loads(file.read_text())
        for case in root["case"]:
            kernel = case.get("kernel", root.get("kernel", ""))
            # Benchmarks differ from other cases in size only.
            if ".py::" not in kernel or "error" in case or "bench" in case or "roc" in file.parts:
                continue
            sample = Sample(options, environment, file, root, case)
            if options.k in sample.name:
                yield sample


def run(options, environment):
    bad = count = 0
    with tempfile.TemporaryDirectory() as scratch:
        for sample in samples(options, environment):
            count += 1
            try:
                problem = sample.compare(pathlib.Path(scratch))
            except RuntimeError as error:
                problem = str(error)
            passed = not problem or problem.startswith("passed over")
            bad += not passed
            print(f"{'ok     ' if passed else 'DIFFERS'} {sample.name}" + (f"\n        {problem}" if problem else ""), flush=True)
    print(f"{count - bad} agree, {bad} differ")
    return 1 if bad else 0
