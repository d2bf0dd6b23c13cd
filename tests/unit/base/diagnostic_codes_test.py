#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every code of a diagnostic in the sources has a row in diagnostic_codes.def, and every row is a code that something emits.

A code is a string literal, or a constant that holds one, in one of two places: on the right of `code =`, and as the argument of a function
that declares a parameter `code`.
"""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
TABLE = ROOT / "src/base/diagnostic_codes.def"
PROTOCOL = ROOT / "docs/protocol.md"
# The files with the codes of the protocol's answers, which docs/protocol.md lists.
OF_PROTOCOL = ("src/serve/", "src/remote/")

ROW = re.compile(r'^QUERN_DIAGNOSTIC_CODE\("([^"]+)", (\w+)\)$', re.M)
TEXT_TYPE = r"(?:const )?(?:char\s*\*|std::string_view|string_view|std::string)(?: const)?\s*&?\s*"
PARAMETER = re.compile(r"(?:^|,|\()\s*" + TEXT_TYPE + r"code_?\b")
DECLARED = re.compile(r"(?:^|\n)[^\n;#=]*?[\w>&*:\]]\s+(?:\w+::)*(\w+)\("  # a function
                      r"|\bauto\s+(\w+)\s*=\s*\[[^\]]*\]\("  # a lambda
                      r"|\n  (?:explicit )?([A-Z]\w+)\(")  # a constructor
CODE_OF = re.compile(r"\bstd::string code_of\(.*?\n}\n", re.S)  # a function that returns codes
CONSTANT = re.compile(r'constexpr\s+(?:const char\s*\*|std::string_view|auto|const char)\s+(k\w+)(?:\[\])?\s*=\s*"([a-z][a-z0-9-]*)"')
ASSIGNED = re.compile(r"\bcode\s*=(?!=)\s*([^;,]+)")
CODE = re.compile(r"[a-z][a-z0-9_]*(?:-[a-z0-9]+)*")
LITERAL = re.compile(r'"([^"\\]*)"')


def without_comments(text):
    """Line comments only: the sources have no others. `//` in a string stays."""
    return re.sub(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*', lambda match: match.group(1) or "", text)


def arguments(text, at):
    """The arguments of the call whose parenthesis opens before `at`, or none if the text ends first."""
    found, depth, begin, index = [], 0, at, at
    while index < len(text):
        character = text[index]
        if character == '"':
            index += 1
            while index < len(text) and text[index] != '"':
                index += 2 if text[index] == "\\" else 1
        elif character == "'" and re.match(r"'(?:\\.|[^\\'])'", text[index:index + 4]):
            index += 2 + (text[index + 1] == "\\")
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return found + [text[begin:index].strip()]
            depth -= 1
        elif character == "," and depth == 0:
            found.append(text[begin:index].strip())
            begin = index + 1
        index += 1
    return []


def declared(text):
    """Functions that the text declares, as {name: positions of a parameter `code`}, none for most."""
    found = {}
    for match in DECLARED.finditer(text):
        if re.search(r"\b(?:return|throw|else|new)\s+(?:\w+::)*\w+\($", match.group()):
            continue
        name = match.group(1) or match.group(2) or match.group(3)
        positions = found.setdefault(name, set())
        for position, parameter in enumerate(arguments(text, match.end())):
            if PARAMETER.match("(" + parameter):
                positions.add(position)
    return found


def codes_in(expression, constants):
    """The literals and constants that the expression may be. The arguments of calls in it are not codes."""
    plain = re.sub(r"\w+\([^()]*\)", "", re.sub(r'[!=]= *"[^"]*"', "", expression))
    return set(filter(CODE.fullmatch, LITERAL.findall(plain))) | {constants[word] for word in re.findall(r"\bk\w+", plain) if word in constants}


def emitted(sources):
    """{code: files} of `sources`, which is {file: text}."""
    texts = {file: without_comments(text) for file, text in sources.items()}
    constants = {name: value for text in texts.values() for name, value in CONSTANT.findall(text)}
    shared = {}
    for file, text in texts.items():
        if file.endswith(".hpp"):
            for name, positions in declared(text).items():
                shared.setdefault(name, set()).update(positions)
    found = {}

    def note(expression, file):
        for code in codes_in(expression, constants):
            found.setdefault(code, set()).add(file)

    for file, text in texts.items():
        for match in ASSIGNED.finditer(text):
            note(match.group(1), file)
        for function in CODE_OF.findall(text):
            for returned in re.findall(r"return (.*);", function):
                note(returned, file)
        own = declared(text)
        for match in re.finditer(r"(\.|->)?\b(\w+)\(", text):
            name = match.group(2)
            positions = shared.get(name, ()) if match.group(1) or name not in own else own[name]
            given = arguments(text, match.end()) if positions else []
            for position in positions:
                if position < len(given):
                    note(given[position], file)
    return found


def read_sources():
    folders = (ROOT / "src", ROOT / "tools/quern")
    return {str(path.relative_to(ROOT)): path.read_text() for folder in folders for path in sorted(folder.rglob("*.?pp"))}


class Codes(unittest.TestCase):
    def setUp(self):
        self.rows = [code for code, _ in ROW.findall(TABLE.read_text())]

    def test_rows(self):
        self.assertEqual(self.rows, sorted(set(self.rows)), "the rows are in order, each once")
        self.assertEqual(len(self.rows), TABLE.read_text().count('\nQUERN_DIAGNOSTIC_CODE("'), "every row is read")

    def test_emitted_codes_have_rows(self):
        found = emitted(read_sources())
        page = PROTOCOL.read_text()
        missing = {code: sorted(files) for code, files in sorted(found.items()) if code not in self.rows and
                   not (f"`{code}`" in page and all(file.startswith(OF_PROTOCOL) for file in files))}
        self.assertEqual(missing, {}, "add rows to src/base/diagnostic_codes.def, or to docs/protocol.md")
        kinds = re.search(r"enum class ErrorCode[^{]*\{(.*?)\};", (ROOT / "include/quern/error.hpp").read_text(), re.S).group(1)
        emitted_by_errors = set(re.findall(r"^  (\w+),", kinds, re.M))  # diagnostics_of()
        self.assertEqual(set(self.rows) - set(found) - emitted_by_errors, set(), "nothing emits these rows")

    def test_planted_omissions_are_found(self):
        for text in ('void f() { diagnostic.code = "planted"; }\n',
                     'Diagnostic g() { return {.code = "planted", .message = "x"}; }\n',
                     'Diagnostic failure(const char* code, std::string why) {}\nvoid f() {\n  failure("planted", "x");\n}\n',
                     'Diagnostic failure(int a, std::string_view code) {}\nvoid f() {\n  failure(g(1, 2), is_a ? "io" : "planted");\n}\n',
                     'constexpr std::string_view kOdd = "planted";\nvoid f() { error.code = kOdd; }\n'):
            self.assertIn("planted", emitted({"a.cpp": text}), text)
        header = {"a.hpp": "class Report {\n  void error(Place place, std::string_view code, std::string message);\n};\n"}
        self.assertIn("planted", emitted({**header, "b.cpp": 'void f() { report.error(at(1), "planted", "b"); }\n'}))


if __name__ == "__main__":
    unittest.main()
