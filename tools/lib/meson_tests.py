#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a build and counts test cases, not programs.

  meson_tests.py BUILD [MESON-TEST-OPTION...]
  meson_tests.py BUILD --targets SUITE           prints what ninja must build for the tests of a suite

A doctest program's own summary gives its cases. A case that could not run here says so by a message that begins with
"SKIPPED:" and counts as skipped. Any other program counts as one test (status 77: skipped).
The suite "install" is left to tools/check_install, which is a check of its own.
"""
import json
import os
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


def targets(build, suite):
    """The files that the tests of a suite are or depend on, as ninja names them."""
    def introspect(what):
        return json.loads(subprocess.run(["meson", "introspect", str(build), what], check=True, stdout=subprocess.PIPE).stdout)

    subprocess.run(["ninja", "-C", str(build), "build.ninja"], check=True, stdout=subprocess.DEVNULL)  # makes the introspection up to date
    files = {target["id"]: target["filename"] for target in introspect("--targets")}
    needed = set()
    for test in introspect("--tests"):
        if suite not in (name.split(":")[-1] for name in test["suite"]):
            continue
        needed.update(name for target in test["depends"] for name in files[target])
        needed.update(word for word in test["cmd"] if word.startswith(f"{build}/") and not word.startswith(f"{build}/../"))
    return sorted(str(pathlib.Path(name).relative_to(build)) for name in needed)


def main(build, options):
    log = build / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    at_once = str((os.cpu_count() or 1) + 1)  # some only wait
    subprocess.run(["meson", "test", "-C", str(build), "--no-rebuild", "--num-processes", at_once, "--print-errorlogs", "--no-suite", "install"] + options, check=False)
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
    directory = pathlib.Path(sys.argv[1]).resolve()
    if sys.argv[2:3] == ["--targets"] and len(sys.argv) == 4:
        for target in targets(directory, sys.argv[3]):
            print(target)
    else:
        sys.exit(main(directory, sys.argv[2:]))
