#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same LLVM IR in two ways: compiled by LLVM's x86 back end for the processor, and by its NVPTX back end as PTX for
a CUDA driver (quern's CPU device). Every bit must agree, NaNs as NaNs.

  nvptx.py --driver LIBCUDA [--llc llc-19] [--functions N] [--first SEED] [--show SEED]

What is generated has one meaning in LLVM: shift amounts are masked, divisors made safe, conversions saturate, and nothing is
fused. The generator and both back ends know nothing of quern. Status 77: there is no llc.
"""
import argparse
import ctypes
import math
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/lib"))
import cuda_driver  # noqa: E402

SKIPPED = 77
THREADS = 96  # a block of which is no whole number of warps: see BLOCK
BLOCK = 48
WORDS_IN, WORDS_OUT = 8, 12

INTEGERS = [0, 1, 2, 3, 7, 31, 32, 63, 64, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31, 2**32 - 1, 2**32,
            2**63 - 1, 2**63, 2**64 - 1, 2**64 - 2, 0x0123456789ABCDEF, 0xDEADBEEFCAFEF00D]
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, 1e-310, 5e-324, 1e308, float("inf"), float("-inf"), float("nan"), 2.0**31,
           2.0**63, -(2.0**31) - 1, 3.4028236e38, 65504.0, 65520.0, 1e-8, 123456.789, 2.0**24 + 1, 0.1]


class Function:
    """One random function `void @f(ptr %in, ptr %out)`: eight 64-bit words in, twelve out."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.count, self.labels = [], 0, 0
        self.values = {}  # by type: names that hold in the current block
        self.block = "entry"

    def new(self):
        self.count += 1
        return f"%v{self.count}"

    def emit(self, kind, text):
        name = self.new()
        self.lines.append(f"  {name} = {text}")
        self.values.setdefault(kind, []).append(name)
        return name

    def hidden(self, text):
        """A value that no later statement may pick."""
        name = self.new()
        self.lines.append(f"  {name} = {text}")
        return name

    def constant(self, kind):
        if kind[0] == "i":
            width = int(kind[1:])
            value = self.random.choice(INTEGERS) % 2**width
            return str(value - 2**width if value >= 2 ** (width - 1) and width > 1 else value) if width > 1 else self.random.choice(["true", "false"])
        value = self.random.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1.5, 65504.0, 2.0**31, -(2.0**63)])
        if kind == "half":
            value = self.random.choice([0.0, 1.0, -2.5, 0.5, 65504.0])
        return "0x" + struct.pack(">d", value).hex().upper() if kind != "half" else "0xH" + struct.pack(">e", value).hex().upper()

    def pick(self, kind):
        known = self.values.get(kind, [])
        return self.random.choice(known[-12:]) if known and self.random.random() < 0.85 else self.constant(kind)

    # ---- statements

    def integer(self):
        r, kind = self.random, self.random.choice(["i8", "i16", "i32", "i32", "i32", "i64", "i64"])
        width = int(kind[1:])
        a, b = self.pick(kind), self.pick(kind)
        what = r.randrange(8)
        if what < 3:
            self.emit(kind, f"{r.choice(['add', 'sub', 'mul', 'and', 'or', 'xor'])} {kind} {a}, {b}")
        elif what == 3:
            amount = self.hidden(f"and {kind} {b}, {width - 1}")
            self.emit(kind, f"{r.choice(['shl', 'lshr', 'ashr'])} {kind} {a}, {amount}")
        elif what == 4:  # a divisor that is neither 0 nor -1
            small = self.hidden(f"and {kind} {b}, {min(2 ** (width - 1) - 1, 1023)}")
            divisor = self.hidden(f"or {kind} {small}, 1")
            self.emit(kind, f"{r.choice(['udiv', 'sdiv', 'urem', 'srem'])} {kind} {a}, {divisor}")
        elif what == 5:
            name = r.choice(["ctpop", "bitreverse"] + (["bswap"] if width > 8 else []))
            self.emit(kind, f"call {kind} @llvm.{name}.{kind}({kind} {a})")
        elif what == 6:
            name = r.choice(["ctlz", "cttz"])
            self.emit(kind, f"call {kind} @llvm.{name}.{kind}({kind} {a}, i1 false)")
        else:
            name = r.choice(["umin", "umax", "smin", "smax", "sadd.sat", "uadd.sat", "ssub.sat", "usub.sat"])
            self.emit(kind, f"call {kind} @llvm.{name}.{kind}({kind} {a}, {kind} {b})")

    def funnel(self):
        kind = self.random.choice(["i32", "i64"])
        self.emit(kind, f"call {kind} @llvm.{self.random.choice(['fshl', 'fshr'])}.{kind}({kind} {self.pick(kind)}, {kind} {self.pick(kind)}, "
                        f"{kind} {self.pick(kind)})")

    def wide_product(self):
        sign = self.random.choice(["zext", "sext"])
        a = self.hidden(f"{sign} i64 {self.pick('i64')} to i128")
        b = self.hidden(f"{sign} i64 {self.pick('i64')} to i128")
        product = self.hidden(f"mul i128 {a}, {b}")
        high = self.hidden(f"lshr i128 {product}, 64")
        self.emit("i64", f"trunc i128 {high} to i64")

    def overflow(self):
        kind = self.random.choice(["i32", "i64"])
        name = self.random.choice(["uadd", "usub", "sadd", "ssub", "umul"])
        pair = self.hidden(f"call {{{kind}, i1}} @llvm.{name}.with.overflow.{kind}({kind} {self.pick(kind)}, {kind} {self.pick(kind)})")
        self.emit(kind, f"extractvalue {{{kind}, i1}} {pair}, 0")
        self.emit("i1", f"extractvalue {{{kind}, i1}} {pair}, 1")

    def compare(self):
        r = self.random
        if r.random() < 0.6:
            kind = r.choice(["i8", "i16", "i32", "i64"])
            how = r.choice(["eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"])
            self.emit("i1", f"icmp {how} {kind} {self.pick(kind)}, {self.pick(kind)}")
        else:
            kind = r.choice(["float", "double", "half"])
            how = r.choice(["oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"])
            self.emit("i1", f"fcmp {how} {kind} {self.pick(kind)}, {self.pick(kind)}")

    def select(self):
        kind = self.random.choice(["i8", "i16", "i32", "i64", "float", "double"])
        self.emit(kind, f"select i1 {self.pick('i1')}, {kind} {self.pick(kind)}, {kind} {self.pick(kind)}")

    def real(self):
        r, kind = self.random, self.random.choice(["float", "float", "double", "half"])
        suffix = {"float": "f32", "double": "f64", "half": "f16"}[kind]
        what = r.randrange(6)
        if what < 3 or kind == "half" and what < 5:
            operations = ["fadd", "fsub", "fmul"] + (["fdiv"] if kind != "half" else [])
            self.emit(kind, f"{r.choice(operations)} {kind} {self.pick(kind)}, {self.pick(kind)}")
        elif what == 3:
            self.emit(kind, f"call {kind} @llvm.fma.{suffix}({kind} {self.pick(kind)}, {kind} {self.pick(kind)}, {kind} {self.pick(kind)})")
        elif what == 4:
            name = r.choice(["sqrt", "fabs", "floor", "ceil", "trunc", "rint"])
            self.emit(kind, f"call {kind} @llvm.{name}.{suffix}({kind} {self.pick(kind)})")
        else:
            self.emit(kind, f"fneg {kind} {self.pick(kind)}")

    def convert(self):
        r = self.random
        what = r.randrange(7)
        if what == 0:
            a, b = sorted(r.sample([8, 16, 32, 64], 2))
            self.emit(f"i{b}", f"{r.choice(['zext', 'sext'])} i{a} {self.pick(f'i{a}')} to i{b}")
        elif what == 1:
            a, b = sorted(r.sample([8, 16, 32, 64], 2))
            self.emit(f"i{a}", f"trunc i{b} {self.pick(f'i{b}')} to i{a}")
        elif what == 2:
            a, b = r.choice([("float", "double"), ("half", "float"), ("half", "double")])
            self.emit(b, f"fpext {a} {self.pick(a)} to {b}")
        elif what == 3:
            a, b = r.choice([("double", "float"), ("float", "half")])
            self.emit(b, f"fptrunc {a} {self.pick(a)} to {b}")
        elif what == 4:
            a, b = r.choice(["i16", "i32", "i64"]), r.choice(["float", "double"])
            self.emit(b, f"{r.choice(['sitofp', 'uitofp'])} {a} {self.pick(a)} to {b}")
        elif what == 5:
            a, b = r.choice([("float", "f32"), ("double", "f64")]), r.choice(["i32", "i64"])
            self.emit(b, f"call {b} @llvm.{r.choice(['fptosi', 'fptoui'])}.sat.{b}.{a[1]}({a[0]} {self.pick(a[0])})")
        else:  # the bits of integers as numbers; not the other way, for NaN's sake
            a, b = r.choice([("i32", "float"), ("i64", "double"), ("i16", "half")])
            self.emit(b, f"bitcast {a} {self.pick(a)} to {b}")

    def vector(self):
        r = self.random
        kind, count = r.choice([("i32", 4), ("i16", 2), ("i8", 4), ("i64", 2), ("float", 4), ("float", 2)])
        vector = f"<{count} x {kind}>"
        made = []
        for _ in range(2):
            value = "poison"
            for i in range(count):
                value = self.hidden(f"insertelement {vector} {value}, {kind} {self.pick(kind)}, i32 {i}")
            made.append(value)
        operation = r.choice(["fadd", "fmul", "fsub"] if kind == "float" else ["add", "sub", "mul", "xor", "and"])
        result = self.hidden(f"{operation} {vector} {made[0]}, {made[1]}")
        if r.random() < 0.5:
            mask = ", ".join(f"i32 {r.randrange(2 * count)}" for _ in range(count))
            result = self.hidden(f"shufflevector {vector} {result}, {vector} {made[0]}, <{count} x i32> <{mask}>")
        for i in range(count):
            self.emit(kind, f"extractelement {vector} {result}, i32 {i}")

    def memory(self):
        kind = self.random.choice(["i32", "i64", "i8"])
        place = self.hidden(f"and i32 {self.pick('i32')}, 7")
        slot = self.hidden(f"getelementptr [8 x i64], ptr %stack, i32 0, i32 {place}")
        self.lines.append(f"  store {kind} {self.pick(kind)}, ptr {slot}")
        place = self.hidden(f"and i32 {self.pick('i32')}, 7")
        slot = self.hidden(f"getelementptr [8 x i64], ptr %stack, i32 0, i32 {place}")
        self.emit("i64", f"load i64, ptr {slot}")

    def table(self):
        place = self.hidden(f"and i32 {self.pick('i32')}, 15")
        slot = self.hidden(f"getelementptr [16 x i32], ptr @table, i32 0, i32 {place}")
        self.emit("i32", f"load i32, ptr {slot}")

    def call(self):
        what = self.random.randrange(3)
        if what == 0:
            self.emit("i32", f"call i32 @mix(i32 {self.pick('i32')}, i64 {self.pick('i64')}, i16 {self.pick('i16')})")
        elif what == 1:
            pair = self.hidden(f"call {{i64, double}} @both(i64 {self.pick('i64')}, double {self.pick('double')})")
            self.emit("i64", f"extractvalue {{i64, double}} {pair}, 0")
            self.emit("double", f"extractvalue {{i64, double}} {pair}, 1")
        else:
            self.emit("i64", f"call i64 @steps(i64 {self.pick('i64')})")

    # ---- control flow: what is made inside comes out through phis

    def inside(self, depth):
        """Statements in a block of their own; gives back what is known at its end."""
        saved = {kind: list(names) for kind, names in self.values.items()}
        for _ in range(self.random.randint(1, 4)):
            self.statement(depth + 1)
        made, self.values = self.values, saved
        return made

    def start(self, label):
        self.lines.append(f"{label}:")
        self.block = label

    def new_label(self):
        self.labels += 1
        return f"L{self.labels}"

    def join(self, sides):
        """Phis over (known values, block) of each side."""
        for kind in self.random.sample(["i32", "i64", "float", "double", "i1", "i16"], 3):
            incoming = []
            for made, block in sides:
                names = made.get(kind)
                incoming.append(f"[ {names[-1] if names else self.constant(kind)}, %{block} ]")
            self.emit(kind, f"phi {kind} {', '.join(incoming)}")

    def branch(self, depth):
        condition, then, other, end = self.pick("i1"), self.new_label(), self.new_label(), self.new_label()
        self.lines.append(f"  br i1 {condition}, label %{then}, label %{other}")
        sides = []
        for label in (then, other):
            self.start(label)
            made = self.inside(depth)
            sides.append((made, self.block))
            self.lines.append(f"  br label %{end}")
        self.start(end)
        self.join(sides)

    def switch(self, depth):
        ways, end = [self.new_label() for _ in range(self.random.randint(3, 6))], self.new_label()
        on = self.hidden(f"and i32 {self.pick('i32')}, 7")
        cases = " ".join(f"i32 {i}, label %{way}" for i, way in enumerate(ways[1:]))
        self.lines.append(f"  switch i32 {on}, label %{ways[0]} [ {cases} ]")
        sides = []
        for way in ways:
            self.start(way)
            made = self.inside(depth)
            sides.append((made, self.block))
            self.lines.append(f"  br label %{end}")
        self.start(end)
        self.join(sides)

    def loop(self, depth):
        head, end, before = self.new_label(), self.new_label(), self.block
        limit = self.hidden(f"and i32 {self.pick('i32')}, 7")
        start = {"i32": self.pick("i32"), "i64": self.pick("i64"), "float": self.pick("float")}
        self.lines.append(f"  br label %{head}")
        self.start(head)
        saved = {kind: list(names) for kind, names in self.values.items()}
        counter, phis, at = self.new(), {}, len(self.lines)
        for kind in start:
            phis[kind] = self.new()
            self.values.setdefault(kind, []).append(phis[kind])
        self.values["i32"].append(counter)
        for _ in range(self.random.randint(2, 5)):
            self.statement(depth + 1)
        next_values = {kind: self.values[kind][-1] for kind in start}
        following = self.hidden(f"add i32 {counter}, 1")
        done = self.hidden(f"icmp ugt i32 {following}, {limit}")
        self.lines.append(f"  br i1 {done}, label %{end}, label %{head}")
        last = self.block
        heads = [f"  {counter} = phi i32 [ 0, %{before} ], [ {following}, %{last} ]"]
        heads += [f"  {phis[kind]} = phi {kind} [ {start[kind]}, %{before} ], [ {next_values[kind]}, %{last} ]" for kind in start]
        self.lines[at:at] = heads
        self.start(end)
        self.values = saved
        for kind in start:
            self.values.setdefault(kind, []).append(next_values[kind])

    def statement(self, depth=0):
        plain = [self.integer] * 6 + [self.real] * 4 + [self.convert] * 4 + [self.compare] * 2 + [self.select] * 2
        plain += [self.funnel, self.wide_product, self.overflow, self.vector, self.memory, self.table, self.call]
        nested = [self.branch, self.switch, self.loop]
        if depth < 2 and self.random.random() < 0.15:
            self.random.choice(nested)(depth)
        else:
            self.random.choice(plain)()

    def write(self, name):
        kinds = ["i64", "i64", "i64", "i64", "double", "double", "float", "i32"]
        self.lines = ["entry:", "  %stack = alloca [8 x i64], align 8"]
        for i in range(8):
            slot = self.hidden(f"getelementptr [8 x i64], ptr %stack, i32 0, i32 {i}")
            self.lines.append(f"  store i64 {i * 0x0101010101}, ptr {slot}")
        for i, kind in enumerate(kinds):
            slot = self.hidden(f"getelementptr i64, ptr %in, i32 {i}")
            self.emit(kind, f"load {kind}, ptr {slot}")
        for kind in ("i8", "i16", "i32"):
            self.emit(kind, f"trunc i64 {self.values['i64'][int(kind[1:]) // 16]} to {kind}")
        self.emit("half", f"fptrunc float {self.values['float'][0]} to half")
        self.emit("i1", f"icmp slt i64 {self.values['i64'][0]}, {self.values['i64'][1]}")
        for _ in range(self.random.randint(8, 24)):
            self.statement()
        for i, kind in enumerate(["i64", "i64", "i64", "i32", "i32", "i32", "i16", "i8", "double", "double", "float", "float"]):
            slot = self.hidden(f"getelementptr i64, ptr %out, i32 {i}")
            value = self.values[kind][-1 - self.random.randrange(min(2, len(self.values[kind])))]
            if kind[0] == "i" and kind != "i64":
                value, kind = self.hidden(f"zext {kind} {value} to i64"), "i64"
            self.lines.append(f"  store {kind} {value}, ptr {slot}")
        self.lines.append("  ret void")
        return f"define internal void @{name}(ptr %in, ptr %out) {{\n" + "\n".join(self.lines) + "\n}\n"


