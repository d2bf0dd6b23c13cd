# SPDX-License-Identifier: Apache-2.0
"""PRPLL, which tests Mersenne numbers for primality: the beginning of a test of 2^1257787 - 1, checked by itself and by GMP."""
import re
import shutil
import subprocess

from .case import Case

TITLE = "PRPLL (gwoltman/gpuowl)"
LANDMARK = "src/Gpu.cpp"
EXPONENT = 1257787
# The FFTs, and how PRPLL is told to use them.
FFTS = {"default FFT": [], "FP64 FFT": ["-fft", "256:2:256"]}
# After so many squarings of 3, PRPLL prints the low 64 bits. "OK" says that Gerbicz's check of all squarings until then was right.
STEPS = (0, 400, 1000)
RESIDUES = f"""
import gmpy2
modulus, value = (gmpy2.mpz(1) << {EXPONENT}) - 1, gmpy2.mpz(3)
for step in range({STEPS[-1]} + 1):
    if step in {STEPS}:
        print(step, format(int(value & 0xffffffffffffffff), "016x"))
    value = value * value % modulus
"""


def built(job, include):
    """The program; raises CalledProcessError."""
    folder = job.work("build")
    for each in ("Makefile", "genbundle.sh"):
        shutil.copy(job.source / each, folder)
    shutil.copytree(job.source / "src", folder / "src")
    flags = f"-O1 -DNDEBUG -std=c++20 -DCUDA_BACKEND -Isrc/cuda -I{include}"
    command = ["make", f"-j{job.jobs}", "CUDA=1", "prpll", f"CXXFLAGS={flags}", f"LIBPATH=-L{job.libcuda} -L{include.parent}/lib64"]
    ended = job.run(command, job.folder / "build.log", folder, on_device=False)
    if ended.status:
        raise subprocess.CalledProcessError(ended.status, command)
    return folder / "build-cuda" / "prpll"


def expected_residues(job):
    python = job.python(("gmpy2==2.2.1",))
    lines = subprocess.run([str(python), "-c", RESIDUES], check=True, capture_output=True, text=True).stdout.splitlines()
    return {int(step): residue for step, residue in map(str.split, lines)}


def cases(job):
    residues = expected_residues(job)
    program = built(job, job.toolkit_include())
    root = job.work("results")

    def run(fft):
        folder = root / fft.split()[0]
        folder.mkdir()
        command = [program, "-prp", EXPONENT, "-block", 200, "-log", 1000, "-iters", STEPS[-1], *FFTS[fft]]
        ended = job.run(command, root / f"{fft.split()[0]}.log", folder, seconds=1200)
        found = {int(step): (verdict, residue) for verdict, step, residue in
                 re.findall(rf" {EXPONENT} (OK|EE) +(\d+) .*?\b([0-9a-f]{{16}})\b", ended.output)}
        return found, ended.seconds

    for fft, (found, seconds) in job.side_by_side(run, job.selected(FFTS)):
        print(f"{fft}: {found} in {seconds:.0f} s", flush=True)
        for step in STEPS:
            right = found.get(step) == ("OK", residues[step])
            yield Case(f"{fft}, {step} squarings", *(["passed"] if right else ["failed", f"{found.get(step)} instead of {residues[step]}"]))
