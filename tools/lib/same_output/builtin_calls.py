# SPDX-License-Identifier: Apache-2.0
"""Calls of every row of builtins.def with many kinds of arguments."""
import re

IMPORTS = "import builtins, math, cmath, operator, time, numba\nimport numpy\nfrom numba import cuda, roc\n\n\n"
# An argument of keep() is translated; the value of a name that is never read is not.
HEAD = "@cuda.jit(device=True)\ndef keep(value, m):\n    m[0, 0] = 1\n\n\n@cuda.jit\ndef k(a, m, x, y, z):\n"
# (kind, element type, the arguments of calls in their order)
KINDS = [(dtype, dtype, ("x", "y", "z", "x")) for dtype in
         ("boolean", "int8", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32", "float64", "complex64", "complex128")]
KINDS += [(f"array of {dtype}", dtype, ("a", "0", "x", "y")) for dtype in ("int32", "uint64", "float32", "float64", "complex64")]
KINDS += [(f"matrix of {dtype}", dtype, ("m", "(0, 1)", "x", "y")) for dtype in ("int64", "float32")]
KINDS += [(f"mask, {dtype}", dtype, ("0xffff", "x", "y", "8")) for dtype in ("int32", "int64", "float32", "float64")]
KINDS += [("whole literals", "int32", ("1", "2", "3", "4")), ("real literals", "float32", ("0.5", "2.0", "-1.5", "0.25")),
          ("tuples", "int32", ("(x, y)", "(y, 1)", "(2.5, x)", "()")), ("shapes", "float32", ("(2, 3)", "'float32'", "x", "y")),
          ("mixed", "int32", ("x", "1.5", "a[0]", "True"))]
MOST_ARGUMENTS = 4
LINES = 40
ROW = re.compile(r'^QUERN_(BUILTIN|TYPED|CONSTANT)\("([^"]+)"(.*)$', re.M)
COUNTS = re.compile(r', (\d+), (\d+), "')


class Calls:
    """A kernel of one call a line."""

    def __init__(self, title, dtype, lines):
        self.title, self.lines, self.file = title, lines, None
        self.signature = f"({dtype}[::1], {dtype}[:, ::1], {dtype}, {dtype}, {dtype})"
        self.name = re.sub(r"\W+", "_", title)

    def write(self, directory):
        self.file = directory / f"{self.name}.py"
        self.file.write_text(IMPORTS + HEAD + "".join(f"    {line}\n" for line in self.lines))

    def remove_wrong(self, output):
        """Removes the lines that messages name; returns False if there are none."""
        offset = (IMPORTS + HEAD).count("\n") + 1
        wrong = {int(line) - offset for line in re.findall(rf"{self.name}\.py:(\d+):", output)} & set(range(len(self.lines)))
        if not wrong:
            return False
        self.lines = [line for number, line in enumerate(self.lines) if number not in wrong]
        return True


def counts_of(kind, rest):
    """How many arguments the row may take, within reason."""
    if kind == "CONSTANT":
        return []
    if match := COUNTS.search(rest):
        return range(int(match[1]), min(int(match[2]), MOST_ARGUMENTS) + 1)
    forms = re.findall(r"\(([^()]*)\)(?:;|\")", rest)
    return sorted({len([part for part in form.split(",") if part and ":" not in part]) for form in forms})


def calls(rows, arguments):
    for kind, path, rest in rows:
        if path.startswith("builtins."):
            path = path.removeprefix("builtins.")
        if kind == "CONSTANT":
            yield path
        for count in counts_of(kind, rest):
            if count <= MOST_ARGUMENTS:
                yield f"{path}({', '.join(arguments[:count])})"
        if kind == "BUILTIN" and COUNTS.search(rest)[1] == "0":
            yield path  # an attribute such as cuda.laneid


def kernels(frontend):
    file = next(frontend.rglob("builtins.def"))
    rows = ROW.findall(file.read_text())
    for kind, dtype, arguments in KINDS:
        lines = list(dict.fromkeys(calls(rows, arguments)))
        for statement in (False, True):
            for begin in range(0, len(lines), LINES):
                part = lines[begin:begin + LINES]
                part = part if statement else [f"keep({line}, m)" for line in part]
                yield Calls(f"built-ins, {kind}, {'statements' if statement else 'values'} {begin}", dtype, part)