HELPERS = """
@table = internal constant [16 x i32] [i32 0, i32 1, i32 -1, i32 -2147483648, i32 2147483647, i32 65535, i32 32768, i32 255, i32 128, i32 31,
  i32 32, i32 -559038737, i32 16843009, i32 1000003, i32 -268435456, i32 252645135]
define internal i32 @mix(i32 %a, i64 %b, i16 %c) noinline {
  %low = trunc i64 %b to i32
  %wide = sext i16 %c to i32
  %x = xor i32 %a, %low
  %y = mul i32 %x, 668265261
  %z = add i32 %y, %wide
  ret i32 %z
}
define internal {i64, double} @both(i64 %a, double %b) noinline {
  %n = sub i64 0, %a
  %h = fmul double %b, 0.5
  %p = insertvalue {i64, double} poison, i64 %n, 0
  %q = insertvalue {i64, double} %p, double %h, 1
  ret {i64, double} %q
}
define internal i64 @steps(i64 %a) noinline {
entry:
  br label %head
head:
  %x = phi i64 [ %a, %entry ], [ %y, %head ]
  %n = phi i64 [ 0, %entry ], [ %m, %head ]
  %y = lshr i64 %x, 3
  %b = and i64 %x, 5
  %m = add i64 %n, %b
  %go = icmp ugt i64 %y, 20
  br i1 %go, label %head, label %end
end:
  ret i64 %m
}
"""
PLACE = """  %o{0} = mul i64 {1}, {2}
  %p{0} = getelementptr i64, ptr %{0}, i64 %o{0}
"""
NATIVE = """define void @run_{name}(ptr %in, ptr %out, i64 %n) {{
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %j, %head ]
{places}  call void @{name}(ptr %pin, ptr %pout)
  %j = add i64 %i, 1
  %go = icmp ult i64 %j, %n
  br i1 %go, label %head, label %end
end:
  ret void
}}
"""
DEVICE = """define void @run_{name}(ptr %in, ptr %out) {{
  %t = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %b = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %w = mul i32 %b, {block}
  %k = add i32 %w, %t
  %i = zext i32 %k to i64
{places}  call void @{name}(ptr %pin, ptr %pout)
  ret void
}}
"""


