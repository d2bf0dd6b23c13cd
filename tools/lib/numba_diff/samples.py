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


OF_THE_DEVICE = {"vprintf", "__assertfail", "malloc", "free"}


class PassedOver(Exception):
    """Numba's program cannot be run by itself."""


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
            if known := BEYOND_NUMBA.get((self.folder / self.source).resolve().relative_to(ROOT).as_posix()):
                raise PassedOver(known)
            raise RuntimeError("Numba: " + out.with_suffix(".refused").read_text()[-1500:])
        return out

    def compare(self, scratch):
        arguments = self.arguments()
        ptx = self.numba_ptx(arguments, scratch)
        if missing := sorted(set(re.findall(r"^\.extern \.func\s+(?:\([^)]*\)\s*)?(\w+)", ptx.read_text(), re.M)) - OF_THE_DEVICE):
            raise PassedOver(f"Numba links {missing[0]} and its like into the program, which its PTX lacks")
        flat, places = flattened(self.words, arguments)
        saved = lambda name, whose: str(scratch / f"{name}.{whose}.npy")
        self.quern(f"{self.source}::{self.kernel}", *self.words, *self.nvrtc, *(f"--save={name}={saved(name, 'q')}" for name in places))
        self.quern(f"{ptx}::{compare.entry_of(ptx.read_text())}", *flat, *(f"--save=#{place}={saved(name, 'n')}" for name, place in places.items()))
        for name in places:
            if problem := compare.difference(name, np.load(saved(name, "q")), np.load(saved(name, "n")), self.options.ulp, self.options.rtol):
                return problem
        return ""


# Features of Kernel Python that today's Numba rejects (docs/language.md, the differences): if Numba accepts one, it is compared.
BEYOND_NUMBA = {
    "kernels/python/callbacks.py": "a tuple of device functions, which Numba refuses",
    "kernels/python/recursion.py": "a device function that calls itself, where numba-cuda's code generator fails",
    "kernels/python/rows.py": "an array as the new value of a part of another, where numba-cuda's code generator fails",
}


def passed_over(file, root, case):
    """Why the case has no counterpart in Numba, or nothing."""
    if "roc" in file.parts:
        return "today's Numba has no ROC"
    if "error" in case:
        return "it expects an error"
    if "bench" in case:
        return "a benchmark, which differs from other cases in size only"
    if any(word.startswith("value(") for word in case.get("args", [])):
        return "a complex number or a record as an argument, which Numba hands over in parts"
    if "bind" in case or "bind" in root:
        return "constants from the host, which Numba does not have"
    return ""


def samples(options, environment):
    """Each case of a Kernel Python file with the reason why it is passed over, if it is."""
    files = [pathlib.Path(c).resolve() for c in options.cases] or sorted((ROOT / "kernels").rglob("*.case.toml"))
    for file in files:
        root = tomllib.loads(file.read_text())
        for case in root["case"]:
            if ".py::" in case.get("kernel", root.get("kernel", "")):
                sample = Sample(options, environment, file, root, case)
                if options.k in sample.name:
                    yield sample, passed_over(file, root, case)


def run(options, environment):
    counts, reasons = {"agrees": 0, "differs": 0}, {}
    with tempfile.TemporaryDirectory() as scratch:
        for sample, reason in samples(options, environment):
            problem = ""
            try:
                if not reason:
                    problem = sample.compare(pathlib.Path(scratch))
            except PassedOver as found:
                reason = str(found)
            except RuntimeError as error:
                problem = str(error)
            if reason:
                reasons.setdefault(reason, []).append(sample.name)
                continue
            counts["differs" if problem else "agrees"] += 1
            print(f"{'DIFFERS' if problem else 'ok     '} {sample.name}" + (f"\n        {problem}" if problem else ""), flush=True)
    for reason, names in reasons.items():
        print(f"passed over, {reason}:")
        for name in names:
            print(f"        {name}")
    print(f"{counts['agrees']} agree, {counts['differs']} differ, {sum(map(len, reasons.values()))} are passed over")
    return 1 if counts["differs"] else 0
