#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs checks and sums up what they report: one after the other, but two at a time of those that leave cores idle.

A check is a command of tools/. Its last line may be `N passed, N failed, N skipped`; without such a line the check as a whole
counts as one, passed where its status is 0.
"""
import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUMMARY = re.compile(r"^(\d+) passed, (\d+) failed, (\d+) skipped$")

# name, command, the shortest run that it is part of, builds nothing that another one needs and leaves cores idle
SHORT, ALL, NAMED = range(3)
CHECKS = [
    ("layers", ["tools/check_layers"], SHORT, False),
    ("format", ["tools/check_format"], SHORT, False),
    ("docs", ["tools/check_docs"], SHORT, False),
    ("unit", ["tools/check_build", "build"], SHORT, False),
    ("clang", ["tools/check_build", "build-clang"], NAMED, False),
    ("address", ["tools/sanitize", "address"], ALL, False),
    ("thread", ["tools/sanitize", "thread"], ALL, False),
    ("fuzz", ["tools/fuzz", "--unoptimised", "10"], ALL, False),
    ("memory", ["tools/check_memory"], ALL, True),
    ("tidy", ["tools/check_tidy"], ALL, True),
    ("hidden", ["tools/check_hidden"], ALL, True),
    ("readme", ["tools/check_readme"], ALL, True),
    ("install", ["tools/check_install", "build"], ALL, True),
    ("clients", ["tools/clients", "--short"], ALL, True),
    ("interop", ["tools/check_interop", "build"], ALL, True),
    ("torture", ["tools/cache-torture"], ALL, True),
]
# Matches lines about failures: of meson's list of tests, doctest, the sanitizers, the compilers and the checks' own scripts.
FAILURE = re.compile(r"\b(FAIL|FAILED|ERROR|TIMEOUT|TEST CASE:|SUMMARY: \w+Sanitizer|WARNING: ThreadSanitizer)|error:|^Traceback")
FAILURE_LINES = 40  # of one check, told again at the end of all
# The number of checks of the last kind that run side by side. The first of them, which goes on alone for long, begins first.
LANES = 2


def show(line):
    print(line, flush=True)


def run(name, command, say=show):
    """Runs one check; returns (passed, failed, skipped, lines about what failed). Its output goes through as it comes."""
    say(f"== {name}: {' '.join(command)}")
    if not (ROOT / command[0]).exists():
        say(f"{command[0]} is not there: skipped")
        return 0, 0, 1, []
    begin, last, failures = time.monotonic(), "", []
    process = subprocess.Popen(command, cwd=ROOT, text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    for line in process.stdout:
        line = line.rstrip("\n")
        if SUMMARY.match(line.rstrip()):
            last = line.rstrip()
            continue  # only the very last line of all is of this form
        if FAILURE.search(line):
            failures.append(line)
        say(line)
    _, status, usage = os.wait4(process.pid, 0)  # with what all its children took: unlike the time that does not depend on what else runs
    process.stdout.close()
    process.returncode = status = os.waitstatus_to_exitcode(status)
    counts = SUMMARY.match(last)
    passed, failed, skipped = (int(n) for n in counts.groups()) if counts else (int(status == 0), int(status != 0), 0)
    if status != 0 and failed == 0:
        failed = 1
    say(f"-- {name}: {passed} passed, {failed} failed, {skipped} skipped in {time.monotonic() - begin:.0f} s, {usage.ru_utime + usage.ru_stime:.0f} CPU s")
    return passed, failed, skipped, [f"failed in {name}:", *failures[:FAILURE_LINES]] if failed else []


def run_beside(name, command):
    """Like run(), but prints the whole output at the end."""
    lines = []
    counts = run(name, command, lines.append)
    show("\n".join(lines))
    return counts


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(name for name, *_ in CHECKS))
        return 0
    names = [argument for argument in arguments if argument != "--all"]
    unknown = set(names) - {name for name, *_ in CHECKS}
    if unknown:
        sys.exit(f"unknown check: {', '.join(sorted(unknown))}; tools/test --list names them")
    if not arguments:
        os.environ.setdefault("QUERN_TEST_FRACTION", "4")  # a part of the random programs and of the tables; --all runs all of them
    # Run one by one if only some are selected: then "unit" has not built the files that the others use.
    longest = ALL if "--all" in arguments else SHORT
    chosen = [(name, command, beside and not names) for name, command, shortest, beside in CHECKS
              if (name in names if names else shortest <= longest)]
    totals = [run(name, command) for name, command, beside in chosen if not beside]
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        totals += lanes.map(lambda check: run_beside(*check[:2]), (check for check in chosen if check[2]))
    *counts, failures = zip(*totals)
    passed, failed, skipped = (sum(column) for column in counts)
    for lines in failures:  # again at the end: a log of which only the end is kept tells them too
        print("".join(f"{line}\n" for line in lines), end="")
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
