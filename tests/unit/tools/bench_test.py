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

from bench import charts, peers, scale  # noqa: E402

MACHINE = {"processor": "a processor", "family": "1", "model": "2", "cores": 2, "isa": "AVX2", "memory_gib": 4, "load": 0.1, "date": "2026-01-01", "commit": "c0ffee"}


def cells(quern, pocl, warp=None, numba=None):
    given = {"quern": quern, "PoCL": pocl, "Warp": warp, "Numba": numba}
    return {name: value if isinstance(value, dict) else {"ms": value, "way": "one", "ways": {"one": value}} for name, value in given.items() if value is not None}


PEERS = {"kind": "peers", "machine": MACHINE, "versions": {"quern": "0.1.0", "PoCL": "3.1", "Numba": "0.68"}, "absent": {"Warp": "pip could not install warp-lang: no network"},
         "threads": [1, 2], "rows": [
             {"name": "first", "what": "the first work", "threads": {"1": cells(2.0, 4.0, numba=8.0), "2": cells(1.0, 4.0, numba=2.0)}},
             {"name": "second", "what": "the second work", "threads": {"1": cells(3.0, 2.0, numba={"cannot": True}), "2": cells(1.0, 1.0, numba={"error": "no"})}},
         ]}
STYLES = {"kind": "styles", "set": "third", "machine": MACHINE, "threads": [1, 2], "rows": [
    {"name": "saxpy", "what": "saxpy & more", "limit": 2, "threads": {"1": {"native": 2.0, "quern": 3.0}, "2": {"native": 1.0, "quern": 0.5}}}]}

SCALE = {"kind": "scale", "machine": MACHINE,
         "kernels": [{"shape": "straight", "instructions": 10, "load_ms": 1, "first_ms": 4, "later_us": 1, "more_mib": 11, "peak_mib": 37},
                     {"shape": "straight", "instructions": 1000, "load_ms": 1, "first_ms": 99, "later_us": 9, "more_mib": 15, "peak_mib": 41},
                     {"shape": "loops", "instructions": 1000, "over_s": 60}],
         "blocks": [{"blocks": 10**power, "us": 2 * 10**power} for power in (1, 4, 6)],
         "arrays": [{"arrays": 10**power, "allocate_us": 3, "launch_us": 1, "free_us": 3} for power in (1, 2, 4)],
         "modules": [{"modules": 10**power, "load_us": 70, "find_ns": 50, "launch_us": 1, "kib": 20} for power in (1, 2, 3)],
         "workers": [{"workers": workers, "compute_ms": ms, "stream_ms": 8} for workers, ms in ((1, 100), (2, 50), (4, 50))],
         "memory": [{"workers": 1, "start_kib": 5 * 1024, "device_kib": 25 * 1024, "code_kib": 36 * 1024, "used_kib": 37 * 1024, "threads": 2},
                    {"workers": 9, "start_kib": 5 * 1024, "device_kib": 25 * 1024, "code_kib": 36 * 1024, "used_kib": 45 * 1024, "threads": 10}],
         "contention": [{"workers": 64, "what": what, "launches": 10, "us": 5, "locks": 7, "contended": 0.25, "hottest": 3, "woken": 0, "switches": 0}
                        for what in ("1 block, waited for", "65,536 short blocks")]}


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


class ScaleTable(unittest.TestCase):
    def verdict(self, what, change):
        report = copy.deepcopy(SCALE)
        change(report)
        lines, missed = scale.table(report)
        line = next(line for line in lines if line.startswith(what))
        self.assertEqual(line.endswith("MISSED"), any(name.startswith(what) for name in missed))
        return line.split()

    def test_memory_is_what_the_device_and_each_worker_add(self):
        lines = scale.table(SCALE)[0]
        self.assertIn(["20.00", "60.00", "MiB", "ok"], [line.split()[-4:] for line in lines if line.startswith("memory that the device")])
        self.assertIn(["1.00", "2.00", "MiB", "ok"], [line.split()[-4:] for line in lines if line.startswith("memory that a worker")])  # 8 MiB by 8 workers

    def test_a_value_beyond_its_limit_is_missed(self):
        self.assertEqual(scale.table(SCALE)[1], [])

        def heavy(report):
            report["memory"][0]["device_kib"] = 66 * 1024

        def slow(report):
            report["blocks"][-1]["us"] *= 2.5

        def late(report):
            report["workers"][1]["compute_ms"] = 70  # 1.43 times as fast by two workers

        self.assertIn("MISSED", self.verdict("memory that the device", heavy))
        self.assertIn("MISSED", self.verdict("time of a block", slow))
        self.assertIn("MISSED", self.verdict("speed-up of computing by 2", late))

    def test_more_workers_than_cores_are_named(self):
        lines = [line for line in scale.table(SCALE)[0] if "more workers than the 2 cores" in line]
        self.assertEqual([line.split()[0] for line in lines], ["4"])

    def test_a_kernel_that_took_too_long_is_in_the_table(self):
        self.assertTrue(any("loops" in line and line.endswith("more than 60 s of CPU time") for line in scale.table(SCALE)[0]))

    def test_draws_follow_the_sizes_of_chunks(self):
        self.assertEqual(scale.chunks(1, 64), 2)  # the block, and nothing
        self.assertEqual(scale.chunks(16, 1), 17)  # one by one
        # 40 blocks, 1 worker: 2 at a time while at least 32 are left (40, 38, 36, 34, 32), then the last 30 one by one.
        self.assertEqual(scale.chunks(40, 1), 5 + 30 + 1)

    def test_rows_are_the_columns_of_the_program(self):
        self.assertEqual(scale.rows_of("blocks", "1\t0.5\n10\t2\n"), [{"blocks": 1, "us": 0.5}, {"blocks": 10, "us": 2}])
        with self.assertRaises(ValueError):
            scale.rows_of("blocks", "1\t2\t3\n")

    def test_the_least_of_each_time_counts(self):
        self.assertEqual(scale.least([[{"blocks": 1, "us": 3}], [{"blocks": 1, "us": 2}]]), [{"blocks": 1, "us": 2}])


class Pictures(unittest.TestCase):
    def drawn(self, *reports):
        """The texts of each picture by file name."""
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, report in enumerate(reports):
                files.append(pathlib.Path(folder) / f"{number}.json")
                files[-1].write_text(json.dumps(report))
            subprocess.run([sys.executable, str(ROOT / "tools/bench-pictures"), *map(str, files), "--to", folder], check=True, capture_output=True)
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
        texts = self.drawn(STYLES)["bench-third.svg"]
        for words in ("saxpy & more", "1.50", "0.50", "1 thread", "2 threads"):
            self.assertIn(words, texts)

    def test_growth_has_a_curve_for_each_quantity(self):
        texts = self.drawn(SCALE)["bench-scale.svg"]
        for words in ("First launch", "instructions of PTX", "CPU time, ms", "peak of the process, MiB", "time of a block, ns", "Workers, on 2 cores", "computing"):
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