def both_modules(seeds):
    names = {seed: f"f{seed}" for seed in seeds}
    body = HELPERS + "".join(Function(seed).write(name) for seed, name in names.items())
    places = PLACE.format("in", "%i", WORDS_IN) + PLACE.format("out", "%i", WORDS_OUT)
    native = 'target triple = "x86_64-unknown-linux-gnu"\n' + body
    device = 'target triple = "nvptx64-nvidia-cuda"\n' + body
    kernels = []
    for number, name in enumerate(names.values()):
        native += NATIVE.format(name=name, places=places)
        device += DEVICE.format(name=name, places=places, block=BLOCK)
        kernels.append(f"!{number}")
    device += "declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()\ndeclare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()\n"
    device += f"!nvvm.annotations = !{{{', '.join(kernels)}}}\n"
    device += "".join(f'!{number} = !{{ptr @run_{name}, !"kernel", i32 1}}\n' for number, name in enumerate(names.values()))
    return names, native, device


def inputs(seed):
    r = random.Random(seed)
    data = b""
    for _ in range(THREADS):
        for word in range(WORDS_IN):
            if word in (4, 5):
                data += struct.pack("<d", r.choice(DOUBLES)) if r.random() < 0.7 else struct.pack("<Q", r.getrandbits(64))
            elif word == 6:
                value = r.choice(DOUBLES)
                data += struct.pack("<f", value if abs(value) < 3.4e38 or math.isinf(value) or value != value else 3.0e38) + b"\0\0\0\0"
            else:
                data += struct.pack("<Q", r.choice(INTEGERS) if r.random() < 0.6 else r.getrandbits(64))
    return data


