#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/bench and tools/bench-pictures: tables and pictures of reports written here by hand."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools/lib"))

from bench import charts, peers  # noqa: E402

MACHINE = {"processor": "a processor", "family": "1", "model": "2", "cores": 2, "isa": "AVX2", "memory_gib": 4, "load": 0.1, "date": "2026-01-01", "commit": "c0ffee"}


def cells(quern, pocl, warp=None, numba=None):
    given = {"quern": quern, "PoCL": pocl, "Warp": warp, "Numba": numba}
    return {name: value if isinstance(value, dict) else {"ms": value, "way": "one", "ways": {"one": value}} for name, value in given.items() if value is not None}


PEERS = {"kind": "peers", "machine": MACHINE, "versions": {"quern": "0.1.0", "PoCL": "3.1", "Numba": "0.68"}, "absent": {"Warp": "pip could not install warp-lang: no network"},
         "threads": [1, 2], "rows": [
             {"name": "first", "what": "the first work", "threads": {"1": cells(2.0, 4.0, numba=8.0), "2": cells(1.0, 4.0, numba=2.0)}},
             {"name": "second", "what": "the second work", "threads": {"1": cells(3.0, 2.0, numba={"cannot": True}), "2": cells(1.0, 1.0, numba={"error": "no"})}},
         ]}
STYLES = {"kind": "styles", "machine": MACHINE, "threads": [1, 2], "rows": [
    {"name": "saxpy", "what": "saxpy & more", "limit": 2, "threads": {"1": {"native": 2.0, "quern": 3.0}, "2": {"native": 1.0, "quern": 0.5}}}]}


class PeersTable(unittest.TestCase):
    def row(self, report, what):
        return next(line for line in peers.table(report)[0] if line.startswith(what))

    def test_the_ratio_is_to_the_fastest_peer_that_could_do_the_work(self):
        self.assertEqual(self.row(PEERS, "the first work").split()[3:], ["2.00", "4.00", "absent", "8.00", "0.50", "1.00", "4.00", "absent", "2.00", "0.50", "1.10", "ok"])
        self.assertEqual(self.row(PEERS, "the second work").split()[3:], ["3.00", "2.00", "absent", "cannot", "1.50", "1.00", "1.00", "absent", "failed", "1.00", "1.10", "MISSED"])

    def test_a_row_above_its_limit_on_any_number_of_threads_is_missed(self):
        self.assertEqual(peers.table(PEERS)[1], ["second"])

    def test_a_row_within_a_limit_of_its_own_is_said_to_be_behind(self):
        peers.LIMITS["second"] = 2.0
        self.addCleanup(peers.LIMITS.pop, "second")
        self.assertEqual(peers.table(PEERS)[1], [])
        self.assertTrue(self.row(PEERS, "the second work").endswith("2.00  behind"))

    def test_a_work_that_quern_fails_at_is_missed(self):
        report = copy.deepcopy(PEERS)
        report["rows"][0]["threads"]["2"]["quern"] = {"error": "no"}
        self.assertEqual(peers.table(report)[1], ["first", "second"])

    def test_an_absent_peer_is_named_with_the_reason(self):
        self.assertIn("Warp is absent: pip could not install warp-lang: no network", peers.table(PEERS)[0])

    def test_means_are_over_the_works_that_both_can_do(self):
        # PoCL: sqrt(2/4 * 3/2) and sqrt(1/4 * 1/1); Numba: 2/8 and 1/2.
        self.assertEqual(self.row(PEERS, "geometric mean").split()[6:], ["0.87", "0.25", "0.50", "0.50"])

    def test_limits_belong_to_works(self):
        works = (ROOT / "tests/bench/peers/works.py").read_text()
        self.assertEqual([name for name in peers.LIMITS if f'Work("{name}"' not in works], [])


class Pictures(unittest.TestCase):
    def drawn(self, *reports):
        """The texts of each picture by file name."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, report in enumerate(reports):
                files.append(pathlib.Path(folder) / f"{number}.json")
                files[-1].write_text(json.dumps(report))
            subprocess.run([sys.executable, str(ROOT / "tools/bench-pictures"), *map(str, files), "--to", folder], check=True, stdout=subprocess.DEVNULL)
            found = {}
            for file in sorted(pathlib.Path(folder).glob("*.svg")):
                root = xml.etree.ElementTree.parse(file).getroot()
                found[file.name] = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
            return found

    def test_peers_have_a_picture_for_each_number_of_threads(self):
        found = self.drawn(PEERS)
        self.assertEqual(list(found), ["bench-peers-1.svg", "bench-peers-2.svg"])
        self.assertNotIn("Warp", found["bench-peers-1.svg"])
        for words in ("the first work", "2.00", "4.00", "0.67"):  # 4/2, 8/2, 2/3
            self.assertIn(words, found["bench-peers-1.svg"])

    def test_styles_have_a_bar_for_each_number_of_threads(self):
        texts = self.drawn(STYLES)["bench-styles.svg"]
        for words in ("saxpy & more", "1.50", "0.50", "1 thread", "2 threads"):
            self.assertIn(words, texts)

    def test_another_file_is_refused(self):
        with self.assertRaises(subprocess.CalledProcessError):
            self.drawn({"benchmarks": []})

    def test_pictures_have_colours_for_dark_pages(self):
        self.assertIn("prefers-color-scheme:dark", charts.bars("t", "a", ["s"], [("r", [2.0])]))

    def test_a_bar_ends_where_the_axis_has_its_value(self):
        scale = charts.Scale(1, 100, 0, 200, True)
        self.assertEqual([round(scale(value), 6) for value in (1, 10, 100)], [0, 100, 200])
        self.assertEqual([round(tick, 6) for tick in scale.ticks()], [1, 2, 5, 10, 20, 50, 100])
        self.assertEqual(charts.Scale(3, 17, 0, 1, False).ticks(), [0, 5, 10, 15, 20])


if __name__ == "__main__":
    unittest.main()
