#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bundles: `quern cache warm -o`, and programs that start from them without NVRTC."""
import json
import os
import pathlib
import shutil
import tempfile
import unittest

from case import Case

KERNEL = 'extern "C" __global__ void twice(int n, float* x) { int i = threadIdx.x; if (i < n) x[i] *= 2; }\n'
BOUNDED = 'extern "C" __global__ void __launch_bounds__(64) half(float* x) { x[threadIdx.x] /= 2; }\n'
TYPED = """from numba import cuda, float32, void

@cuda.jit(void(float32[::1]))
def added(x):
    x[cuda.threadIdx.x] += 1

@cuda.jit
def untyped(x):
    x[cuda.threadIdx.x] += 2
"""
KEY = "ab" * 32


class Bundle(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.place = pathlib.Path(folder.name)
        self.sources("k")

    def sources(self, name, text=KERNEL):
        folder = self.place / name
        (folder / "deep").mkdir(parents=True)
        (folder / "a.cu").write_text(text)
        (folder / "deep" / "b.cu").write_text('#include "h.h"\n' + BOUNDED)
        (folder / "deep" / "h.h").write_text("#define H 1\n")
        (folder / "t.py").write_text(TYPED)
        return folder

    def environment(self, **more):
        return {"QUERN_CACHE": "1", "QUERN_CACHE_DIR": str(self.place / "cache"), "QUERN_DEVICE": "cpu"} | more

    def warm(self, source="k", output="b.qbundle", *words, status=0, **more):
        done = self.quern("cache", "warm", self.place / source, "-o", self.place / output, "--json", *words,
                          env=self.environment(**more), status=status)
        return json.loads(done.stdout)

    def run_with(self, bundle, *words, status=0, **more):
        """Without NVRTC, and with an empty cache."""
        env = self.environment(QUERN_NVRTC="/nonexistent/libnvrtc.so", QUERN_CACHE_BUNDLES=str(self.place / bundle), **more)
        env["QUERN_CACHE_DIR"] = tempfile.mkdtemp(dir=self.place)
        return self.quern("run", *words, env=env, status=status)

    def bytes(self, name):
        return (self.place / name).read_bytes()

    def test_a_program_starts_from_a_bundle_without_nvrtc(self):
        report = self.warm("k", "b.qbundle", "--block", 32)
        self.assertEqual((report["file_count"], report["compiled_count"], report["failed"]), (3, 3, []))
        self.assertEqual([(row["file"], row["kernel"]) for row in report["skipped"]], [("t.py", "untyped")])
        file = self.place / "k" / "a.cu"
        self.assertIn("[2. 2.]", self.run_with("b.qbundle", file, 2, "ones(2, float32)", "--block", 32).stdout)
        half = self.place / "k" / "deep" / "b.cu"
        self.assertIn("0.5 0.5]", self.run_with("b.qbundle", half, "ones(64, float32)", "--block", 64).stdout)
        typed = f"{self.place}/k/t.py::added"
        self.assertIn("[2. 2.]", self.run_with("b.qbundle", typed, "ones(2, float32)", "--block", 2).stdout)
        untyped = f"{self.place}/k/t.py::untyped"
        self.assertIn("NVRTC", self.run_with("b.qbundle", untyped, "ones(2, float32)", status=1).stderr)

    def test_given_types_make_more_kernels(self):
        report = self.warm("k", "b.qbundle", "--sig", "untyped=float32[::1]", "--block", 2)
        self.assertEqual(report["skipped"], [])
        untyped = f"{self.place}/k/t.py::untyped"
        self.assertIn("[3. 3.]", self.run_with("b.qbundle", untyped, "ones(2, float32)", "--block", 2).stdout)

    def test_equal_sources_give_equal_bytes(self):
        shutil.copytree(self.place / "k", self.place / "else" / "where")
        words = ["--block", 32, "--block", "8x8", "--target", "cpu", "--target", "sm_90"]
        self.warm("k", "one", *words, "-j", 1)
        for file in (self.place / "else").rglob("*.*"):
            os.utime(file, (1, 1))
        self.warm("else/where", "two", *words, "-j", 4, QUERN_CACHE="0")
        self.assertEqual(self.bytes("one"), self.bytes("two"))
        self.assertNotIn(str(self.place).encode(), self.bytes("one"))
        (self.place / "k" / "a.cu").write_text(KERNEL + " ")
        self.warm("k", "two", *words)
        self.assertNotEqual(self.bytes("one"), self.bytes("two"))

    def test_targets_decide_what_is_made(self):
        self.warm("k", "ptx", "--target", "compute_80", "--block", 32)
        kinds = lambda name: {row["kind"] for row in json.loads(
            self.quern("cache", "list", "--bundle", self.place / name, "--json").stdout)["entries"]}
        self.assertEqual(kinds("ptx"), {"ptx_image", "toolkit_facts"})
        self.warm("k", "cpu", "--target", "cpu:avx2")
        self.assertEqual(kinds("cpu"), {"ptx_image", "toolkit_facts", "kernel_facts", "machine_code"})
        self.fails("cache", "warm", self.place / "k", "-o", self.place / "no", "--target", "sm_9x", status=2, says=["sm_9x", "targets are"])
        self.assertFalse((self.place / "no").exists())

    def test_failures_are_told_and_the_rest_is_kept(self):
        (self.place / "k" / "wrong.cu").write_text("__global__ void k() { wrong; }\n")
        report = self.warm("k", "b.qbundle", "--block", 32, status=1)
        self.assertEqual([row["file"] for row in report["failed"]], ["wrong.cu"])
        self.assertEqual(report["compiled_count"], 3)
        file = self.place / "k" / "a.cu"
        self.assertIn("[2. 2.]", self.run_with("b.qbundle", file, 2, "ones(2, float32)", "--block", 32).stdout)
        text = self.quern("cache", "warm", self.place / "k", "-o", self.place / "c", env=self.environment(), status=1).stdout
        self.assertIn('identifier "wrong" is undefined', text)
        self.assertIn("4 files: 3 modules compiled, 1 failed, ", text)

    def test_signed_bundles(self):
        keys = self.place / "keys"
        keys.write_text(KEY + "\n")
        keys.chmod(0o600)
        self.warm("k", "signed", "--key", keys, "--block", 32)
        self.warm("k", "plain", "--block", 32)
        verify = lambda name, *words, status=0: self.quern("cache", "verify", self.place / name, *words, status=status)
        self.assertIn("signature good", verify("signed", "--key", keys).stdout)
        self.assertIn("signed, not checked", verify("signed").stdout)
        self.assertIn("not signed", verify("plain").stdout)
        self.assertIn("is not signed", verify("plain", "--key", keys, status=1).stderr)
        words = [self.place / "k" / "a.cu", 2, "ones(2, float32)", "--block", 32]
        key = {"QUERN_CACHE_BUNDLE_KEY": str(keys)}
        self.assertIn("[2. 2.]", self.run_with("signed", *words, **key).stdout)
        refused = self.run_with("plain", *words, status=1, **key).stderr
        self.assertEqual(refused.count("is not signed"), 1)
        keys.write_text("cd" * 32 + "\n")
        self.assertIn("not in the key file", self.run_with("signed", *words, status=1, **key).stderr)
        keys.write_text("cd" * 32 + "\n" + KEY + "\n")  # rotation: the former key is second
        self.assertIn("[2. 2.]", self.run_with("signed", *words, **key).stdout)
        keys.chmod(0o644)
        self.assertIn("others can read", self.run_with("signed", *words, status=1, **key).stderr)

    def test_damage_is_found_and_costs_no_results(self):
        self.warm("k", "b.qbundle", "--block", 32)
        whole = self.bytes("b.qbundle")
        words = [self.place / "k" / "a.cu", 2, "ones(2, float32)", "--block", 32]
        for name, bytes_ in (("cut", whole[:-1]), ("changed", whole[:100] + b"x" + whole[101:]), ("empty", b""), ("text", b"hello " * 99)):
            (self.place / name).write_bytes(bytes_)
            done = self.quern("run", *words, env=self.environment(QUERN_CACHE_BUNDLES=str(self.place / name)))
            self.assertIn("[2. 2.]", done.stdout)
            self.assertEqual(done.stderr.count("cannot use bundle"), 1, name)
            self.quern("cache", "verify", self.place / name, status=1)
        (self.place / "body").write_bytes(whole[:-20] + bytes(20))
        done = self.quern("cache", "verify", self.place / "body", "--json", status=1)
        self.assertEqual(len(json.loads(done.stdout)["damaged"]), 1)

    def test_stats_and_why_know_bundles(self):
        self.warm("k", "b.qbundle", "--block", 32)
        env = self.environment(QUERN_CACHE_BUNDLES=f"{self.place}/b.qbundle:/nowhere/x")
        stats = json.loads(self.quern("cache", "stats", "--json", env=env).stdout)["bundles"]
        self.assertEqual([bool(row["refusal"]) for row in stats], [False, True])
        self.assertGreater(stats[0]["entry_count"], 5)
        text = self.quern("cache", "stats", env=env).stdout
        self.assertIn("bundle /nowhere/x: not used: ", text)
        file = self.place / "k" / "a.cu"
        self.assertIn("is in the bundle", self.quern("cache", "why", file, env=env).stdout)
        file.write_text(KERNEL + " ")
        why = self.quern("cache", "why", file, env=env).stdout
        self.assertIn("is not in the bundle", why)


if __name__ == "__main__":
    unittest.main()
