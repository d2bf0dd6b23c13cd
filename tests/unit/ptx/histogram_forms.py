# SPDX-License-Identifier: Apache-2.0
"""Writes data/numba_forms.ptx: one instruction for each name in numba_forms.txt, the forms that real programs use, with
operands as src/ptx/isa.def says. Run by hand after a change of the list; ptxas, where installed, judges the result.

usage: histogram_forms.py [--judge]
"""
import argparse
import pathlib
import sys

import judge_forms

HERE = pathlib.Path(__file__).resolve().parent
TARGET, VERSION = "sm_90a", "9.0"


def words_of(name):
    """"ld.shared::cta.u32" -> ["ld", "shared::cta", "u32"]"""
    return name.split(".")


def fits(row, opcode, words):
    if row[0] != opcode:
        return False
    slots = list(row[1])
    if any("*" in alternatives for _, alternatives in slots):
        return False
    for word in words:
        place = next((i for i, (_, alternatives) in enumerate(slots) if word in alternatives), None)
        if place is None:
            return False
        del slots[place]
    return all(optional for optional, _ in slots)


def instruction(name, rows, writer):
    opcode, *words = words_of(name)
    if opcode == "call":
        return name + " fv;"
    for row in rows:
        if fits(row, opcode, words):
            return writer.write(opcode, words, row[2])
    raise SystemExit(f"no row of isa.def for {name}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--judge", action="store_true")
    arguments = parser.parse_args()
    bits, rows = judge_forms.tables()
    writer = judge_forms.Writer(bits)
    lines = [instruction(name, rows, writer) for name in (HERE / "numba_forms.txt").read_text().split()]
    text, _ = judge_forms.text_of(lines, VERSION, TARGET, lambda i: True)
    (HERE / "data/numba_forms.ptx").write_text("// SPDX-License-Identifier: Apache-2.0\n// Made by histogram_forms.py.\n" + text)
    if arguments.judge:
        for line, verdict in zip(lines, judge_forms.judge_ptxas(lines, VERSION, TARGET)):
            if verdict is not None:
                print(line, verdict, file=sys.stderr)


if __name__ == "__main__":
    main()
