# SPDX-License-Identifier: Apache-2.0
"""The answers of tests/gpu/driver_facts*.c: one line a question, its name and after a tab its answer, which is a list of parts. Each
part but for a crash begins with a label. Lines that begin with # say where the answers are from."""
import fnmatch
import re
import tomllib

#: Between the parts: "label=RESULT(0); label=..." and "5,5,0:passes 6,5,0:waits".
SEPARATOR = re.compile(r"; ?| (?=[\w,]+[:=])")
#: The label of a difference that is not in single parts: one of the answers ends early.
WHOLE = "*"
#: The label of a part that says how the process ended.
CRASH = "crash"


def read(text):
    """The answers by question."""
    return dict(line.split("\t", 1) for line in text.splitlines() if "\t" in line and not line.startswith("#"))


def parts_of(answer):
    return [part for part in SEPARATOR.split(answer) if part]


def label_of(part):
    return re.split("[:=]", part, maxsplit=1)[0]


def differences(expected, found):
    """(label, expected, found) of each part that differs. Repeated labels and values without one follow the label before."""
    if expected == found:
        return []
    left, right = parts_of(expected), parts_of(found)
    if len(left) != len(right):
        return [(WHOLE, expected, found)]
    label, different = WHOLE, []
    for one, other in zip(left, right):
        if one.startswith(("KILLED", "EXITED")):
            label = CRASH
        elif re.match(r"[\w^.,]+[:=]", one):
            label = label_of(one)
        if one != other:
            different.append((label, one, other))
    return different


class Deviations:
    """The differences that are known, each with its reason: tests/gpu/deviations.toml."""

    def __init__(self, text):
        table = tomllib.loads(text)
        self.skipped = [row["question"] for row in table.get("skip", [])]
        self.rows = table.get("deviation", [])
        for row in self.rows + table.get("skip", []):
            if not row.get("reason"):
                raise ValueError(f"deviations.toml gives no reason for {row.get('question')}")
        self.used = set()

    @staticmethod
    def matches(question, pattern):
        return fnmatch.fnmatchcase(question, pattern)

    def is_skipped(self, question):
        return any(self.matches(question, pattern) for pattern in self.skipped)

    def reason(self, question, label):
        """Why the answers differ there; None if that is not known."""
        for index, row in enumerate(self.rows):
            if not self.matches(question, row["question"]):
                continue
            for wanted in row.get("labels", [WHOLE]):
                if wanted in (label, WHOLE):
                    self.used.add((index, wanted))
                    return row["reason"]
        return None

    def unused(self):
        """(question, label) of the rows that nothing differs in any more."""
        return [(row["question"], label) for index, row in enumerate(self.rows) for label in row.get("labels", [WHOLE])
                if (index, label) not in self.used]
