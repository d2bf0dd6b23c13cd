#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Omits one step of a recipe of CONTRIBUTING.md at a time, and verifies that a check fails.

usage: omissions_test.py BUILD [-v] [TEST...]

omissions.toml lists the omissions: a change of one file in a copy of the project, and the check that must detect it:

  compile = FILE     this source, compiled as in BUILD, does not compile
  link = TARGET      this source (`compile`) compiles, but the target of BUILD does not link
  run = COMMAND      the command fails in the copy

Each check is first run without the change, and must pass.
"""
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROWS = tomllib.loads((pathlib.Path(__file__).parent / "omissions.toml").read_text())["omission"]


class Tree:
    """A copy of the project's files; those that are not changed are links to the originals."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "tree"
        names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in filter(None, names.split("\0")):
            if (ROOT / name).is_file():
                (self.root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, self.root / name, follow_symlinks=False)
        # Tools ask git which files there are.
        subprocess.run("git init -q && git add -A", shell=True, cwd=self.root, check=True)

    def path(self, word):
        """A word of a compiler's command with the copy in place of the project."""
        return re.sub(r"^(-I|-isystem)?(\.\./)", lambda match: (match[1] or "") + str(self.root) + "/", word)


class Checks:
    def __init__(self, build, tree):
        self.build, self.tree = build, tree
        self.commands = {os.path.normpath(os.path.join(each["directory"], each["file"])): each for each in json.loads((build / "compile_commands.json").read_text())}

    def compile(self, name, output=None):
        entry = self.commands[str(ROOT / name)]
        words = [self.tree.path(word) for word in shlex.split(entry["command"]) if word not in ("ccache", "-fpch-deps", "-fpch-preprocess")]
        for option in ("-MF", "-MQ", "-o"):
            at = words.index(option)
            del words[at: at + 2]
        words += ["-o", str(output)] if output else ["-fsyntax-only"]
        return subprocess.run([word for word in words if word != "-MD"], cwd=self.build, capture_output=True, text=True)

    def link(self, name, target):
        with tempfile.TemporaryDirectory() as folder:
            object_file = os.path.join(folder, "one.o")
            done = self.compile(name, object_file)
            if done.returncode != 0:
                raise AssertionError(f"{name} does not compile:\n{done.stderr}")
            commands = subprocess.run(["ninja", "-t", "commands", "-s", target], cwd=self.build, check=True, capture_output=True, text=True).stdout
            former = json.loads(json.dumps(self.commands[str(ROOT / name)]))["output"]
            words = [word for word in shlex.split(commands.splitlines()[-1]) if word != "ccache"]
            words[words.index("-o") + 1] = os.path.join(folder, "linked")
            if former not in words:  # it stands in a static library: the object comes before it
                words.insert(words.index("-o") + 2, object_file)
            return subprocess.run([object_file if word == former else word for word in words], cwd=self.build, capture_output=True, text=True)

    def run(self, command):
        return subprocess.run(command, shell=True, cwd=self.tree.root, capture_output=True, text=True, env={**os.environ, "BUILD": str(self.build)})

    def of(self, row):
        if "run" in row:
            return self.run(row["run"])
        return self.link(row["compile"], row["link"]) if "link" in row else self.compile(row["compile"])


class Omissions(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="quern-omissions-")
        cls.checks = Checks(BUILD, Tree(cls.folder.name))
        cls.sound = {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def check_row(self, row):
        check = str((row.get("compile"), row.get("link"), row.get("run")))
        if check not in self.sound:
            self.sound[check] = self.checks.of(row)
        self.assertEqual(self.sound[check].returncode, 0, self.sound[check].stdout + self.sound[check].stderr)
        file = self.checks.tree.root / row["file"]
        before = file.read_text() if file.exists() else None
        if before is not None:
            self.assertEqual(before.count(row["find"]), 1, f"{row['find']!r} of omissions.toml does not stand once in {row['file']}")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((before or "").replace(row["find"], row["with"], 1) if before is not None else row["with"])
        try:
            done = self.checks.of(row)
        finally:
            file.unlink() if before is None else file.write_text(before)
        self.assertNotEqual(done.returncode, 0, "nothing noticed it")
        self.assertRegex(done.stdout + done.stderr, row["expect"])


for number, each in enumerate(ROWS):
    name = "test_" + re.sub(r"\W+", "_", f"{each['recipe']} {each['forgotten']}")
    setattr(Omissions, name, lambda self, row=each: self.check_row(row))

if __name__ == "__main__":
    BUILD = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()
