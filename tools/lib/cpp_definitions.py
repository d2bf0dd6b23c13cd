# SPDX-License-Identifier: Apache-2.0
"""Where functions and variables are defined in the text of a C++ file.

A scanner, not a parser: it knows comments, literals, braces and the declarations of this project's style. It needs neither a compiler
nor the file's headers.
"""
import re
from dataclasses import dataclass


@dataclass
class Definition:
    """A function, or a variable with an initialiser. `name` is qualified: "quern::cpu::emit::Values::scalar". Namespaces without a name
    do not count, and neither do template arguments."""
    name: str
    begin: int  # of the declaration
    end: int    # behind the last brace, or the variable's semicolon
    is_function: bool


_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(?P<mark>\w*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'|'
                     r'(?m:^[ \t]*\#(?:[^\n\\]|\\.|\\\n)*)', re.DOTALL)


def _spaces(text):
    return re.sub(r"[^\n]", " ", text)


def blanked(text):
    """The text with comments, literals and preprocessor lines as spaces: offsets stay."""
    return _TOKENS.sub(lambda found: _spaces(found.group(0)), text)


def without_comments(text):
    """The text with comments as spaces: offsets stay."""
    return _TOKENS.sub(lambda found: _spaces(found.group(0)) if found.group(0).startswith(("//", "/*")) else found.group(0), text)


def matching(code, at, pairs="{}"):
    """The offset of the bracket that closes the one at `at`."""
    depth = 0
    for i in range(at, len(code)):
        if code[i] == pairs[0]:
            depth += 1
        elif code[i] == pairs[1]:
            depth -= 1
            if depth == 0:
                return i
    raise ValueError(f"unbalanced '{pairs[0]}' at offset {at}")


_PREFIX = re.compile(r"\s*(?:(?:public|private|protected)\s*:|template\s*(?=<)|\[\[[^\]]*\]\]|(?:__attribute__|alignas)\s*(?=\()|"
                     r"extern\b(?!\s*\{)|QUERN_\w+\b(?!\s*\())")


def without_prefix(head):
    """The declaration without template parameters, attributes and access labels in front."""
    while found := _PREFIX.match(head):
        head = head[found.end():]
        if found.group(0).rstrip().endswith("template"):
            head = head[matching(head, 0, "<>") + 1:]
        elif head.startswith("("):
            head = head[matching(head, 0, "()") + 1:]
    return head.strip()


def top_level(head, wanted):
    """The offset of the first of these characters outside of brackets; -1 if there is none."""
    depth = 0
    for i, char in enumerate(head):
        if char in wanted and depth == 0 and not (char == ":" and ":" in (head[i - 1:i], head[i + 1:i + 2])):
            return i
        if char in "(<[{":
            depth += 1
        elif char in ")>]}" and head[i - 1:i] != "-":
            depth -= 1
    return -1


_NAMESPACE = re.compile(r"(?:inline\s+)?namespace\b\s*([\w:]*)$")
_CLASS = re.compile(r"(?:class|struct|union)\b(.*)$", re.DOTALL)
_NAME = re.compile(r"((?:~?\w+(?:<[^()]*>)?\s*::\s*)*(?:operator\s*(?:\(\)|[^\s\w(]+|\w[\w:<>*& ]*)|~?\w+))\s*$")


def _function_name(head):
    """The name of the function that the declaration defines; None if it is no function."""
    call = re.search(r"operator\s*\(\s*\)", head)
    parameters = call.end() if call else top_level(head, "(")
    assigned = top_level(head, "=") if "operator" not in head else -1
    if parameters < 0 or 0 <= assigned < parameters:
        return None
    found = _NAME.search(head[:parameters])
    return re.sub(r"\s+|<[^()]*>(?=::)", "", found.group(1)) if found else None


def _class_name(rest):
    colon = top_level(rest, ":")
    words = re.sub(r"\w+\s*\([^)]*\)|\bfinal\b|<.*>", " ", rest[:colon] if colon >= 0 else rest)
    names = re.findall(r"[\w:]+", words)
    return names[-1] if names else ""


def _variable_name(head):
    end = top_level(head, "=")
    found = re.search(r"([\w:]+)\s*(?:\[[^\]]*\]\s*)*$", head[:end] if end >= 0 else head)
    return found.group(1) if found else ""


def definitions(text):
    """All of the file, in their order. Functions inside functions are part of them."""
    code = blanked(text)
    result, scopes = [], []  # a scope: its name ("": none) and the offset of its end
    start = at = 0
    while at < len(code):
        char = code[at]
        if char in ";}":
            if char == "}" and scopes:
                scopes.pop()
            start = at + 1
        elif char == "{":
            raw = code[start:at]
            head = without_prefix(raw)
            begin = start + len(raw) - len(raw.lstrip())
            namespace, kind = _NAMESPACE.match(head), _CLASS.match(head)
            if namespace:
                scopes.append(namespace.group(1))
            elif not head and not scopes or re.fullmatch(r"\s*extern\s*", raw):
                scopes.append("")
            elif kind and top_level(head, "(=") < 0 or kind and re.match(r"[^(]*\b(?:alignas|[A-Z_]+)\s*\(", head):
                scopes.append(_class_name(kind.group(1)))
            elif re.match(r"enum\b", head):
                at = matching(code, at) + 1
                continue
            else:
                name = _function_name(head)
                colon = top_level(head, ":") if name else -1
                if colon >= 0 and re.search(r"[\w>]\s*$", head[colon + 1:]):  # a member's initialiser in braces
                    at = matching(code, at) + 1
                    continue
                end = matching(code, at)
                if name is None:
                    name = _variable_name(head)
                    end = code.find(";", end)
                if name == "catch":  # of a function whose body is a try block
                    result[-1].end = end + 1
                elif name:
                    scope = "::".join(part for part in scopes if part)
                    result.append(Definition(f"{scope}::{name}" if scope else name, begin, end + 1, _function_name(head) is not None))
                at, start = end, end + 1
                if at < 0:
                    break
                at += 1
                continue
            start = at + 1
        at += 1
    return result
