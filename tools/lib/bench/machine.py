# SPDX-License-Identifier: Apache-2.0
"""The facts of the machine that go with measured times."""
import datetime
import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[3]


def facts():
    lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    values = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    flags = values.get("flags", "").split()
    commit = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return {"processor": values.get("model name", "unknown"), "family": values.get("cpu family", ""), "model": values.get("model", ""),
            "cores": len(os.sched_getaffinity(0)), "isa": "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "less than AVX2",
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30), "load": round(os.getloadavg()[0], 1),
            "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip() or "unknown"}


def line(machine):
    return (f"{machine['date']}, {machine['commit']}: {machine['processor']} (family {machine['family']}, model {machine['model']}, {machine['isa']}), "
            f"{machine['cores']} cores, {machine['memory_gib']} GiB, load {machine['load']} at the start")
