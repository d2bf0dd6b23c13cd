#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/clients: what expected.toml says of a client's tests, and the tables of docs/clients.md."""
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/lib"))

from clients import page, pytest_suite  # noqa: E402
from clients.case import Case, Expected  # noqa: E402

EXPECTED = """
[[failure]]
tests = ["draws::*"]
reason = "needs texture units"

[[skipped]]
reasons = ["could not import 'cupy'*", "no CuPy"]
needs = "CuPy"
"""

JUNIT = """<testsuites><testsuite>
<testcase classname="" name="tests.file"><skipped type="pytest.skip" message="collection skipped">('/f.py', 16, 'Skipped: no "CuPy"')</skipped></testcase>
<testcase classname="tests.file.T" name="one"><skipped type="pytest.skip" message="only here&#10;more">/f.py:1: only here</skipped></testcase>
<testcase classname="tests.file.T" name="two"><skipped type="pytest.xfail" message=""/></testcase>
</testsuite></testsuites>"""


def marked(*cases):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "expected.toml"
        file.write_text(EXPECTED)
        return list(cases), Expected(file).mark(cases)


class Rows(unittest.TestCase):
    def test_a_skipped_test_needs_what_the_row_of_its_reason_says(self):
        cases, surprises = marked(Case("a", "skipped", "could not import 'cupy': none"), Case("draws::b", "skipped", "Windows"))
        self.assertEqual(([case.needs for case in cases], surprises), (["CuPy", ""], []))

    def test_an_expected_failure_gets_its_reason_and_one_that_passed_is_named(self):
        cases, surprises = marked(Case("draws::a", "failed", "assert 1"), Case("c", "failed", "no CuPy"), Case("draws::d", "passed"))
        self.assertEqual([(case.reason, case.expected, case.needs) for case in cases[:2]], [("needs texture units", True, ""), ("no CuPy", False, "")])
        self.assertEqual(surprises, ["draws::d"])

    def test_the_table_has_the_most_frequent_reason_first_within_an_outcome(self):
        cases, _ = marked(Case("a", "skipped", "Windows"), Case("b", "skipped", "no CuPy"), Case("c", "skipped", "no CuPy"),
                          Case("d", "passed"), Case("draws::e", "failed", "x"), Case("f", "skipped", "a | b"))
        self.assertEqual(page.reason_rows("suite 1.0", cases), [
            "| suite 1.0 | 1 | failed | needs texture units |  |",
            "| suite 1.0 | 2 | skipped | no CuPy | CuPy |",
            "| suite 1.0 | 1 | skipped | Windows |  |",
            "| suite 1.0 | 1 | skipped | a \\| b |  |"])

    def test_the_reasons_of_pytest_are_read_also_of_a_file_that_is_skipped_as_a_whole(self):
        with tempfile.TemporaryDirectory() as folder:
            junit = pathlib.Path(folder) / "file.xml"
            junit.write_text(JUNIT)
            reasons = [case.reason for case in pytest_suite.cases_of(junit, "tests/file.py")]
        self.assertEqual(reasons, ['no "CuPy"', "only here", "the suite expects a failure: no reason given"])

    def test_every_reason_of_numba_s_suite_that_the_page_lists_has_a_row(self):
        expected = Expected(ROOT / "tests/clients/numba/expected.toml")
        lines = (ROOT / "docs/clients.md").read_text().split("\n")
        rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| numba-cuda ") and "| skipped |" in line]
        self.assertGreater(len(rows), 10)
        cases = [Case("", "skipped", row[3]) for row in rows]
        expected.mark(cases)
        self.assertEqual([case.needs for case in cases], [row[4] for row in rows])


if __name__ == "__main__":
    unittest.main()
