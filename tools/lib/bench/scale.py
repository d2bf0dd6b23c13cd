# SPDX-License-Identifier: Apache-2.0
"""tools/bench --scale: how times and memory of the CPU device grow with kernels, grids, arrays, modules and workers."""
import os
import resource
import subprocess
import sys

from . import machine

KINDS = ("straight", "branches", "loops", "memory")
CPU_SECONDS = 60  # for one kernel
FULL = {"kernels": (10, 100, 1000, 10000, 50000), "blocks": 10**7, "arrays": 10**4, "modules": 1000, "workers": (1, 2, 4, 8), "memory": (1, 2, 8, 64),
        "contention": (1, 2, 8, 64), "rounds": 3}
QUICK = {"kernels": (10, 1000), "blocks": 10**5, "arrays": 10**3, "modules": 100, "workers": (1, 2), "memory": (1, 8), "contention": (1, 64), "rounds": 2}
FIELDS = {"kernels": ("instructions", "load_ms", "first_ms", "later_us", "more_mib", "peak_mib"), "blocks": ("blocks", "us"),
          "arrays": ("arrays", "allocate_us", "launch_us", "free_us"), "modules": ("modules", "load_us", "find_ns", "launch_us", "kib"),
          "workers": ("compute_ms", "stream_ms"), "memory": ("start_kib", "device_kib", "code_kib", "used_kib", "threads"),
          "contention": ("what", "launches", "us", "locks", "contended", "hottest", "woken", "switches")}
DEVICE_MIB, WORKER_MIB = 60, 2  # goals


def rows_of(part, text):
    """The program's rows as dictionaries."""
    return [{field: word if field == "what" else float(word) for field, word in zip(FIELDS[part], line.split("\t"), strict=True)} for line in text.splitlines()]


class Runner:
    def __init__(self, directory, realtime):
        self.programs, self.realtime = directory / "tests" / "bench", realtime
        self.environment = dict(os.environ, QUERN_CACHE="0", QUERN_CPU_PLUGIN=str(directory / "src/cpu/device/libquern-cpu.so"))

    def __call__(self, part, *words, workers=1, processors=None):
        """The rows of one process; None if it needed more than CPU_SECONDS."""
        program = ["contention-bench"] if part == "contention" else ["scale-bench", part, *map(str, words)]
        chosen = ["taskset", "-c", ",".join(map(str, sorted(os.sched_getaffinity(0))[:processors]))]
        command = (["chrt", "-f", "10"] if self.realtime else []) + chosen + [str(self.programs / program[0]), *program[1:]]
        done = subprocess.run(command, env=dict(self.environment, QUERN_CPU_WORKERS=str(workers)), stdout=subprocess.PIPE, text=True,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5)))
        if done.returncode in (-24, -9):  # SIGXCPU, SIGKILL
            return None
        if done.returncode:
            sys.exit(f"{' '.join(program)} failed")
        return rows_of(part, done.stdout)


def least(tables):
    """Of equal tables the least of each time."""
    return [{field: min(row[field] for row in rows) for field in rows[0]} for rows in zip(*tables)]


def run(arguments, directory):
    plan, runner = QUICK if arguments.quick else FULL, Runner(directory, arguments.realtime)
    report = {"kind": "scale", "machine": machine.facts(), "kernels": []}
    for kind in KINDS:
        for count in plan["kernels"]:
            rows = runner("kernels", kind, count)
            report["kernels"].append({"shape": kind, **(rows[0] if rows else {"instructions": count, "over_s": CPU_SECONDS})})
    for part in ("blocks", "arrays", "modules"):
        report[part] = least([runner(part, plan[part], processors=1) for _ in range(plan["rounds"])])
    passes = [[runner("workers", workers=count)[0] for count in plan["workers"]] for _ in range(plan["rounds"])]
    report["workers"] = [{"workers": count, **row} for count, row in zip(plan["workers"], least(passes))]
    for part in ("memory", "contention"):
        report[part] = [{"workers": count, **row} for count in plan[part] for row in runner(part, workers=count)]
    return report


