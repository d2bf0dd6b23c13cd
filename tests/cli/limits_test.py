#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line in a process with a limited address space: with `ulimit -v`, and under valgrind.

usage: limits_test.py QUERN [-v] [TEST...]
"""
import re
import resource
import shutil
import unittest

from case import Case, KERNELS, QUERN, SAXPY

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
RUN = ["run", SAXPY, 1000, 2.0, "arange(1000, dtype=float32)", "ones(1000, float32)", "--grid", 4, "--block", 256]
SUM = "y  float32 (1000,)  [1.000e+00 3.000e+00 5.000e+00 ... 1.995e+03 1.997e+03 1.999e+03]"


def limited_to(size):
    """The limit of `ulimit -v`, for subprocess."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))


class Limits(Case):
    def reserved(self, **options):
        """Returns the address space that `quern doctor` reports: bytes and mode."""
        for finding in self.document("doctor", **options)["findings"]:
            if finding["subject"] == "addresses":
                number, unit, mode = re.fullmatch(r"(\d+) ([MG]iB) reserved by the CPU device, (wide|compact).*", finding["detail"]).groups()
                return int(number) * {"MiB": MIB, "GiB": GIB}[unit], mode
        self.fail("doctor says nothing of addresses")

    def test_samples_pass_under_a_limit_of_four_million_kibibytes(self):
        done = self.quern("test", KERNELS, "-k", "saxpy", env={"QUERN_CPU_MEMORY": "256M"}, preexec_fn=limited_to(4000000 * KIB))
        self.assertRegex(done.stdout, r"\n\d\d passed, 0 failed\n")
        # No size of memory is set, so the device takes as much as fits.
        self.assertIn(SUM, self.quern(*RUN, preexec_fn=limited_to(4000000 * KIB)).stdout)
        self.assertIn(SUM, self.quern(*RUN, env={"QUERN_CPU_WORKERS": "2"}, preexec_fn=limited_to(1200000 * KIB)).stdout)

    def test_the_doctor_says_what_is_reserved(self):
        reserved, mode = self.reserved()
        self.assertEqual(mode, "wide")
        self.assertGreater(reserved, 100 * GIB)
        least = {"QUERN_CPU_MEMORY": "16M", "QUERN_CPU_WORKERS": "1", "QUERN_CPU_ADDRESSES": "compact"}
        reserved, mode = self.reserved(env=least)
        self.assertEqual(mode, "compact")
        self.assertLess(reserved, 2 * GIB)
        reserved, mode = self.reserved(preexec_fn=limited_to(3 * GIB))
        self.assertEqual(mode, "compact")
        self.assertLess(reserved, 3 * GIB)

    def test_a_store_outside_ends_the_kernel_and_nothing_else(self):
        for at in [1 << 20, 1 << 31, 1 << 33, 1 << 40, -1 << 40]:
            with self.subTest(at=at):
                done = self.quern("run", "k.cu::store", f"int64({at})", "zeros(100, int32)", "--grid", 1, "--block", 32, status=1,
                                  env={"QUERN_CPU_ADDRESSES": "compact"})
                self.assertIn("CUDA_ERROR_ILLEGAL_ADDRESS", done.stderr)

    def test_what_does_not_fit_is_said_with_what_would(self):
        environment = {"QUERN_CPU_MEMORY": "3G", "QUERN_CPU_WORKERS": "2"}
        for words in (["devices"], RUN, ["test", KERNELS, "-k", "saxpy"]):
            done = self.quern(*words, status=1, env=environment, preexec_fn=limited_to(2 * GIB))
            self.assertIn("the CPU device needs ", done.stderr)
            self.assertIn("for 3072 MiB of memory and 2 worker(s), and this process may have ", done.stderr)
            self.assertIn("`ulimit -v` is 2048 MiB", done.stderr)
            self.assertEqual(done.stderr.count("the CPU device needs "), 1)
            self.assertNotIn("CUDA_ERROR", done.stderr)
            hint = re.search(r"raise `ulimit -v` to (\d+) at least, set QUERN_CPU_MEMORY to (\d+)M at most", done.stderr)
            self.assertTrue(hint, done.stderr)
        # The proposed value works; the program uses slightly more addresses when it compiles.
        environment["QUERN_CPU_MEMORY"] = f"{int(hint[2]) - 64}M"
        self.assertIn(SUM, self.quern(*RUN, env=environment, preexec_fn=limited_to(2 * GIB)).stdout)

    @unittest.skipUnless(shutil.which("valgrind"), "valgrind is not installed")
    def test_a_kernel_runs_under_valgrind(self):
        log = self.path("valgrind.log")
        done = self.quern(*RUN, program=["valgrind", f"--log-file={log}", "--error-exitcode=99", QUERN], timeout=400)
        self.assertIn(SUM, done.stdout)
        self.assertIn("ERROR SUMMARY: 0 errors", log.read_text())
        self.assertNotIn("client switching stacks", log.read_text())


if __name__ == "__main__":
    unittest.main()