def run_llc(llc, folder, name, text, arguments):
    source = folder / f"{name}.ll"
    source.write_text(text)
    target = folder / f"{name}.out"
    done = subprocess.run([llc, "-O2", "-o", str(target), str(source), *arguments], text=True, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(f"{llc} refuses what was generated for {name}:\n{done.stderr[:3000]}")
    return target


def native_results(llc, folder, text, names, data):
    compiled = run_llc(llc, folder, "native", text, ["-filetype=obj", "-relocation-model=pic", "-fp-contract=off"])
    library = folder / f"native-{min(names)}.so"  # of its own: the loader takes a name that it has loaded for the same library
    subprocess.run(["cc", "-shared", "-o", str(library), str(compiled), "-lm"], check=True)
    loaded = ctypes.CDLL(str(library))
    results = {}
    for seed, name in names.items():
        out = ctypes.create_string_buffer(THREADS * WORDS_OUT * 8)
        getattr(loaded, f"run_{name}")(data[seed], out, ctypes.c_uint64(THREADS))
        results[seed] = out.raw
    return results


def device_results(llc, folder, text, names, data, driver, target):
    compiled = run_llc(llc, folder, "device", text, [f"-mcpu={target}", "-mattr=+ptx83", "-fp-contract=off", "-nvptx-fma-level=0"])
    module = driver.load(compiled.read_text())
    results = {}
    for seed, name in names.items():
        given, got = driver.upload(data[seed]), driver.upload(bytes(THREADS * WORDS_OUT * 8))
        arguments = [ctypes.c_uint64(given), ctypes.c_uint64(got)]
        module.function(f"run_{name}").launch((THREADS // BLOCK, 1, 1), (BLOCK, 1, 1), arguments)
        results[seed] = driver.download(got, THREADS * WORDS_OUT * 8)
        driver.free(given)
        driver.free(got)
    module.unload()
    return results


def first_difference(expected, got):
    for at in range(0, len(expected), 8):
        a, b = expected[at:at + 8], got[at:at + 8]
        word = at // 8 % WORDS_OUT
        if a == b:
            continue
        form = "<d" if word in (8, 9) else "<f" if word in (10, 11) else None
        if form and math.isnan(struct.unpack_from(form, a)[0]) and math.isnan(struct.unpack_from(form, b)[0]):
            continue
        return f"element {at // 8 // WORDS_OUT}, word {word}: x86 has {a[::-1].hex()}, the device {b[::-1].hex()}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", default="libcuda.so.1")
    parser.add_argument("--llc", default="llc-19")
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--functions", type=int, default=120)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--show", type=int)
    arguments = parser.parse_args()
    if arguments.show is not None:
        print(both_modules([arguments.show])[2])
        return 0
    if shutil.which(arguments.llc) is None:
        print(f"SKIPPED: there is no {arguments.llc} (the package llvm-19)")
        return SKIPPED
    driver = cuda_driver.Driver(arguments.driver)
    failed = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for begin in range(arguments.first, arguments.first + arguments.functions, 40):
            seeds = range(begin, min(begin + 40, arguments.first + arguments.functions))
            names, native, device = both_modules(seeds)
            data = {seed: inputs(seed) for seed in seeds}
            expected = native_results(arguments.llc, folder, native, names, data)
            got = device_results(arguments.llc, folder, device, names, data, driver, arguments.target)
            for seed in seeds:
                difference = first_difference(expected[seed], got[seed])
                if difference:
                    failed += 1
                    print(f"function {seed}: {difference}")
    print(f"{arguments.functions} functions on {THREADS} sets of data, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
