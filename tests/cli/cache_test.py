#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`quern cache`, and what a second start of `quern run` takes from it."""
import json
import pathlib
import tempfile
import unittest

from case import Case

KERNEL = 'extern "C" __global__ void twice(int n, float* x) { int i = threadIdx.x; if (i < n) x[i] *= 2; }\n'
PYTHON = """from numba import cuda, float32, void

@cuda.jit(void(float32[::1]))
def typed(x):
    x[0] += 1

@cuda.jit
def untyped(x):
    x[0] += 1
"""


class Cache(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name) / "cache"
        self.path("c.cu").write_text(KERNEL)

    def cached(self, *words, **options):
        return self.quern(*words, env={"QUERN_CACHE": "1", "QUERN_CACHE_DIR": str(self.cache)} | options.pop("more", {}), **options)

    def document(self, *words, **options):
        return json.loads(self.cached("cache", *words, "--json", **options).stdout)

    def entries(self, kind="ptx_image"):
        return [entry for entry in self.document("list")["entries"] if entry["kind"] == kind]

    def test_a_run_is_kept_and_listed(self):
        self.assertEqual(self.document("stats")["entry_count"], 0)
        first = self.cached("run", "c.cu", 4, "ones(4, float32)").stdout
        second = self.cached("run", "c.cu", 4, "ones(4, float32)").stdout
        self.assertIn("[2. 2. 2. 2.]", second)
        self.assertEqual(first.splitlines()[0], second.splitlines()[0])
        self.assertIn("compiled in 0.0 ms", second)
        (entry,) = self.entries()
        components = {row["name"]: row["value"] for row in entry["components"]}
        self.assertEqual(components["file"], "c.cu")
        self.assertEqual(components["target"], "compute_89 sm_0 driver 0")
        (code,) = self.entries("machine_code")
        self.assertIn({"name": "kernel", "value": "twice"}, code["components"])
        self.assertIn("twice, block ", self.cached("cache", "list").stdout)
        stats = self.document("stats")
        self.assertTrue(stats["on"])
        self.assertEqual(stats["directory"], str(self.cache))
        self.assertEqual(stats["max_bytes"], 2**30)
        self.assertIn("; 0 damaged", self.cached("cache", "stats").stdout)
        # The first run made PTX, machine code, facts about the kernel and about NVRTC; the second found them.
        self.assertEqual(stats["process_count"], 2)
        self.assertGreaterEqual(stats["hits"], 3)
        self.assertGreaterEqual(stats["writes"], 3)
        self.assertIn("2 processes needed ", self.cached("cache", "stats").stdout)

    def test_compile_times_add_up_and_are_zero_at_a_second_start(self):
        words = ("run", "c.cu", 4, "ones(4, float32)", "--json")
        parts = ("nvrtc_ms", "load_ms", "machine_code_ms")
        first = json.loads(self.cached(*words).stdout)
        self.assertTrue(all(first[part] > 0 for part in parts), first)
        self.assertAlmostEqual(first["compile_ms"], sum(first[part] for part in parts))
        second = json.loads(self.cached(*words).stdout)
        self.assertEqual([second[part] for part in ("compile_ms", *parts)], [0, 0, 0, 0])
        other = json.loads(self.cached(*words, "--block", 64).stdout)
        self.assertEqual((other["nvrtc_ms"], other["load_ms"]), (0, 0))
        self.assertGreater(other["machine_code_ms"], 0)

    def test_why_says_what_differs(self):
        self.assertEqual(self.document("why", "c.cu")["nearest"], "")
        self.cached("compile", "c.cu")
        self.assertTrue(self.document("why", "c.cu")["kept"])
        changed = self.document("why", "c.cu", "-DX=1")
        self.assertFalse(changed["kept"])
        self.assertEqual([row["name"] for row in changed["differences"]], ["options"])
        self.path("c.cu").write_text(KERNEL + "\n")
        self.assertEqual([row["name"] for row in self.document("why", "c.cu")["differences"]], ["source"])
        self.path("d.cu").write_text(KERNEL + "\n")
        self.assertEqual([row["name"] for row in self.document("why", "c.cu", "d.cu")["differences"]], ["file"])
        self.assertEqual(self.document("why", "c.cu", "c.cu")["differences"], [])
        key = self.entries()[0]["key"]
        self.assertEqual([row["name"] for row in self.document("why", key[:12], "c.cu")["differences"]], ["source"])

    def test_why_names_the_header_that_changed(self):
        self.path("h.h").write_text("#define N 1\n")
        self.path("c.cu").write_text('#include "h.h"\n' + KERNEL)
        self.cached("compile", "c.cu")
        self.path("h.h").write_text("#define N 2\n")
        self.assertEqual([row["name"] for row in self.document("why", "c.cu")["differences"]], ["included file h.h"])

    def test_why_says_what_is_compiled_each_time(self):
        self.path("c.cu").write_text("#define H <quern/device.cuh>\n#include H\n" + KERNEL)
        self.assertIn("macro", self.document("why", "c.cu")["uncached_reason"])
        self.assertIn("is compiled each time", self.cached("cache", "why", "c.cu").stdout)

    def test_verify_finds_damage_and_clear_empties(self):
        self.cached("compile", "c.cu")
        self.assertEqual(self.document("verify")["damaged"], [])
        (file,) = self.cache.glob("v1/*/*.ptx_image-1")
        file.write_bytes(file.read_bytes()[:-1])
        done = self.cached("cache", "verify", "--json", status=1)
        self.assertEqual(json.loads(done.stdout)["damaged"], [f"{file.parent.name}/{file.name}"])
        self.assertIn("is damaged", done.stderr)
        self.assertEqual(self.document("stats")["set_aside_count"], 1)
        self.cached("compile", "c.cu")
        self.assertEqual(len(self.entries()), 1)
        self.cached("cache", "clear")
        self.assertEqual(self.document("stats")["entry_count"] + self.document("stats")["set_aside_count"], 0)

    def test_warm_fills_it_for_runs(self):
        folder = self.path("some")
        folder.mkdir(exist_ok=True)
        (folder / "one.cu").write_text(KERNEL)
        (folder / "wrong.cu").write_text("__global__ void k() { wrong; }\n")
        done = self.cached("cache", "warm", "some", "--json", status=1)
        (folder / "typed.py").write_text(PYTHON)
        done = self.cached("cache", "warm", "some", "--json", status=1)
        report = json.loads(done.stdout)
        self.assertEqual((report["file_count"], report["compiled_count"]), (3, 2))
        self.assertEqual([row["file"] for row in report["failed"]], ["some/wrong.cu"])
        self.assertEqual([row["kernel"] for row in report["skipped"]], ["untyped"])
        self.assertEqual(len(self.entries()), 2)
        for kernel, words in (("some/typed.py::typed", []), ("some/one.cu", [4])):
            document = json.loads(self.cached("run", kernel, *words, "ones(4, float32)", "--json").stdout)
            self.assertEqual((document["nvrtc_ms"], document["load_ms"] > 0, document["machine_code_ms"] > 0), (0, True, True), kernel)
            self.assertIn("compiled in 0.0 ms", self.cached("run", kernel, *words, "ones(4, float32)").stdout)
        self.assertEqual(len(self.entries("failed_compile")), 1)

    def test_off_and_read_only(self):
        off = {"more": {"QUERN_CACHE": "0"}}
        self.assertFalse(self.document("stats", **off)["on"])
        self.assertIn("QUERN_CACHE=0", self.cached("cache", "stats", **off).stdout)
        self.cached("compile", "c.cu", **off)
        self.assertFalse(self.cache.exists())
        self.cached("compile", "c.cu", more={"QUERN_CACHE": "ro"})
        self.assertFalse(self.cache.exists())
        self.assertEqual(self.cached("cache", "warm", ".", status=None, **off).returncode, 1)

    def test_a_folder_that_cannot_be_used_is_told_once_and_kernels_run(self):
        self.cache.mkdir(mode=0o777)
        self.cache.chmod(0o777)
        done = self.cached("run", "c.cu", 4, "ones(4, float32)")
        self.assertIn("[2. 2. 2. 2.]", done.stdout)
        self.assertEqual(done.stderr.count("other users may write to it"), 1)
        (finding,) = [row for row in json.loads(self.cached("doctor", "--json").stdout)["findings"] if row["subject"] == "compile cache"]
        self.assertEqual(finding["state"], "broken")
        self.fails("cache", "list", env={"QUERN_CACHE": "1", "QUERN_CACHE_DIR": str(self.cache)}, says=["other users may write"])


if __name__ == "__main__":
    unittest.main()
