#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU device answers as a GPU's driver did, but for what deviations.toml lists. A difference that is not listed fails, and so
does a listed one that is gone.

  facts_test.py PROGRAM LIBCUDA [NAME...]     names are prefixes of questions; deviations that are gone are not looked for then
"""
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools/lib"))
import driver_facts  # noqa: E402

GOLDEN = ROOT / "tests/golden/gpu/nvidia-h200/driver-facts.tsv"
#: Questions about waiting measure times, which a busy machine may spoil.
ATTEMPTS = 3


def ask(program, library, questions, jobs):
    environment = {**os.environ, "JOBS": str(jobs), "QUERN_CPU_MEMORY": "512M", "QUERN_CPU_WORKERS": "2"}
    done = subprocess.run([program, library, *questions], env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    return driver_facts.read(done.stdout.decode(errors="replace"))


def judge(expected, found, deviations, names):
    """The differences that are not listed, and the listed ones that no attempt has shown."""
    unknown = [(question, *difference) for question, answer in expected.items() if question in found
               for difference in driver_facts.differences(answer, found[question]) if deviations.reason(question, difference[0]) is None]
    return unknown, [] if names else deviations.unused()


def main():
    program, library, *names = sys.argv[1:]
    deviations = driver_facts.Deviations((ROOT / "tests/gpu/deviations.toml").read_text())
    golden = driver_facts.read(GOLDEN.read_text())
    expected = {question: answer for question, answer in golden.items()
                if not deviations.is_skipped(question) and (not names or question.startswith(tuple(names)))}
    found = ask(program, library, expected, jobs=2)
    unknown, gone = judge(expected, found, deviations, names)
    for _ in range(ATTEMPTS - 1):
        again = {row[0] for row in unknown} | {question for question in expected for row in gone if deviations.matches(question, row[0])}
        if not again:
            break
        found.update(ask(program, library, sorted(again), jobs=1))
        unknown, gone = judge(expected, found, deviations, names)
    for question, label, wanted, got in unknown:
        print(f"{question}: {label}: a GPU answers\n    {wanted}\n  and the CPU device\n    {got}\n"
              f"  follow the GPU, or list it in tests/gpu/deviations.toml")
    missing = sorted(set(expected) - set(found))
    print("".join(f"{question}: the program does not ask it\n" for question in missing), end="")
    for question, label in gone:
        print(f"{question}: {label}: the answers agree now: take it out of tests/gpu/deviations.toml")
    print(f"{len(expected)} questions, {len(unknown)} differences that are not listed, {len(gone)} listed ones that are gone")
    return 1 if unknown or gone or missing else 0


if __name__ == "__main__":
    sys.exit(main())
