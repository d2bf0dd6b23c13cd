# SPDX-License-Identifier: Apache-2.0
"""The two tables of docs/clients.md: numbers of each client, and why tests failed or were skipped, with what the skipped ones need."""
import collections

from .case import OUTCOMES, counts

NUMBERS = "| client | tests | passed | failed | skipped | time |"
REASONS = "| client | tests | outcome | reason | needs |"


def cell(text):
    return " ".join(text.replace("|", "\\|").split())


def duration(seconds):
    return f"{seconds / 60:.0f} min" if seconds >= 100 else f"{seconds:.0f} s"


def number_row(title, cases, seconds):
    count = counts(cases)
    return f"| {title} | {len(cases)} | " + " | ".join(str(count[outcome]) for outcome in OUTCOMES) + f" | {duration(seconds)} |"


def reason_rows(title, cases):
    """Most frequent first. What the rows of expected.toml say replaces the reason of a failed test, and stands beside that of a skipped one."""
    groups = collections.Counter((case.outcome, cell(case.reason), cell(case.needs)) for case in cases if case.outcome != "passed")
    ordered = sorted(groups.items(), key=lambda item: (item[0][0], -item[1], item[0][1:]))
    return [f"| {title} | {count} | {outcome} | {reason} | {needs} |" for (outcome, reason, needs), count in ordered]


def with_rows(text, header, client, rows, order):
    """The text with these rows of a client in the table with this header. `client`: the words that its rows begin with, less the version."""
    lines = text.split("\n")
    begin = lines.index(header) + 2
    end = next(index for index in range(begin, len(lines) + 1) if index == len(lines) or not lines[index].startswith("|"))
    kept = [line for line in lines[begin:end] if not line.startswith(f"| {client} ")]

    def place(line):
        return next((index for index, name in enumerate(order) if line.startswith(f"| {name} ")), len(order))

    return "\n".join(lines[:begin] + sorted(kept + rows, key=place) + lines[end:])


def write(page, client, order, cases, seconds):
    """`order`: the clients' titles, as they follow each other in the tables."""
    names = [title.split(" ")[0] for title in order]
    name = client.split(" ")[0]
    text = with_rows(page.read_text(), NUMBERS, name, [number_row(client, cases, seconds)], names)
    page.write_text(with_rows(text, REASONS, name, reason_rows(client, cases), names))
