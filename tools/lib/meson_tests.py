#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""meson_tests.py BUILD [MESON-TEST-OPTION...]: runs the tests of a build and counts test cases, not programs.

A doctest program's own summary gives its cases. A case that could not run here says so by a message that begins with
"SKIPPED:" and counts as skipped. Any other program counts as one test (status 77: skipped).
The suite "install" is left to tools/check_install, which is a check of its own.
"""
import json
import pathlib
import re
import subprocess
import sys

CASES = re.compile(r"\[doctest\] test cases:\s*(\d+)\s*\|\s*(\d+) passed\s*\|\s*(\d+) failed\s*\|\s*(\d+) skipped")
SKIPPED = re.compile(r"SKIPPED: .*")


def count(test):
    """(passed, failed, skipped, reasons) of one program."""
    output = test.get("stdout", "") + test.get("stderr", "")
    if test["result"] == "SKIP":
        return 0, 0, 1, {test["name"] + " is not run here"}
    good = test["result"] in ("OK", "EXPECTEDFAIL")
    cases = CASES.findall(output)
    if not cases:
        return int(good), int(not good), 0, set()
    passed, failed = (sum(int(row[i]) for row in cases) for i in (1, 2))
    skips = SKIPPED.findall(output)
    skipped = min(len(skips), passed)
    if not good and failed == 0:
        failed = 1  # it crashed, leaked or timed out after its summary
    return passed - skipped, failed, skipped, {line[len("SKIPPED: "):].strip() for line in skips}


def main(build, options):
    log = build / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs", "--no-suite", "install"] + options, check=False)
    if not log.exists():
        sys.exit("meson ran no tests")
    totals, reasons = [0, 0, 0], set()
    for line in log.read_text(errors="replace").splitlines():
        *counts, why = count(json.loads(line))
        totals = [a + b for a, b in zip(totals, counts)]
        reasons |= why
    for reason in sorted(reasons):
        print(f"skipped: {reason}")
    print(f"{totals[0]} passed, {totals[1]} failed, {totals[2]} skipped", flush=True)
    return 1 if totals[1] else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(pathlib.Path(sys.argv[1]), sys.argv[2:]))
