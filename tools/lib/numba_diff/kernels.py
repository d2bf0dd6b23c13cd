# SPDX-License-Identifier: Apache-2.0
"""Well-typed kernels to compare two compilers by. Kernel `number` of a seed is always the same, whatever is asked for beside it.

The first PAIRS kernels hold every operator over one pair of types each; those that follow are random: expressions, branches, loops,
tuples, device functions, shared and local arrays, views. All run in 2 blocks of 32 threads. Powers of integers stay below 2**53, beyond which Numba rounds them;
whole numbers are narrowed from int64, since what uint64 and int64 make together is a float64, and of one that does not fit nothing is said.
"""
import random

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"]
FLOATS = DTYPES[9:]
PAIRS = len(DTYPES) ** 2
COUNT, ROWS, COLUMNS, SLOTS = 64, 8, 9, 40
BLOCK = 32
HEADER = """import math
import numpy as np
from numba import cuda, boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64


"""
ARITHMETIC = ["+", "-", "*", "/", "//", "%"]
COMPARISONS = ["<", "<=", ">", ">=", "==", "!="]
NUMBA = {"bool": "boolean"}


class Kernel:
    """Source of one function, its name, the dtypes of a, b, c and m, and whether functions of libm take part."""

    def __init__(self, number, source, types, libm=False):
        self.number, self.name, self.source, self.types, self.libm = number, f"k{number}", source, types, libm

    def arguments(self):
        shapes = {"a": (COUNT,), "b": (COUNT,), "c": (COUNT,), "m": (ROWS, COLUMNS), "whole": (SLOTS, COUNT), "real": (SLOTS, COUNT)}
        types = dict(self.types, whole="int64", real="float64")
        return [(name, types[name], shape) for name, shape in shapes.items()]


def is_float(dtype):
    return dtype in FLOATS


