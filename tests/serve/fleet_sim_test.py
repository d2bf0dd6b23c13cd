#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/fleet-sim's model against results that follow from its rules by hand.

usage: fleet_sim_test.py
"""
import importlib.machinery
import importlib.util
import json
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = str(ROOT / "tools/fleet-sim")
LOADER = importlib.machinery.SourceFileLoader("fleet_sim", PROGRAM)
sys.dont_write_bytecode = True
fleet_sim = importlib.util.module_from_spec(importlib.util.spec_from_loader("fleet_sim", LOADER))
LOADER.exec_module(fleet_sim)

# A compile takes a second, an answer a millisecond of a core and 1,000 bytes, the store nothing.
TIMES = {"compile_s": [1.0], "hit_s": [0.002], "hit_cpu_s": 0.001, "store_s": [0.0], "request_bytes": [100], "answer_bytes": [1000], "stored_bytes": [500]}


def model(*words, times=None):
    sys.argv = [PROGRAM, "--rtt", "0", "--gbit", "1e6", "--cores", "1", "--workers", "1", "--servers", "1", "--order", "same", *map(str, words)]
    options = fleet_sim.read_arguments()
    return fleet_sim.Model(options, {**TIMES, **(times or {})}).run()


class Model(unittest.TestCase):
    def test_one_host_waits_for_each_compile(self):
        run = model("--hosts", 1, "--kernels", 5)
        self.assertEqual(run.compiles, 5)
        # The answer, and before it the reading of the request, take 1 ms each.
        self.assertAlmostEqual(run.done[0], 5 * (1 + 0.002), delta=1e-4)

    def test_equal_requests_are_one_compile_and_answers_take_turns_on_a_core(self):
        run = model("--hosts", 100, "--kernels", 1)
        self.assertEqual((run.compiles, len(run.done)), (1, 100))
        self.assertAlmostEqual(min(run.done), 1.002, delta=1e-4)
        self.assertAlmostEqual(max(run.done), 1.001 + 0.1, delta=1e-4)
        self.assertAlmostEqual(max(model("--hosts", 100, "--kernels", 1, "--cores", 4).done), 1.001 + 0.025, delta=1e-4)

    def test_a_lock_in_the_store_makes_one_compile_of_all_servers(self):
        hosts = ("--hosts", 30, "--kernels", 20, "--servers", 3, "--order", "random", "--workers", 4)
        self.assertEqual(model(*hosts).compiles, 20)
        self.assertGreater(model(*hosts, "--no-lock").compiles, 20)
        self.assertEqual(model(*hosts, "--no-lock", "--servers", 1).compiles, 20)

    def test_another_server_asks_again_after_growing_pauses(self):
        run = model("--hosts", 2, "--kernels", 1, "--servers", 2)
        # 2 ms, 3 ms, 4.5 ms, ... at most 100 ms: the first question after 1 s is within 100 ms of it.
        pauses, at = 0.002, 0.001
        while at < 1.001:
            at, pauses = at + pauses, min(pauses * 1.5, 0.1)
        self.assertAlmostEqual(max(run.done), at + 0.001, delta=2e-3)
        self.assertEqual(run.compiles, 1)

    def test_a_full_queue_sends_hosts_to_the_next_server_and_then_home(self):
        run = model("--hosts", 10, "--kernels", 10, "--order", "random", "--max-queue", 2)
        self.assertGreaterEqual(run.local + run.compiles, 10)
        self.assertGreater(run.local, 0)
        self.assertGreater(run.servers[0].refused, 0)
        self.assertEqual(run.servers[0].queue_peak, 2)
        self.assertEqual(len(run.latencies), 100)
        only = model("--hosts", 10, "--kernels", 10, "--order", "random", "--max-queue", 2, "--only")
        self.assertEqual(only.local, 0)
        self.assertEqual(len(only.latencies), 100)

    def test_connections_are_bounded(self):
        run = model("--hosts", 10, "--kernels", 3, "--max-connections", 4)
        self.assertEqual(len(run.done), 10)
        self.assertGreater(run.servers[0].full, 0)
        self.assertGreaterEqual(run.local, 6)  # those that found no place at first
        self.assertEqual(run.servers[0].connections, 0)

    def test_the_network_is_a_bound(self):
        run = model("--hosts", 100, "--kernels", 10, "--gbit", 0.008, times={"compile_s": [0.001], "hit_cpu_s": 1e-6})
        # 1,000 answers of 1,000 bytes at a million bytes a second.
        self.assertAlmostEqual(max(run.done), 1.0, delta=0.02)
        self.assertEqual(run.report()["sent_gb"], 0.001)

    def test_sizes_and_counts(self):
        report = model("--hosts", 7, "--kernels", 3, "--distinct", 9, "--order", "zipf").report()
        self.assertEqual(report["compiles"], report["distinct_kernels"])
        self.assertEqual(report["store_mb"], round(report["distinct_kernels"] * 500 / 1e6, 3))

    def test_the_measured_times_are_whole(self):
        times = json.loads(fleet_sim.TIMES.read_text())
        self.assertEqual(set(times) - {"client_cpu_s"}, set(TIMES))
        for name, value in times.items():
            self.assertTrue(all(each > 0 for each in (value if isinstance(value, list) else [value])), name)


if __name__ == "__main__":
    unittest.main()
