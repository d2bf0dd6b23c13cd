# SPDX-License-Identifier: Apache-2.0
"""Compares the rows of src/ptx/isa.def with ptxas: writes every row as instructions, and as instructions with a word
added, dropped or changed. Both must accept or reject the same ones. ptxas judges what is valid PTX; a crash is no verdict.

usage: judge_forms.py CHECK [--opcode NAME]... [--limit N] [--mutations N] [--target sm_90a] [--version 9.0]
CHECK is the program built from check_main.cpp. Status 1: they differ; 77: there is no ptxas.
"""
import argparse
import itertools
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[3]
PREAMBLE = """.version {version}
.target {target}
.address_size 64
.global .align 16 .b32 gv[16];
.shared .align 16 .b32 sv[16];
.const .align 16 .b32 cv[16];
.visible .func fv () {{ ret; }}
.visible .entry k(.param .align 16 .b8 p0[64]) {{
.reg .pred %p<9>; .reg .b8 %b<9>; .reg .b16 %rs<9>; .reg .b32 %r<40>; .reg .b64 %rd<9>; .reg .f32 %f<40>; .reg .f64 %fd<40>;
{wide} .local .align 16 .b8 loc[64]; .param .align 16 .b8 cp[64];
ts: .branchtargets L0;
"""
# Known differences between the verdicts, with the reason. None of it changes what valid PTX means.
KNOWN = [
    (r"(ld|st)\.volatile\.(local|const)\b", "NVVM emits it for Numba's kernels, and earlier versions of ptxas take it"),
    (r"st\.async\.(?!.*(release|mbarrier))", "ptxas takes it, the ISA has no form with neither .release nor a barrier object"),
    (r"(setmaxnreg|tensormap)\.", "values of immediate operands of instructions that the CPU device refuses by name"),
    (r"testp\.f(32|64) ", "ptxas takes it, the ISA has no form without a property to test"),
    (r"mma\.sync\..*\.f16\.\w+ ", "ptxas overlooks a fifth type; the CPU device refuses mma by name"),
]
CLASS = {"pred": "p", "f32": "f", "f64": "fd"}
WIDTH = {8: "b", 16: "rs", 32: "r", 64: "rd", 128: "q"}


def tables():
    words = (ROOT / "src/ptx/words.def").read_text()
    isa = (ROOT / "src/ptx/isa.def").read_text()
    bits = {m[1]: int(m[2]) for m in re.finditer(r'QUERN_PTX_TYPE\(\w+, "([^"]+)", (\d+)', words)}
    sets = dict(re.findall(r'QUERN_PTX_WORDS\((\w+), "([^"]*)"\)', isa))
    rows = []
    for match in re.finditer(r'^QUERN_PTX_FORM\((\w+), "([^"]*)", "([^"]*)", (\d+), ([^,)]+), \w+\)', isa, re.M):
        slots = []
        for slot in match[2].split():
            alternatives = []
            for word in slot.lstrip("?").split("|"):
                alternatives += sets[word[1:]].split("|") if word.startswith("$") else [word]
            slots.append((slot.startswith("?"), alternatives))
        rows.append((match[1].rstrip("_"), slots, match[3].split(), int(match[4]), match[5]))
    return bits, rows