def pair_kernel(number):
    """Every operator and two-argument function on a[i] and b[i]."""
    x, y = DTYPES[number // len(DTYPES)], DTYPES[number % len(DTYPES)]
    whole, real = [], []
    for op in ARITHMETIC:
        (real if op == "/" or is_float(x) or is_float(y) else whole).append(f"x {op} y")
    (real if is_float(x) or is_float(y) else whole).extend(["x if x < y else y", "x and y", "x or y"])
    if "bool" not in (x, y):
        (real if is_float(x) or is_float(y) else whole).extend(["min(x, y)", "max(x, y)"])
    whole += [f"x {op} y" for op in COMPARISONS] + ["not x", "x < y < 3", "(x > 0) + (y > 0)"]
    if not is_float(x) and not is_float(y):
        whole += ["x & y", "x | y", "x ^ y", "x << (y & 31)", "x >> (y & 31)", "(x & 255) ** (y & 3)", "(x & 65535) ** 2"]
    else:
        real += ["x ** 2"]
    (real if is_float(x) else whole).extend(["-x", "+x", "abs(x)"])
    if not is_float(x):
        whole += ["~x"] if x != "bool" else []
    else:
        real += ["math.floor(x)", "math.ceil(x)", "math.sqrt(abs(x))", "math.copysign(x, y)", "math.fmod(x, y)"]
    (real if is_float(y) else whole).append(f"{NUMBA.get(y, y)}(x)" if not (is_float(x) and y in ("int8", "uint8", "int16", "uint16", "uint32", "uint64"))
                                            else f"{y}(7)")
    lines = [f"        whole[{k}, i] = {text}" for k, text in enumerate(whole)] + [f"        real[{k}, i] = {text}" for k, text in enumerate(real)]
    assert len(whole) <= SLOTS and len(real) <= SLOTS
    body = "\n".join(lines)
    source = (f"@cuda.jit\ndef k{number}(a, b, c, m, whole, real):\n    i = cuda.grid(1)\n    if i < {COUNT}:\n"
              f"        x = a[i]\n        y = b[i]\n{body}\n\n\n")
    return Kernel(number, source, {"a": x, "b": y, "c": "int32", "m": "float32"})


class Generator:
    """Names of whole numbers begin with w, of reals with r: operators on bits take the former only."""

    def __init__(self, number, seed):
        self.random = random.Random(f"{seed}:{number}")
        self.number = number
        self.types = {n: self.random.choice(DTYPES) for n in "abcm"}
        self.libm = False
        self.wholes, self.reals, self.device = [], [], []
        self.lines, self.indent, self.counter = [], 1, 0
        self.loop_depth = 0

    def pick(self, *choices):
        return self.random.choice(choices)

    def chance(self, probability):
        return self.random.random() < probability

    def element(self, floating):
        names = [n for n, t in self.types.items() if is_float(t) == floating]
        if not names:
            return None
        name = self.random.choice(names)
        if name == "m":
            return self.pick("m[i % 8, 3]", "m[-1, i % 9]", "m[i // 8][-2]", "m[i % 8, (i + 1) % 9]")
        return self.pick(f"{name}[i]", f"{name}[i]", f"{name}[-i - 1]", f"{name}[(i * 7 + 3) % {COUNT}]")

    def whole_leaf(self):
        found = self.element(False) if self.chance(0.6) else None
        if found:
            return found
        if self.wholes and self.chance(0.7):
            return self.random.choice(self.wholes)
        return self.pick("0", "1", "2", "3", "7", "100", "65536", "-5", "t", "i", "len(a)", "m.shape[1]", "int32(9)", "uint8(200)", "True")

    def real_leaf(self):
        found = self.element(True) if self.chance(0.6) else None
        if found:
            return found
        if self.reals and self.chance(0.7):
            return self.random.choice(self.reals)
        return self.pick("0.0", "1.0", "2.5", "-0.125", "float32(3)", "1e10", "100.0", "float32(0.1)")

    def whole(self, depth):
        if depth <= 0:
            return self.whole_leaf()
        w = lambda: self.whole(depth - 1 - self.random.randrange(2))
        kind = self.random.randrange(12)
        if kind < 4:
            return f"({w()} {self.pick('+', '-', '*', '//', '%')} {w()})"
        if kind == 4:
            return f"({w()} {self.pick('&', '|', '^')} {w()})"
        if kind == 5:
            return f"({w()} {self.pick('<<', '>>')} ({w()} & {self.pick(7, 15, 31)}))"
        if kind == 6:
            return f"({w()} if {self.condition(depth - 1)} else {w()})"
        if kind == 7:
            return f"{self.pick('min', 'max')}({w()} + 0, {w()} * 1)"  # Numba has none of bools
        if kind == 8:
            return f"{self.pick('-', '+', 'abs', '~')}({w()})"
        if kind == 9:
            return self.pick(f"({w()} and {w()})", f"({w()} or {w()})", f"({self.condition(depth - 1)}) + {w()}", f"({w()} & 65535) ** 2")
        if kind == 10:
            return self.pick(*(f"{name}(int64({w()}))" for name in ("int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64")), f"int64({w()})", f"int({w()})", f"bool({w()})")
        return self.pick(f"cuda.popc(uint32(int64({w()})))", f"cuda.clz(int32(int64({w()})))", f"cuda.brev(uint32(int64({w()})))", f"int(min(max({self.real(depth - 1)}, -1000.0), 1000.0))")

    def real(self, depth):
        if depth <= 0:
            return self.real_leaf()
        r = lambda: self.real(depth - 1 - self.random.randrange(2))
        w = lambda: self.whole(depth - 1)
        kind = self.random.randrange(12)
        if kind < 6:
            left, right = (w, r) if kind == 5 else (r, w) if kind == 4 else (r, r)
            op = self.random.choice(ARITHMETIC)
            # NVVM computes the exact remainder of numbers known at compile time, but for others the one by a rounded quotient.
            dividend = f"({left()} + float32(t) * float32(0))" if op in ("//", "%") else left()
            return f"({dividend} {op} {right()})"
        if kind == 6:
            return f"({r()} if {self.condition(depth - 1)} else {r()})"
        if kind == 7:
            return f"{self.pick('min', 'max')}({r()}, {r()})"
        if kind == 8:
            return f"{self.pick('-', '+', 'abs', 'math.fabs', 'math.floor', 'math.ceil')}({r()})"
        if kind == 9:
            return self.pick(f"math.sqrt(abs({r()}))", f"math.copysign({r()}, {r()})", f"math.fmod({r()}, {r()})", f"({r()}) ** 2", f"({w()} / {w()})")
        if kind == 10:
            return f"{self.pick('float32', 'float64', 'float')}({self.pick(r, w)()})"
        return f"({r()} {self.pick('and', 'or')} {r()})"

    def condition(self, depth):
        if depth > 0 and self.chance(0.3):
            return f"({self.condition(depth - 1)} {self.pick('and', 'or')} {self.condition(depth - 1)})"
        if self.chance(0.1):
            return f"not ({self.condition(depth - 1)})"
        if self.chance(0.1):
            return f"{self.whole(0)} in (0, 2, 7)"
        side = lambda: (self.real if self.chance(0.4) else self.whole)(depth - 1)
        chain = f" {self.random.choice(COMPARISONS)} {side()}" if self.chance(0.2) else ""
        return f"{side()} {self.random.choice(COMPARISONS)} {side()}{chain}"

    # Statements.
    def line(self, text):
        self.lines.append("    " * self.indent + text)

    def fresh(self, prefix):
        self.counter += 1
        return f"{prefix}{self.counter}"

    def value(self, depth=2):
        """A new or known name and an expression for it."""
        whole = self.chance(0.5)
        return (self.random.choice(self.wholes), self.whole(depth)) if whole else (self.random.choice(self.reals), self.real(depth))

    def block(self, budget):
        known = len(self.wholes), len(self.reals)
        self.indent += 1
        for _ in range(self.random.randint(1, 2)):
            self.statement(budget - 1)
        self.indent -= 1
        del self.wholes[known[0]:], self.reals[known[1]:]  # names that only this path binds

    def statement(self, budget):
        kinds = [self.assign, self.assign, self.augment, self.swap]
        if budget > 0:
            kinds += [self.branch, self.branch, self.range_loop, self.while_loop, self.array_loop]
        if self.loop_depth and budget >= 0:
            kinds += [self.leave_loop]
        if self.device:
            kinds += [self.call]
        self.random.choice(kinds)(budget)

    def assign(self, _):
        self.line("{} = {}".format(*self.value(self.random.randint(1, 3))))

    def augment(self, _):
        if self.chance(0.5):
            self.line(f"{self.random.choice(self.wholes)} {self.pick('+=', '-=', '*=', '^=', '&=', '|=', '//=', '%=')} {self.whole(1)}")
        else:
            self.line(f"{self.random.choice(self.reals)} {self.pick('+=', '-=', '*=', '/=')} {self.real(1)}")

    def swap(self, _):
        names = self.wholes if self.chance(0.5) else self.reals
        x, y = self.random.choice(names), self.random.choice(names)
        self.line(f"{x}, {y} = {y}, {x}" if x != y else f"{x} = {x}")

    def call(self, _):
        self.line(f"{self.random.choice(self.wholes)}, {self.random.choice(self.reals)} = {self.random.choice(self.device)}({self.whole(1)}, {self.real(1)})")

    def branch(self, budget):
        self.line(f"if {self.condition(2)}:")
        self.block(budget)
        if self.chance(0.3):
            self.line(f"elif {self.condition(1)}:")
            self.block(budget)
        if self.chance(0.6):
            self.line("else:")
            self.block(budget)

    def loop(self, head, budget, otherwise=True):
        self.line(head)
        self.loop_depth += 1
        self.block(budget)
        self.loop_depth -= 1
        if otherwise and self.chance(0.2):
            self.line("else:")
            self.block(budget - 1)

    def range_loop(self, budget):
        name = self.fresh("w_")
        bounds = self.pick("4", "1, 6", "7, 0, -2", "i % 5", "0, len(a), 23", "t % 3, 5")
        self.wholes.append(name)
        self.line(f"{name} = 0")
        self.loop(f"for {name} in range({bounds}):", budget)

    def while_loop(self, budget):
        name = self.fresh("n_")
        self.line(f"{name} = 0")
        self.line(f"while {name} < {self.pick(3, 5)}{self.pick('', ' and ' + self.condition(1))}:")
        self.indent += 1
        self.line(f"{name} += 1")
        self.indent -= 1
        self.loop_depth += 1
        self.block(budget)
        self.loop_depth -= 1

    def array_loop(self, budget):
        name = self.random.choice("abc")
        floating = is_float(self.types[name])
        variable = self.fresh("r_" if floating else "w_")
        place = self.fresh("w_")
        self.line(f"{variable} = {name}[0]")
        self.line(f"{place} = 0")
        views = [f"{name}[{cut}]" for cut in (":4", "i % 60:i % 60 + 3", "::20", "-3:", "5:1:-2")]
        view = self.random.choice(views)
        head = self.pick(f"for {variable} in {view}:", f"for {place}, {variable} in enumerate({view}):", f"for {variable}, {place} in zip({view}, (3, 1, 2)):")
        (self.reals if floating else self.wholes).append(variable)
        self.wholes.append(place)
        self.loop(head, budget)

    def leave_loop(self, _):
        self.line(f"if {self.condition(1)}:")
        self.indent += 1
        self.line(self.pick("break", "continue"))
        self.indent -= 1

    def exchange(self):
        """Through shared memory, to the neighbour and back from the whole block."""
        dtype = self.random.choice(DTYPES[1:])
        name = self.fresh("shared_")
        self.line(f"{name} = cuda.shared.array({BLOCK}, {dtype})")
        self.line(f"{name}[t] = {self.random.choice(self.reals) if is_float(dtype) else f'int64({self.random.choice(self.wholes)})'}")
        self.line("cuda.syncthreads()")
        target = self.random.choice(self.reals if is_float(dtype) else self.wholes)
        self.line(f"{target} = {name}[{self.pick(f'(t + 5) % {BLOCK}', f'{BLOCK} - 1 - t', 't ^ 3', '-1 - t')}]")
        self.line("cuda.syncthreads()")

    def own_array(self):
        dtype = self.random.choice(DTYPES[1:])
        name, k = self.fresh("own_"), self.fresh("n_")
        source = self.reals if is_float(dtype) else self.wholes
        self.line(f"{name} = cuda.local.array((2, 3), {dtype})")
        self.line(f"for {k} in range(6):")
        value = self.random.choice(source)
        self.line(f"    {name}[{k} // 3, {k} % 3] = {value if is_float(dtype) else f'int64({value})'}")
        self.line(f"{self.random.choice(source)} = {name}[1, i % 3] + {name}[0, -1]")

    def device_function(self):
        inner = Generator(self.number, f"{self.random.random()}")
        inner.types, inner.wholes, inner.reals = {}, ["x", "t"], ["y"]
        inner.element = lambda floating: None
        leaf = inner.whole_leaf
        inner.whole_leaf = lambda: next(text for text in iter(leaf, None) if text not in ("i", "len(a)", "m.shape[1]"))
        name = f"d{self.number}_{len(self.device)}"
        text = (f"@cuda.jit(device=True)\ndef {name}(x, y):\n    t = cuda.threadIdx.x\n    if {inner.condition(2)}:\n"
                f"        return {inner.whole(2)}, {inner.real(2)}\n    return {inner.whole(1)}, {inner.real(1)}\n\n\n")
        self.device.append(name)
        return text

    def kernel(self):
        functions = "".join(self.device_function() for _ in range(self.random.randrange(3)) if self.chance(0.5))
        self.line("i = cuda.grid(1)")
        self.line("t = cuda.threadIdx.x")
        for k in range(3):
            self.line(f"w{k} = {self.whole(k)}")
            self.line(f"r{k} = {self.real(k)}")
            self.wholes.append(f"w{k}")
            self.reals.append(f"r{k}")
        for _ in range(self.random.randint(1, 4)):
            self.random.choice([self.statement] * 4 + [lambda _: self.exchange(), lambda _: self.own_array()])(2)
        for names, out in ((self.wholes, "whole"), (self.reals, "real")):
            for slot, name in enumerate(names[:SLOTS]):
                self.line(f"{out}[{slot}, i] = {name}")
        if self.chance(0.15):
            self.libm = True
            for k in range(3):
                function = self.pick("sin", "cos", "exp", "log", "atan", "tanh", "erf", "log1p", "expm1")
                self.line(f"real[{SLOTS - 1 - k}, i] = math.{function}({self.pick(f'r{k}', f'float32(r{k})', f'w{k}')})")
        source = f"{functions}@cuda.jit\ndef k{self.number}(a, b, c, m, whole, real):\n" + "\n".join(self.lines) + "\n\n\n"
        return Kernel(self.number, source, self.types, self.libm)


def kernel(number, seed):
    return pair_kernel(number) if number < PAIRS else Generator(number, seed).kernel()
