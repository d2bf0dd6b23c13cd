#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks whole kernels with ptxas: kernels of the oracle's generators that quern runs must be valid for ptxas, too. (Single
instructions, valid and not, are compared in tests/unit/ptx/judge_forms.py.) ptxas says nothing about results, and its crash is no verdict.

  ptxas.py --forms FORMS --kernels DIFFERENTIAL [--count N] [--first SEED]

FORMS prints the kernels of forms.def, DIFFERENTIAL a random one. Status 77: there is no ptxas.
"""
import argparse
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def judge(text):
    """None if ptxas accepts the kernel; otherwise its message, or "no verdict"."""
    target = re.search(r"^\.target (sm_(\d+)\w*)", text, re.M)
    arch = target[1] if int(target[2]) >= 89 else "sm_89"
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run(["ptxas", "-arch=" + arch, "-O0", "-o", "/dev/null", file.name], text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, check=False)
    if done.returncode == 0:
        return None
    return done.stdout.strip() if "error" in done.stdout or "fatal" in done.stdout else "no verdict"


def kernels(arguments):
    """(name, text) of each kernel."""
    text = subprocess.run([arguments.forms, "--show"], check=True, text=True, stdout=subprocess.PIPE).stdout
    for number, part in enumerate(re.split(r"^(?=\.version)", text, flags=re.M)[1:]):
        yield f"forms.def, kernel {number}", part
    for seed in range(arguments.first, arguments.first + arguments.count):
        shown = subprocess.run([arguments.kernels, "--show", str(seed)], check=True, text=True, stdout=subprocess.PIPE).stdout
        yield f"seed {seed}", shown


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forms", required=True)
    parser.add_argument("--kernels", required=True)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    arguments = parser.parse_args()
    if shutil.which("ptxas") is None:
        print("SKIPPED: there is no ptxas")
        return SKIPPED
    judged = refused = undecided = 0
    for name, text in kernels(arguments):
        verdict = judge(text)
        judged += 1
        if verdict == "no verdict":
            undecided += 1
        elif verdict is not None:
            refused += 1
            print(f"{name}: {verdict[:500]}")
    print(f"{judged} kernels, {refused} refused by ptxas, {undecided} without a verdict")
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main())