class Writer:
    """Writes one instruction of a row."""

    def __init__(self, bits):
        self.bits = bits
        self.opcode = ""

    def register(self, kind, number):
        letter = CLASS.get(kind) or WIDTH.get(max(8, self.bits.get(kind, 32)), "r")
        return f"%{letter}{number}"

    def kind(self, rule, types):
        if rule in ("T", "U", "V", "W"):
            index = "TUVW".index(rule)
            return types[index] if index < len(types) else "b32"
        if rule == "wT":
            return {"u16": "u32", "s16": "s32", "u32": "u64", "s32": "s64"}.get(types[0] if types else "", "b32")
        return {"address": "b64", "any": "b32", "": "b32"}.get(rule, rule)

    def operand(self, spec, words, types, number):
        spec = spec.lstrip("?")
        match = re.match(r"([a-z])([vn\d][\d/]*)?(?::(\w+?))?([~@%_|&!=.#]*)$", spec)
        role, count, rule, flags = match[1], match[2], match[3] or "", match[4]
        if role == "i":
            return (count or "4").split("/")[0]
        if role == "l":
            return "L0"
        if role == "t":
            return "ts"
        if role == "h":
            return "%rd8"
        if role == "z":
            return "_"
        if role == "x":
            return "%rd1"
        if role == "a":
            space = next((w for w in words if w in ("param", "param::entry", "param::func", "local", "const")), None)
            base = {"param": "cp" if self.opcode == "st" else "p0", "param::entry": "p0", "param::func": "cp", "local": "loc", "const": "cv"}.get(space, "%rd1")
            return f"[{base}]"
        kind = self.kind(rule, types)
        if role in "uk":
            part = max(8, self.bits[types[0]] // 2 if types else 8)
            return "{" + ", ".join(f"%{WIDTH[part]}{i}" for i in (1, 2)) + "}"
        if count == "v":
            count = next((w[1] for w in words if w in ("v2", "v4", "v8")), None)
        if count == "n":
            count = "8"
        if count:
            return "{" + ", ".join(self.register(kind, (number + i) % 9) for i in range(int(count))) + "}"
        pair = "|%p7" if "&" in flags else ""
        return self.register(kind, number) + pair

    def write(self, opcode, words, specs, optional=False):
        self.opcode = opcode
        types = [w for w in words if w in self.bits]
        operands, number = [], 1
        for spec in specs:
            if spec == "*" or (spec.startswith("?") and not optional):
                continue
            if spec == "h" and "L2::cache_hint" not in words:
                continue
            operands.append(self.operand(spec, words, types, number))
            number += 1
        return ".".join([opcode] + words) + (" " + ", ".join(operands) if operands else "") + ";"


def ordered(words, bits):
    """Modifiers in the order of the slots, types last, as the ISA writes most instructions."""
    return [w for w in words if w not in bits] + [w for w in words if w in bits]


def instances(row, bits, writer, limit, rng):
    opcode, slots, specs, _, _ = row
    if any("*" in alternatives for _, alternatives in slots) or "*" in specs:
        return []
    choices = [([None] if optional else []) + alternatives for optional, alternatives in slots]
    total = 1
    for choice in choices:
        total *= len(choice)
    if total <= limit:
        picked = list(itertools.product(*choices))
    else:
        picked = [tuple(rng.choice(choice) for choice in choices) for _ in range(limit)]
        # Each alternative at least once.
        for i, choice in enumerate(choices):
            for word in choice:
                base = [c[0] for c in choices]
                base[i] = word
                picked.append(tuple(base))
    lines = []
    for words in picked:
        kept = ordered([w for w in words if w is not None], bits)
        lines.append((kept, writer.write(opcode, kept, specs)))
        if any(s.startswith("?") for s in specs):
            lines.append((kept, writer.write(opcode, kept, specs, optional=True)))
    return lines


def has_b128(version, target):
    return float(version) >= 8.3 and int(re.search(r"\d+", target)[0]) >= 70


def text_of(lines, version, target, keep):
    wide = ".reg .b128 %q<9>;" if has_b128(version, target) else ""
    preamble = PREAMBLE.format(version=version, target=target, wide=wide)
    body = "".join((line if keep(i) else "") + "\n" for i, line in enumerate(lines))
    return preamble + body + "L0: ret;\n}\n", preamble.count("\n")


def judge_ptxas(lines, version, target):
    """The error of ptxas for each line; None if it accepts the line."""
    verdict = {}
    while True:
        text, first = text_of(lines, version, target, lambda i: i not in verdict)
        with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
            file.write(text)
            file.flush()
            arch = target if int(re.search(r"\d+", target)[0]) >= 75 else "sm_75"
            done = subprocess.run(["ptxas", "-arch=" + arch, "-O0", "-o", "/dev/null", file.name], capture_output=True, text=True)
        output = done.stdout + done.stderr
        found = False
        for match in re.finditer(r"[Ll]ine (?:No: )?(\d+)[;:]\s*(?:(\w+)\s*:)?\s*(.*)", output):
            if match[2] in ("warning", "info"):
                continue
            index = int(match[1]) - 1 - first
            if 0 <= index < len(lines) and index not in verdict:
                verdict[index] = match[3]
                found = True
        if done.returncode == 0:
            return [verdict.get(i) for i in range(len(lines))]
        if not found:
            break
    rest = [i for i in range(len(lines)) if i not in verdict]
    if len(rest) <= 1:
        return [verdict.get(i, "no verdict") for i in range(len(lines))]
    # A crash or a complaint about the whole: find the line by halves.
    for part in (rest[: len(rest) // 2], rest[len(rest) // 2 :]):
        for i, found in zip(part, judge_ptxas([lines[i] for i in part], version, target)):
            verdict[i] = found
    return [verdict.get(i) for i in range(len(lines))]


def judge_quern(check, lines, version, target):
    text, first = text_of(lines, version, target, lambda i: True)
    verdict = {}
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        output = subprocess.run([check, file.name], capture_output=True, text=True).stdout
    for line in output.splitlines():
        number, _, message = line.split(" ", 2)
        verdict.setdefault(int(number) - 1 - first, message)
    return [verdict.get(i) for i in range(len(lines))]


def mutated(line_words, row, vocabulary, rng, rows):
    """One word dropped, changed or added. Nothing twice, which ptxas overlooks, and in the order of the slots of a row that has
    them all: words in another order are accepted, and ptxas does not always."""
    words = list(line_words)
    kind = rng.randrange(3)
    fresh = rng.choice(vocabulary)
    if kind != 2 and words:
        words.pop(rng.randrange(len(words)))
    if kind != 0 and fresh not in words:
        words.append(fresh)
    for other in [row] + [one for one in rows if one[0] == row[0]]:
        slot = {w: i for i, (_, alternatives) in reversed(list(enumerate(other[1]))) for w in alternatives}
        if all(word in slot for word in words):
            row = other
            break
    else:
        slot = {w: i for i, (_, alternatives) in reversed(list(enumerate(row[1]))) for w in alternatives}
    return sorted(words, key=lambda w: slot.get(w, len(row[1])))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("check")
    parser.add_argument("--opcode", action="append")
    parser.add_argument("--mutations", type=int, default=20)
    parser.add_argument("--limit", type=int, default=60)
    parser.add_argument("--target", default="sm_90a")
    parser.add_argument("--version", default="9.0")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    if shutil.which("ptxas") is None:
        print("SKIPPED: there is no ptxas")
        return 77
    rng = random.Random(arguments.seed)
    bits, rows = tables()
    writer = Writer(bits)
    lines = []
    vocabulary = {}
    for opcode, slots, operands, *_ in rows:
        if any("*" in alternatives for _, alternatives in slots) or "*" in operands:
            continue
        vocabulary.setdefault(opcode, set()).update(w for _, alternatives in slots for w in alternatives)
    for row in rows:
        if arguments.opcode and row[0] not in arguments.opcode:
            continue
        made = instances(row, bits, writer, arguments.limit, rng)
        lines += [line for _, line in made]
        words_of = sorted(vocabulary.get(row[0], ()))
        for _ in range(arguments.mutations if made and words_of else 0):
            words = ordered(mutated(rng.choice(made)[0], row, words_of, rng, rows), bits)
            lines.append(writer.write(row[0], words, row[2]))
    lines = list(dict.fromkeys(lines))
    if not has_b128(arguments.version, arguments.target):
        lines = [line for line in lines if "%q" not in line]
    ours = judge_quern(arguments.check, lines, arguments.version, arguments.target)
    theirs = []
    for start in range(0, len(lines), 1500):
        theirs += judge_ptxas(lines[start:start + 1500], arguments.version, arguments.target)
    agree = undecided = known = 0
    for line, mine, other in zip(lines, ours, theirs):
        if (mine is None) == (other is None):
            agree += 1
        elif other == "no verdict":
            undecided += 1
            if arguments.verbose:
                print(f"UNDECIDED {line}")
        elif any(re.match(pattern, line) for pattern, _ in KNOWN):
            known += 1
        elif mine is None:
            print(f"LENIENT {line:70} ptxas: {other}")
        else:
            print(f"STRICT  {line:70} quern: {mine}")
    print(f"{len(lines)} instructions, {agree} verdicts agree, {undecided} undecided, {known} known to differ")
    return 0 if agree + undecided + known == len(lines) else 1


if __name__ == "__main__":
    sys.exit(main())
