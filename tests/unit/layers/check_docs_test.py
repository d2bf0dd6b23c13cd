#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_docs finds missing documentation, in small trees made for the test."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
WHOLE = {"README.md": "# Title\n\n[a part](docs/a.md#the-second-part), [above](#title), [outside](http://example.org/)\n", "docs/a.md": "# A\n\n## The *second* part\n",
         "docs/decisions/README.md": "| 0001 | [One](0001-one.md) |\n| 0002 | the number was not used |\n| 0003 | [Three](0003-three.md) |\n",
         "docs/decisions/0001-one.md": "# One\n", "docs/decisions/0003-three.md": "# Three\n"}


def check(changes):
    """(status, output) of check_docs over the tree with these changes: {path: text, or None for a file that is not there}."""
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run(["git", "init", "-q", directory], check=True)
        for path, text in {**WHOLE, **changes}.items():
            file = pathlib.Path(directory, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is not None:
                file.write_text(text)
        done = subprocess.run([sys.executable, str(ROOT / "tools/check_docs"), "--root", directory], text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr


class CheckDocs(unittest.TestCase):
    def refused(self, changes, message):
        status, output = check(changes)
        self.assertEqual(status, 1, output)
        self.assertIn(message, output)

    def test_a_whole_tree_is_accepted(self):
        self.assertEqual(check({}), (0, "5 documents are sound\n"))

    def test_a_link_to_nothing(self):
        self.refused({"README.md": "[x](docs/b.md)\n"}, "README.md:1: docs/b.md does not exist")
        self.refused({"README.md": "\n[x](docs/a.md#third)\n"}, "README.md:2: a.md has no heading for #third")

    def test_a_conflict_that_a_merge_left(self):
        self.refused({"docs/a.md": "## The second part\n<<<<<<< HEAD\n"}, "docs/a.md:2: a mark of a merge's conflict")

    def test_prose_that_is_too_wide(self):
        self.refused({"docs/a.md": "## The second part\n" + "word " * 29 + "\n"}, "docs/a.md:2: 145 columns")
        wide = "word " * 40
        self.assertEqual(check({"docs/a.md": f"## The second part\n| {wide} |\n```\n{wide}\n```\n"})[0], 0)

    def test_a_record_that_is_not_listed(self):
        self.refused({"docs/decisions/0004-four.md": "# Four\n"}, "no row links to 0004-four.md")

    def test_a_row_without_its_record(self):
        self.refused({"docs/decisions/0003-three.md": None, "docs/decisions/0004-four.md": "# Four\n"}, "0003 links to a record that does not exist")

    def test_a_number_without_a_reason(self):
        self.refused({"docs/decisions/README.md": "| 0001 | [One](0001-one.md) |\n| 0003 | [Three](0003-three.md) |\n"}, "no row for 0002")


if __name__ == "__main__":
    unittest.main()
