# SPDX-License-Identifier: Apache-2.0
"""tools/bench --peers: an environment for the peers, one run, the table."""
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from . import machine

ROOT = pathlib.Path(__file__).resolve().parents[3]
PLACE = ROOT / ".quern" / "peers"
CACHE = ROOT / ".quern" / "peers-cache"  # what the peers compiled; their own keys say what is out of date
PEERS = ("PoCL", "Warp", "Numba")
PACKAGES = {"PoCL": ("pyopencl", "pyopencl"), "Warp": ("warp-lang", "warp"), "Numba": ("numba", "numba")}  # peer: package, module
SYSTEM_PACKAGES = ("pocl-opencl-icd",)
GOAL = 1.1
# quern / the fastest peer that --check accepts; the others are held to GOAL.
LIMITS = {"saxpy": 1.3, "matmul": 1.4, "block_sums": 4.0, "histogram": 1.4, "softmax": 4.5, "csr": 6.0, "convolve": 1.7, "scan": 1.7}
QUICK = "^(saxpy|black_scholes|matmul|histogram|csr|lennard_jones)$"


def install():
    """Makes the environment, and returns its Python with the peers that could not be installed and why."""
    python, absent = PLACE / "bin" / "python", {}
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE)], check=True, stdout=sys.stderr)

    def pip(package):
        done = subprocess.run([str(python), "-m", "pip", "install", "--quiet", package], capture_output=True, text=True)
        return (done.stderr.strip().splitlines() or ["pip failed"])[-1] if done.returncode else None

    def has(module):
        return subprocess.run([str(python), "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{module}') is None)"]).returncode == 0

    if not has("numpy") and (why := pip("numpy")):
        sys.exit(f"pip could not install numpy, which every peer needs: {why}")
    for peer, (package, module) in PACKAGES.items():
        if not has(module) and (why := pip(package)):
            absent[peer] = f"pip could not install {package}: {why}"
    if not list(pathlib.Path("/etc/OpenCL/vendors").glob("pocl*.icd")) and (why := install_system_packages()):
        absent["PoCL"] = why
    return python, absent


def install_system_packages():
    names = ", ".join(SYSTEM_PACKAGES)
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    try:
        done = subprocess.run([*as_root, "env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "install", "-y", "-qq", "--no-install-recommends",
                               *SYSTEM_PACKAGES], capture_output=True, text=True)
    except FileNotFoundError as error:
        return f"Debian's {names} is not installed, and there is no {error.filename}"
    return f"apt-get could not install {names}: {(done.stderr.strip().splitlines() or ['no reason given'])[-1]}" if done.returncode else None


def run(arguments, directory):
    """Measures, and returns the report."""
    python, missing = install()
    CACHE.mkdir(parents=True, exist_ok=True)
    facts = machine.facts()
    environment = dict(os.environ, QUERN_CPU_PLUGIN=str(directory / "src/cpu/device/libquern-cpu.so"))
    with tempfile.NamedTemporaryFile(suffix=".json") as out:
        command = [str(python), str(ROOT / "tests/bench/peers/run.py"), "--library", str(directory / "src/libquern.so.0"), "--cache", str(CACHE),
                   "--out", out.name, "--filter", arguments.filter or (QUICK if arguments.quick else "")]
        if arguments.quick:
            command += ["--budget-ms", "150", "--probe-ms", "10", "--threads", str(len(os.sched_getaffinity(0)))]
        if subprocess.run(command + (["--realtime"] if arguments.realtime else []), env=environment).returncode:
            sys.exit("no times of the peers")
        report = json.load(open(out.name))
    report["absent"].update(missing)
    return {"kind": "peers", "machine": facts, **report}


def best_peer(cells):
    """The name and the time of the fastest peer; None if there is none."""
    times = {name: cells[name]["ms"] for name in PEERS if "ms" in cells.get(name, {})}
    return min(times.items(), key=lambda item: item[1]) if times else None


def ratio(cells):
    best = best_peer(cells)
    return cells["quern"]["ms"] / best[1] if best and "ms" in cells["quern"] else None


def cell(cells, name):
    entry = cells.get(name)
    return "absent" if entry is None else f"{entry['ms']:.2f}" if "ms" in entry else "failed" if "error" in entry else "cannot"


def mean_line(report, counts):
    """The geometric means of quern / peer, over the rows that both can do."""
    line = f"{'geometric mean of quern / peer':<38}"
    for threads in counts:
        line += f"{'':>9}"
        for name in PEERS:
            both = [row["threads"][threads] for row in report["rows"] if all("ms" in row["threads"][threads].get(one, {}) for one in ("quern", name))]
            line += f"{math.exp(sum(math.log(cells['quern']['ms'] / cells[name]['ms']) for cells in both) / len(both)):>9.2f}" if both else f"{'':>9}"
        line += f"{'':>8}"
    return line.rstrip()


def table(report):
    """The lines of the table, and the rows whose ratio is above its limit or that quern failed at."""
    counts = [str(threads) for threads in report["threads"]]
    lines = [machine.line(report["machine"])]
    lines += [f"{name} {version}" for name, version in report["versions"].items()]
    lines += [f"{name} is absent: {why}" for name, why in sorted(report["absent"].items())]
    lines += ["", (f"{'ms':<38}" + "".join(f"{'threads: ' + count + (' (Warp: 1)' if count != '1' else ''):^44}" for count in counts)).rstrip()]
    lines.append(f"{'':<38}" + (f"{'quern':>9}" + "".join(f"{name:>9}" for name in PEERS) + f"{'ratio':>8}") * len(counts) + f"{'limit':>7}")
    missed = []
    for row in report["rows"]:
        line, limit, ratios = f"{row['what']:<38}", LIMITS.get(row["name"], GOAL), []
        for threads in counts:
            cells = row["threads"][threads]
            ratios.append(ratio(cells) if "ms" in cells["quern"] else math.inf)
            shown = "" if ratios[-1] is None else "-" if ratios[-1] == math.inf else f"{ratios[-1]:.2f}"
            line += "".join(f"{cell(cells, name):>9}" for name in ("quern", *PEERS)) + f"{shown:>8}"
        worst = max((value for value in ratios if value is not None), default=0)
        if worst > limit:
            missed.append(row["name"])
        lines.append(f"{line}{limit:>7.2f}  {'MISSED' if worst > limit else 'behind' if worst > GOAL else 'ok'}")
    return [*lines, mean_line(report, counts)], missed


def ways(report):
    """The fastest way to write each work where there are several, and how much faster than the first it is."""
    for row in report["rows"]:
        words = []
        for name, entry in row["threads"][str(report["threads"][0])].items():
            if len(tried := entry.get("ways", {})) > 1:
                first = next(iter(tried))
                faster = f" ({first} takes {tried[first] / tried[entry['way']]:.1f}x)" if first != entry["way"] else ""
                words.append(f"{name}: {entry['way']}{faster}")
        if words:
            yield f"{row['name']:<16}{'; '.join(words)}"
