#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests/oracle's differential fuzzer with new seeds, several processes at a time, and counts the cases; see tools/fuzz.

  differential.py CASES [--seconds N] [--jobs N] [--build DIRECTORY] [--record]

Rows of .quern/differential/ledger.tsv and of tests/oracle/ledger.tsv, which --record moves them to:
commit, first seed, kernels, compilations, cases, findings, seconds. CASES are counted over both.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATE = ROOT / ".quern/differential"
RUNNING, RECORDED = STATE / "ledger.tsv", ROOT / "tests/oracle/ledger.tsv"
FINDINGS = STATE / "findings"
HEAD = ("# What `tools/fuzz --differential` has tried: generated kernels on the device against the oracle, every byte of their output.\n"
        "# commit\tfirst seed\tkernels\tcompilations\tcases\tfindings\tseconds\n")
KERNELS = 60  # of one process
SUMMARY = re.compile(r"^kernels (\d+), compilations (\d+), cases (\d+), failed (\d+)$", re.M)
DIED = re.compile(r"^a (?:crash|hang) at seed (\d+)$", re.M)


def rows(path):
    if not path.exists():
        return []
    lines = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    return [[line[0], *map(int, line[1:])] for line in lines]


def total(column):
    return sum(row[column] for row in rows(RUNNING) + rows(RECORDED))


def next_seed():
    return max([row[1] + row[2] for row in rows(RUNNING) + rows(RECORDED)], default=0)


def commit():
    return subprocess.run(["git", "describe", "--always", "--dirty=+"], cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def start(program, first):
    command = [str(program), "--first", str(first), "--kernels", str(KERNELS)]
    log = open(STATE / f"log-{first}", "w")
    return {"first": first, "begin": time.monotonic(), "log": log, "process": subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)}


def finish(run, name):
    """Counts what a process did. One that died is counted up to the kernel before: it says which one it was at."""
    run["log"].close()
    path = STATE / f"log-{run['first']}"
    text = path.read_text(errors="replace")
    path.unlink()
    counts, died = SUMMARY.search(text), DIED.search(text)
    kernels, compilations, cases, failed = (int(n) for n in counts.groups()) if counts else (0, 0, 0, 1)
    if died:
        kernels = int(died[1]) - run["first"] + 1
    elif not counts:
        kernels = KERNELS
    if failed:
        with open(FINDINGS, "a") as out:
            out.write(f"-- commit {name}\n{text}")
        print(text, end="", flush=True)
    with open(RUNNING, "a") as out:
        out.write("\t".join(map(str, [name, run["first"], kernels, compilations, cases, failed, round(time.monotonic() - run["begin"])])) + "\n")


def record():
    """The running ledger's rows, those of one commit as one where their seeds follow each other."""
    merged = rows(RECORDED)
    for row in sorted(rows(RUNNING), key=lambda row: row[1]):
        if merged and merged[-1][0] == row[0] and merged[-1][1] + merged[-1][2] == row[1]:
            merged[-1] = merged[-1][:2] + [a + b for a, b in zip(merged[-1][2:], row[2:])]
        else:
            merged.append(row)
    RECORDED.write_text(HEAD + "".join("\t".join(map(str, row)) + "\n" for row in merged))
    RUNNING.unlink(missing_ok=True)


def work(program, wanted, seconds, jobs):
    name, begin, seed = commit(), time.monotonic(), next_seed()
    running = []
    while running or total(4) < wanted and time.monotonic() - begin < seconds:
        while len(running) < jobs and total(4) < wanted and time.monotonic() - begin < seconds:
            running.append(start(program, seed))
            seed += KERNELS
        time.sleep(0.2)
        for run in [run for run in running if run["process"].poll() is not None]:
            running.remove(run)
            finish(run, name)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=int)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    parser.add_argument("--record", action="store_true")
    arguments = parser.parse_args()
    program = arguments.build / "tests/oracle/differential-fuzz"
    if not program.exists():
        sys.exit(f"fuzz: {program} is not built; run `ninja -C {arguments.build}`")
    STATE.mkdir(parents=True, exist_ok=True)
    before = total(5)
    try:
        work(program, arguments.cases, arguments.seconds, arguments.jobs)
    except KeyboardInterrupt:
        print("interrupted: what had ended is counted")
    print(f"{total(2)} kernels, {total(3)} compilations, {total(4)} of {arguments.cases} cases, {total(5)} findings")
    failed = total(5) > before
    if arguments.record:
        record()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
