# SPDX-License-Identifier: Apache-2.0
"""Results of one test of a client, and the failures that are expected of it."""
import collections
import dataclasses
import fnmatch
import tomllib

OUTCOMES = ("passed", "failed", "skipped")


@dataclasses.dataclass
class Case:
    name: str
    outcome: str
    reason: str = ""
    expected: bool = False
    needs: str = ""  # what a skipped test would need to run


def counts(cases):
    return collections.Counter(case.outcome for case in cases)


def as_text(count):
    return ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES)


class Expected:
    """The rows of expected.toml. [[failure]]: patterns of test names, and what a device would need to pass them. [[skipped]]: patterns of the
    suite's reasons, and what a test would need to run."""

    def __init__(self, file):
        rows = tomllib.loads(file.read_text()) if file.exists() else {}
        self.reasons = {pattern: row["reason"] for row in rows.get("failure", []) for pattern in row["tests"]}
        self.needs = {pattern: row["needs"] for row in rows.get("skipped", []) for pattern in row["reasons"]}

    def mark(self, cases):
        """Gives expected failures their reasons, and skipped tests what they need; returns the names of tests that passed but are expected to
        fail."""
        surprises = []
        for case in cases:
            reason = matched(self.reasons, case.name)
            if case.outcome == "skipped":
                case.needs = matched(self.needs, case.reason) or ""
            elif reason and case.outcome == "failed":
                case.reason, case.expected = reason, True
            elif reason and case.outcome == "passed":
                surprises.append(case.name)
        return surprises


def matched(rows, text):
    """The value of the first pattern that the text matches; None if there is none."""
    return next((value for pattern, value in rows.items() if fnmatch.fnmatchcase(text, pattern)), None)
