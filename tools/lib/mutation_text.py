# SPDX-License-Identifier: Apache-2.0
"""Finds the text that a mutation of tests/mutate/mutations.toml replaces, by the function that holds it."""
import difflib
import re
from dataclasses import dataclass

import cpp_definitions

NAMESPACE = "quern::cpu::"  # in front of all names of the table
_MARKER = re.compile(r"//\s*(mutation: [\w-]+)\s*\n")


class NotFound(Exception):
    """Says why the text of a mutation is not found exactly once."""


@dataclass(frozen=True)
class Range:
    file: str  # relative to the root
    begin: int
    end: int


def pattern_of(text):
    """A regular expression for the words of the text in a row, however the formatter broke the lines."""
    words = re.findall(r"\w+|[^\w\s]", text)
    return r"\s*".join(rf"\b{word}\b" if re.match(r"\w", word) else re.escape(word) for word in words)


def split(at):
    """(text in front, the replaced part, text behind) of a mutation's `at`."""
    parts = re.split("[«»]", at)
    if len(parts) == 1:
        parts = ["", at, ""]
    if len(parts) != 3 or not parts[1].strip():
        raise NotFound(f"`at` needs one part between « and »: {at}")
    return parts


def rows(text, begin, end):
    """The rows of a table, as (key, begin, end): each "{...}" or "NAME(...)" of its initialiser, by its first element."""
    code = cpp_definitions.blanked(text)
    at = code.index("{", begin) + 1
    while at < end:
        if code[at] in "{(":
            last = cpp_definitions.matching(code, at, "{}" if code[at] == "{" else "()")
            comma = cpp_definitions.top_level(code[at + 1:last], ",")
            yield " ".join(text[at + 1:last if comma < 0 else at + 1 + comma].split()), at, last + 1
            at = last
        at += 1


class Sources:
    """The C++ files below a folder."""

    def __init__(self, root, folder):
        self.texts = {}        # by path relative to the root, comments blanked
        self.definitions = {}  # by name: (file, definition)
        self.markers = {}      # by name: the lines below them
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".cpp", ".hpp"):
                self._add(str(path.relative_to(root)), path.read_text())

    def _add(self, file, text):
        self.texts[file] = cpp_definitions.without_comments(text)
        for definition in cpp_definitions.definitions(text):
            self.definitions.setdefault(definition.name.removeprefix(NAMESPACE), []).append((file, definition))
        for found in _MARKER.finditer(text):
            end = text.find("\n", found.end())
            self.markers.setdefault(found.group(1), []).append(Range(file, found.end(), end))

    def find_all(self, name, at, row=None):
        """All ranges with the text `at` in the definitions of that name, in the table's row or below the marker."""
        front, part, behind = split(at)
        whole = r"\s*".join(f"({pattern_of(text)})" for text in (front, part, behind))
        result = []
        for scope in self._scopes(name, row):
            for found in re.compile(whole).finditer(self.texts[scope.file], scope.begin, scope.end):
                result.append(Range(scope.file, *found.span(2)))
        return result

    def find_one(self, name, at, row=None):
        """The one range. Throws NotFound with the reason if there is none, or more than one."""
        scopes = self._scopes(name, row)
        files = ", ".join(sorted({scope.file for scope in scopes}))
        where = f"{name}{f', row {row},' if row else ''} in {files}"
        if not scopes:
            raise NotFound(self._unknown(name, row) + self._elsewhere(at))
        found = self.find_all(name, at, row)
        if len(found) == 1:
            return found[0]
        if found:
            raise NotFound(f"{where} has the text {len(found)} times: {at}")
        raise NotFound(f"{where} does not have the text: {at}{self._elsewhere(at)}")

    def _scopes(self, name, row):
        if name.startswith("mutation: "):
            return self.markers.get(name, [])
        named = self.definitions.get(name, [])
        if row is None:
            return [Range(file, definition.begin, definition.end) for file, definition in named]
        return [Range(file, begin, end) for file, definition in named if not definition.is_function
                for key, begin, end in rows(self.texts[file], definition.begin, definition.end) if key == " ".join(row.split())]

    def _unknown(self, name, row):
        if name.startswith("mutation: "):
            return f"no comment `// {name}` in the sources"
        if row is not None and name in self.definitions:
            return f"the table {name} has no row {row}"
        last = name.split("::")[-1]
        near = [known for known in self.definitions if known.split("::")[-1] == last]
        near = near or difflib.get_close_matches(name, self.definitions, 3)
        return f"no {'table' if row else 'function'} {name}" + (f"; there is {', '.join(sorted(near)[:3])}" if near else "")

    def _elsewhere(self, at):
        if len(re.findall(r"\w+|[^\w\s]", at)) < 4:  # too short to tell
            return ""
        names = sorted(name for name in self.definitions if self.find_all(name, at))
        return f"; the text is in {', '.join(names[:3])}" if names else ""