def chunks(blocks, workers):
    """How often the workers draw blocks from a grid's counter: an atomic addition each; src/cpu/engine/run_launch.cpp has the sizes."""
    drawn = count = 0
    while drawn < blocks:
        drawn += min(max((blocks - drawn) // (16 * workers), 1), 1024)
        count += 1
    return count + min(workers, count)  # the last draw of each that takes part finds nothing


def speedups(report):
    """(workers, compute-bound, memory-bound): times as fast as with one worker."""
    one = report["workers"][0]
    return [(row["workers"], one["compute_ms"] / row["compute_ms"], one["stream_ms"] / row["stream_ms"]) for row in report["workers"]]


def per_worker_kib(report):
    rows = report["memory"]
    return (rows[-1]["used_kib"] - rows[0]["used_kib"]) / (rows[-1]["workers"] - rows[0]["workers"])


def checks(report):
    """(what, value, limit, unit, whether the value must be below)."""
    memory, cores = report["memory"][0], report["machine"]["cores"]
    yield "memory that the device adds before the first kernel", (memory["device_kib"] - memory["start_kib"]) / 1024, DEVICE_MIB, "MiB", True
    yield "memory that a worker adds", per_worker_kib(report) / 1024, WORKER_MIB, "MiB", True
    by_blocks = {row["blocks"]: row["us"] / row["blocks"] for row in report["blocks"]}
    most = max(by_blocks)
    yield f"time of a block, {most:,.0f} blocks / 10,000", by_blocks[most] / by_blocks[1e4], 2, "", True
    for part, field, what in (("arrays", "allocate_us", "allocating, {:,.0f} live arrays / 100"), ("arrays", "free_us", "freeing, {:,.0f} live arrays / 100"),
                              ("arrays", "launch_us", "a launch, {:,.0f} live arrays / 100"), ("modules", "load_us", "loading, {:,.0f} modules / 100"),
                              ("modules", "find_ns", "finding a kernel, {:,.0f} modules / 100"), ("modules", "launch_us", "a launch, {:,.0f} modules / 100")):
        rows = {row[part]: row[field] for row in report[part]}
        yield what.format(max(rows)), rows[max(rows)] / rows[100], 3, "", True
    for workers, compute, _ in speedups(report):
        if workers == cores and workers > 1:
            yield f"speed-up of computing by {workers:.0f} workers", compute, 0.8 * cores, "", False


def kernel_lines(report):
    yield f"{'kernels, CPU time':<18}{'instructions':>14}{'load ms':>10}{'first ms':>11}{'us each':>9}{'later us':>10}{'MiB more':>10}{'MiB peak':>10}"
    for row in report["kernels"]:
        head = f"  {row['shape']:<16}{row['instructions']:>14,.0f}"
        if "over_s" in row:
            yield f"{head}  more than {row['over_s']} s of CPU time"
        else:
            yield (f"{head}{row['load_ms']:>10.1f}{row['first_ms']:>11.1f}{1e3 * (row['load_ms'] + row['first_ms']) / row['instructions']:>9.0f}"
                   f"{row['later_us']:>10.2f}{row['more_mib']:>10.1f}{row['peak_mib']:>10.0f}")


def small_lines(report):
    yield f"{'grids':<18}{'blocks':>14}{'us':>12}{'ns a block':>12}"
    yield from (f"{'':<18}{row['blocks']:>14,.0f}{row['us']:>12.2f}{1e3 * row['us'] / row['blocks']:>12.2f}" for row in report["blocks"])
    yield ""
    yield f"{'live arrays':<18}{'arrays':>14}{'allocate us':>12}{'launch us':>12}{'free us':>12}"
    yield from (f"{'':<18}{row['arrays']:>14,.0f}{row['allocate_us']:>12.2f}{row['launch_us']:>12.2f}{row['free_us']:>12.2f}" for row in report["arrays"])
    yield ""
    yield f"{'modules':<18}{'modules':>14}{'load us':>12}{'find ns':>12}{'launch us':>12}{'KiB each':>12}"
    yield from (f"{'':<18}{row['modules']:>14,.0f}{row['load_us']:>12.1f}{row['find_ns']:>12.0f}{row['launch_us']:>12.2f}{row['kib']:>12.0f}"
                for row in report["modules"])


def worker_lines(report):
    cores = report["machine"]["cores"]
    yield f"{'workers':<18}{'workers':>14}{'compute ms':>12}{'speed-up':>10}{'stream ms':>12}{'speed-up':>10}"
    for row, (workers, compute, stream) in zip(report["workers"], speedups(report)):
        note = f"  more workers than the {cores} cores" if workers > cores else ""
        yield f"{'':<18}{workers:>14.0f}{row['compute_ms']:>12.1f}{compute:>10.2f}{row['stream_ms']:>12.1f}{stream:>10.2f}{note}"
    yield ""
    yield f"{'resident MiB':<18}{'workers':>14}{'start':>10}{'device':>10}{'first kernel':>14}{'all workers':>13}{'threads':>9}"
    for row in report["memory"]:
        mib = [row[field] / 1024 for field in ("start_kib", "device_kib", "code_kib", "used_kib")]
        yield f"{'':<18}{row['workers']:>14.0f}{mib[0]:>10.1f}{mib[1]:>10.1f}{mib[2]:>14.1f}{mib[3]:>13.1f}{row['threads']:>9.0f}"


def contention_lines(report):
    yield f"{'for each launch':<26}{'workers':>9}{'us':>12}{'locks':>8}{'contended':>11}{'of one mutex':>14}{'woken':>8}{'switches':>10}{'draws':>8}"
    grids = {"65,536": 65536, "1,024": 1024, "1": 1}
    for row in report["contention"]:
        draws = chunks(grids[row["what"].split()[0]], row["workers"])
        yield (f"  {row['what']:<24}{row['workers']:>9.0f}{row['us']:>12.2f}{row['locks']:>8.1f}{row['contended']:>11.3f}{row['hottest']:>14.1f}"
               f"{row['woken']:>8.2f}{row['switches']:>10.1f}{draws:>8.0f}")


def table(report):
    """The lines of the tables, and what is beyond its limit."""
    lines = [machine.line(report["machine"])]
    for part in (kernel_lines, small_lines, worker_lines, contention_lines):
        lines += ["", *part(report)]
    lines += ["", f"{'':<58}{'value':>9}{'limit':>9}"]
    missed = []
    for what, value, limit, unit, below in checks(report):
        good = value <= limit if below else value >= limit
        missed += [] if good else [what]
        lines.append(f"{what:<58}{value:>9.2f}{limit:>9.2f} {unit:<3}  {'ok' if good else 'MISSED'}")
    return lines, missed
