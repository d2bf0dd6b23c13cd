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


def counts(cases):
    return collections.Counter(case.outcome for case in cases)


def as_text(count):
    return ", ".join(f"{count[outcome]} {outcome}" for outcome in OUTCOMES)


class Expected:
    """The rows of expected.toml: patterns of test names, and what a device would need to pass them."""

    def __init__(self, file):
        rows = tomllib.loads(file.read_text()).get("failure", []) if file.exists() else []
        self.reasons = {pattern: row["reason"] for row in rows for pattern in row["tests"]}

    def mark(self, cases):
        """Gives expected failures their reasons; returns the names of tests that passed but are expected to fail."""
        surprises = []
        for case in cases:
            reason = next((reason for pattern, reason in self.reasons.items() if fnmatch.fnmatchcase(case.name, pattern)), None)
            if reason and case.outcome == "failed":
                case.reason, case.expected = reason, True
            elif reason and case.outcome == "passed":
                surprises.append(case.name)
        return surprises
