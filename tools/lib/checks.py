#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs checks one after the other and sums up what they report.

A check is a command of tools/. Its last line may be `N passed, N failed, N skipped`; without such a line the check as a whole
counts as one, passed where its status is 0.
"""
import os
import pathlib
import re
import resource
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")

# name, command, part of the short run
CHECKS = [
    ("layers", ["tools/check_layers"], True),
    ("format", ["tools/check_format"], True),
    ("unit", ["tools/check_build", "build"], True),
    ("clang", ["tools/check_build", "build-clang"], False),
    ("address", ["tools/sanitize", "address"], False),
    ("thread", ["tools/sanitize", "thread"], False),
    ("fuzz", ["tools/fuzz", "--unoptimised", "10"], False),
    ("memory", ["tools/check_memory"], False),
    ("tidy", ["tools/check_tidy"], False),
    ("hidden", ["tools/check_hidden"], False),
    ("readme", ["tools/check_readme"], False),
    ("install", ["tools/check_install", "build"], False),
    ("interop", ["tools/check_interop", "build"], False),
]


def cpu_seconds():
    """What all ended children took, theirs included: unlike the time it does not depend on what else the machine does."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(name, command):
    """Runs one check; returns (passed, failed, skipped). Its output goes through as it comes."""
    print(f"== {name}: {' '.join(command)}", flush=True)
    if not (ROOT / command[0]).exists():
        print(f"{command[0]} is not there: skipped")
        return 0, 0, 1
    begin, used, last = time.monotonic(), cpu_seconds(), ""
    with subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        for line in process.stdout:
            if SUMMARY.match(line.rstrip()):
                last = line.rstrip()
                continue  # only the very last line of all is of this form
            print(line, end="", flush=True)
    status, counts = process.returncode, SUMMARY.match(last)
    passed, failed, skipped = (int(n) for n in counts.groups()) if counts else (int(status == 0), int(status != 0), 0)
    if status != 0 and failed == 0:
        failed = 1
    print(f"-- {name}: {passed} passed, {failed} failed, {skipped} skipped in {time.monotonic() - begin:.0f} s, {cpu_seconds() - used:.0f} CPU s", flush=True)
    return passed, failed, skipped


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(name for name, _, _ in CHECKS))
        return 0
    names = [argument for argument in arguments if argument != "--all"]
    unknown = set(names) - {name for name, _, _ in CHECKS}
    if unknown:
        sys.exit(f"unknown check: {', '.join(sorted(unknown))}; tools/test --list names them")
    if not arguments:
        os.environ.setdefault("QUERN_TEST_FRACTION", "4")  # random tests and tables of faults by a part: --all has them whole
    chosen = [(name, command) for name, command, short in CHECKS
              if (name in names if names else short or "--all" in arguments)]
    totals = [run(name, command) for name, command in chosen]
    passed, failed, skipped = (sum(column) for column in zip(*totals))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
