# SPDX-License-Identifier: Apache-2.0
"""The pictures of each kind of report: (file name, SVG)."""
from . import charts, peers


def threads(count):
    return "1 thread" if int(count) == 1 else f"{count} threads"


def of_styles(report):
    counts = [str(count) for count in report["threads"]]
    rows = [(row["what"], [row["threads"][count]["quern"] / row["threads"][count]["native"] for count in counts]) for row in report["rows"]]
    yield "bench-styles.svg", charts.bars("Kernels as people write them, beside native functions",
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


KINDS = {"styles": of_styles, "peers": of_peers}
