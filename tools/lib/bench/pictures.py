# SPDX-License-Identifier: Apache-2.0
"""The pictures of each kind of report: (file name, SVG)."""
from . import charts, peers, scale


def threads(count):
    return "1 thread" if int(count) == 1 else f"{count} threads"


def of_styles(report):
    counts = [str(count) for count in report["threads"]]
    rows = [(row["what"], [row["threads"][count]["quern"] / row["threads"][count]["native"] for count in counts]) for row in report["rows"]]
    yield f"bench-{report['set']}.svg", charts.bars("Kernels as people write them, beside native functions",
                                          "time of quern / time of the best native function; 1: equally fast", [threads(count) for count in counts], rows)


def of_peers(report):
    for count in map(str, report["threads"]):
        names = [name for name in peers.PEERS if any("ms" in row["threads"][count].get(name, {}) for row in report["rows"])]
        rows = []
        for row in report["rows"]:
            cells = row["threads"][count]
            if "ms" in cells["quern"]:
                rows.append((row["what"], [cells[name]["ms"] / cells["quern"]["ms"] if "ms" in cells.get(name, {}) else None for name in names]))
        shown = [name + (" (one thread)" if name == "Warp" and count != "1" else "") for name in names]
        yield f"bench-peers-{count}.svg", charts.bars(f"The peers beside quern, {threads(count)}",
                                                      "time of the peer / time of quern; above 1 quern is faster", shown, rows)


def of_scale(report):
    kernels = [row for row in report["kernels"] if "first_ms" in row]
    by_shape = lambda value: {shape: [(row["instructions"], value(row)) for row in kernels if row["shape"] == shape]
                              for shape in dict.fromkeys(row["shape"] for row in kernels)}
    points = lambda part, x, y: [(row[x], row[y]) for row in report[part]]
    workers = scale.speedups(report)
    yield "bench-scale.svg", charts.curves("How times and memory grow", [
        {"title": "First launch", "x": "instructions of PTX", "y": "CPU time, ms", "log": "xy", "series": by_shape(lambda row: row["load_ms"] + row["first_ms"])},
        {"title": "Memory of compiling", "x": "instructions of PTX", "y": "peak of the process, MiB", "log": "x", "series": by_shape(lambda row: row["peak_mib"])},
        {"title": "Launch and wait", "x": "blocks", "y": "time of a block, ns", "log": "xy", "series": {"": [(x, 1e3 * y / x) for x, y in points("blocks", "blocks", "us")]}},
        {"title": "Arrays", "x": "live arrays", "y": "time, us", "log": "x", "series": {
            name: points("arrays", "arrays", field) for name, field in (("allocate", "allocate_us"), ("launch", "launch_us"), ("free", "free_us"))}},
        {"title": "Modules", "x": "loaded modules", "y": "time to load one, us", "log": "xy", "series": {"": points("modules", "modules", "load_us")}},
        {"title": f"Workers, on {report['machine']['cores']} cores", "x": "workers", "y": "times as fast as one", "log": "", "series": {
            "computing": [(row[0], row[1]) for row in workers], "waiting for memory": [(row[0], row[2]) for row in workers]}},
    ])


KINDS = {"styles": of_styles, "peers": of_peers, "scale": of_scale}
