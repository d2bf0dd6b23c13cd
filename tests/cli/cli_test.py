#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the command line on the CPU device: its output, files and messages. Expected values come from NumPy.

usage: cli_test.py QUERN [-v] [TEST...]
"""
import hashlib
import json
import os
import pathlib
import re
import signal
import subprocess
import time
import unittest

import numpy as np

from case import Case, KERNELS, PARTICLE, QUERN, SAXPY, SOURCE


class Run(Case):
    def test_arrays_are_saved_as_numpy_would(self):
        x = np.random.default_rng(1).random((1000,), np.float32)
        y = np.random.default_rng(2).random((1000,), np.float32)
        self.quern("run", SAXPY, "#2", "-2.5", "random((1000,), float32, seed=1)", "random((1000,), float32, seed=2)", "--save", "y=y.npy")
        np.testing.assert_allclose(np.load(self.path("y.npy")), np.float32(-2.5) * x + y, rtol=1e-6, atol=1e-6)

    def test_the_grid_covers_the_first_array(self):
        document = self.document("run", "k.cu::twice", 1000, "ones(1000, float32)", "zeros(1000, float32)", "--block", 64)
        self.assertEqual((document["grid"], document["block"]), ([16, 1, 1], [64, 1, 1]))
        document = self.document("run", "k.cu::fill<int>", 3, "zeros((20, 50), int32)", "--block", "16x16")
        self.assertEqual(document["grid"], [4, 2, 1])

    def test_slices_transposes_and_fortran_order_arrive_in_c_order(self):
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        np.save(self.path("x.npy"), x)
        np.save(self.path("f.npy"), np.asfortranarray(x))
        np.save(self.path("big.npy"), x.astype(">f4"))
        for text, expected in [("x.npy", x), ("f.npy", x), ("big.npy", x), ("x.npy.T", x.T), ("f.npy.T", x.T), ("x.npy[::2, 1:]", x[::2, 1:]),
                               ("x.npy[::-1, -1]", x[::-1, -1]), ("x.npy[..., ::2].T", x[..., ::2].T)]:
            with self.subTest(text):
                n = expected.size
                self.quern("run", "k.cu::twice", n, text, f"zeros({expected.shape}, float32)", "--save", "y=y.npy", "--save", "#1=in.npy")
                np.testing.assert_array_equal(np.load(self.path("y.npy")), 2 * expected)
                np.testing.assert_array_equal(np.load(self.path("in.npy")), expected)

    def test_names_stand_for_parameters(self):
        document = self.document("run", SAXPY, "y=full(10, 1, float32)", "n=10", "x=ones(10, float32)", "a=3")
        self.assertEqual([a["name"] for a in document["arguments"]], ["x", "y"])
        self.assertEqual(document["arguments"][1]["last"], 4.0)

    def test_records_go_by_value_and_in_arrays(self):
        p = np.zeros(5, PARTICLE)
        p["position"] = np.arange(15).reshape(5, 3)
        by = np.array([(2.0, [1, 2, 3])], PARTICLE)
        np.save(self.path("p.npy"), p)
        np.save(self.path("by.npy"), by)
        self.quern("run", "k.cu::move", 5, "value(by.npy)", "p.npy", "--save", "p=moved.npy")
        moved = np.load(self.path("moved.npy"))
        self.assertEqual(moved.dtype.itemsize, 32)
        np.testing.assert_array_equal(moved["position"], p["position"] + 2.0 * by["position"])

    def test_half_precision_and_templates(self):
        x = np.arange(8, dtype=np.float16)
        np.save(self.path("h.npy"), x)
        self.quern("run", "k.cu::halves", 8, "h.npy", "--save", "x=h2.npy")
        np.testing.assert_array_equal(np.load(self.path("h2.npy")), 2 * x)
        self.quern("run", "k.cu::fill<unsigned char>", 200, "zeros(32, uint8)", "--block", 32, "--save", "x=u.npy")
        np.testing.assert_array_equal(np.load(self.path("u.npy")), np.full(32, 200, np.uint8))

    def test_the_document_holds_what_it_should(self):
        document = self.document("run", SAXPY, 4, 2, "ones(4, float32)", "full(4, 2, float32)", "--repeat", 3, "--save", "#3=y.npy")
        self.assertEqual(document["kernel"], "saxpy")
        self.assertEqual(document["device"], "cpu")
        self.assertEqual(document["launches"], 4)
        y = np.full(4, 10, np.float32)  # 2 + 4 * 2
        self.assertEqual(document["arguments"][1], {"name": "y", "dtype": "float32", "shape": [4], "first": 10.0, "last": 10.0,
                                                    "sha256": hashlib.sha256(y.tobytes()).hexdigest()})
        self.assertEqual(document["outputs"], {"#3": "y.npy"})
        self.assertEqual(document["diagnostics"], [])
        self.assertLessEqual(document["kernel_min_ms"], document["kernel_median_ms"])
        np.testing.assert_array_equal(np.load(self.path("y.npy")), y)

    def test_numbers_that_json_lacks_are_strings(self):
        document = self.document("run", "k.cu::fill<double>", "inf", "full(2, nan, float64)", "--block", 1, "--grid", 1)
        self.assertEqual([document["arguments"][0][k] for k in ("first", "last")], ["inf", "nan"])

    def test_device_printf_comes_before_the_results(self):
        text = self.quern("run", "k.cu::hello", 2, "--grid", 2, "--block", 32).stdout
        self.assertEqual(sorted(text.splitlines()[:2]), ["hello from block 0 of 2", "hello from block 1 of 2"])

    def test_a_line_that_the_kernel_leaves_without_an_end_is_ended(self):
        self.path("open.cu").write_text('extern "C" __global__ void open(int* x) { printf("no end"); x[0] = 5 / x[0]; assert(x[0] > 0); }')
        words = ["run", "open.cu", "ones(1, int32)", "--block", 1]
        self.assertTrue(self.quern(*words).stdout.startswith("no end\nx  int32 (1,)  [5]\n"))
        self.assertEqual(self.quern(*words, "--quiet").stdout, "no end")
        self.assertEqual(self.quern(*words, "--json").stderr, "no end\n")
        self.assertEqual(self.quern("run", "open.cu", "full(1, -1, int32)", "--block", 1, status=1).stdout, "no end\n")
        self.path("open.case.toml").write_text('kernel = "open.cu"\n[[case]]\nname = "it"\nargs = ["ones(1, int32)"]\nbench = { flops = "1" }\n'
                                               'block = "1"\ngrid = "1"\nexpect = { "x" = { value = 5 } }\n')
        self.assertRegex(self.quern("test", "open.case.toml").stdout, r"^no end\nok ")
        self.assertRegex(self.quern("bench", "open.case.toml", "--repeat", 3).stdout, r"^(no end)+\ncase ")

    def test_values_are_printed_as_numpy_prints_them(self):
        text = self.quern("run", "k.cu::shift", 0.5, "arange(0, 3, 1, float64)", "--block", 3).stdout
        self.assertIn("x  float64 (3,)  [0.5 1.5 2.5]", text)
        self.assertEqual(self.quern("run", "k.cu::shift", 0.5, "zeros(3)", "--block", 3, "--quiet").stdout, "")

    STRIDES = """from numba import cuda
@cuda.jit
def strides(a, out):
    out[0] = a.strides[0]
    out[1] = a.strides[1]
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            a[i, j] = 10 * a[i, j]
"""

    def test_kernels_that_know_strides_see_those_of_numpy(self):
        self.path("strides.py").write_text(self.STRIDES)
        self.path("strides.cu").write_text("#include <quern/device.cuh>\n"
                                           'extern "C" __global__ void strides(quern::array<float, 2> a, long long* out) {\n'
                                           "  for (int k = 0; k < 2; ++k) out[k] = a.strides_bytes[k];\n"
                                           "  for (int i = 0; i < a.extents[0]; ++i) for (int j = 0; j < a.extents[1]; ++j) a(i, j) *= 10;\n}\n")
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        np.save(self.path("c.npy"), x)
        np.save(self.path("f.npy"), np.asfortranarray(x))
        for text, expected in [("c.npy", x), ("f.npy", np.asfortranarray(x)), ("c.npy.T", x.T), ("f.npy.T", np.asfortranarray(x).T),
                               ("c.npy[::2, 1:]", x[::2, 1:]), ("f.npy[::-1, ::-2]", np.asfortranarray(x)[::-1, ::-2]), ("c.npy[:0]", x[:0])]:
            for kernel in ("strides.py", "strides.cu"):
                with self.subTest(text, kernel=kernel):
                    self.quern("run", kernel, text, "zeros(2, int64)", "--block", 1, "--grid", 1, "--save", "a=a.npy", "--save", "out=out.npy")
                    saved = np.load(self.path("a.npy"))
                    np.testing.assert_array_equal(saved, 10 * expected)
                    np.save(self.path("numpy.npy"), expected)  # what NumPy makes of its order
                    self.assertEqual(saved.flags.f_contiguous, np.load(self.path("numpy.npy")).flags.f_contiguous)
                    if expected.size:
                        self.assertEqual(np.load(self.path("out.npy")).tolist(), list(expected.strides))

    def test_an_empty_grid_runs_nothing_and_says_so(self):
        words = ["run", "k.cu::fill<int>", 7, "ones(4, int32)"]
        for grid in ("0", "0x3", "4x0"):
            text = self.quern(*words, "--grid", grid, "--repeat", 2).stdout
            self.assertIn("[1 1 1 1]", text)
            self.assertIn("nothing ran: the grid has no blocks", text)
            self.assertNotIn("launches", text)
        self.assertIn("nothing ran", self.quern("run", "k.cu::fill<int>", 7, "zeros(0, int32)").stdout)
        document = self.document(*words, "--grid", 0)
        self.assertEqual((document["launches"], document["kernel_min_ms"], document["kernel_median_ms"]), (0, None, None))
        self.path("empty.case.toml").write_text('kernel = "k.cu::fill<int>"\n' + "".join(
            f'[[case]]\nname = "grid {i}"\nargs = ["7", "ones(4, int32)"]\ngrid = {grid}\nexpect = {{ "x" = {{ value = {value} }} }}\n'
            for i, (grid, value) in enumerate([('"0"', 1), ("0", 1), ('"1x0"', 1), ("1", 7)])).replace("grid = 1\n", "grid = 1\nblock = 4\n"))
        text = self.quern("test", "empty.case.toml").stdout
        self.assertIn("4 passed, 0 failed", text)
        self.assertEqual(text.count("nothing ran: the grid has no blocks"), 3)

    def test_nothing_to_do_is_legal(self):
        self.quern("run", "k.cu::twice", 0, "zeros(0, float32)", "zeros((0, 3), float32)")
        self.quern("run", "k.cu::twice", 0, "ones(4, float32)", "zeros(4, float32)", "--grid", "0x3")

    def test_ptx_runs_by_position(self):
        self.quern("compile", SAXPY, "-o", "saxpy.ptx")
        document = self.document("run", "saxpy.ptx", 10, 2, "ones(10, float32)", "ones(10, float32)")
        self.assertEqual([a["name"] for a in document["arguments"]], ["#2", "#3"])
        self.assertEqual(document["arguments"][1]["first"], 3.0)

    def test_options_reach_nvrtc(self):
        self.path("d.cu").write_text('#include "v.h"\nextern "C" __global__ void d(int* x) { *x = N + V; }\n')
        self.path("inc").mkdir(exist_ok=True)
        self.path("inc/v.h").write_text("#define V 2\n")
        document = self.document("run", "d.cu", "zeros(1, int32)", "--block", 1, "-D", "N=40", "-I", "inc", "--option=--fmad=false", "--fastmath")
        self.assertEqual(document["arguments"][0]["first"], 42)

    def test_a_picture_is_written(self):
        self.quern("run", "k.cu::fill<int>", 7, "zeros((8, 16), int32)", "--grid", 1, "--block", 16, "--show", "image", "x=p.png")
        self.assertEqual(self.path("p.png").read_bytes()[:8], b"\x89PNG\r\n\x1a\n")

    def test_a_link_is_written_through_and_a_long_name_is_a_name(self):
        self.path("target.npy").write_bytes(b"before")
        for link, target in [("link.npy", "target.npy"), ("dangling.npy", "new.npy")]:
            self.path(link).unlink(missing_ok=True)
            self.path(link).symlink_to(target)
            self.quern("run", "k.cu::fill<int>", 7, "zeros(4, int32)", "--save", f"x={link}")
            self.assertTrue(self.path(link).is_symlink())
            np.testing.assert_array_equal(np.load(self.path(target)), np.full(4, 7, np.int32))
        self.path("link.ptx").symlink_to("target.ptx")
        self.quern("compile", "k.cu", "-o", "link.ptx")
        self.assertTrue(self.path("link.ptx").is_symlink())
        self.assertIn(".entry", self.path("target.ptx").read_text())
        long = "n" * 248
        self.quern("run", "k.cu::fill<int>", 7, "zeros(4, int32)", "--save", f"x={long}.npy")
        self.quern("compile", "k.cu", "-o", f"{long}.ptx")
        self.assertIn(".entry", self.quern("compile", "k.cu", "-o", "/dev/stdout").stdout)
        self.assertEqual([p.name for p in pathlib.Path(self.folder.name).iterdir() if p.name.endswith(".tmp")], [])

    def test_a_file_without_end_ends(self):
        self.path("endless.npy").symlink_to("/dev/zero")
        self.fails("run", "k.cu::fill<int>", 7, "endless.npy", says=["endless.npy"])

    def test_a_byte_order_mark_is_skipped(self):
        mark = b"\xef\xbb\xbf"
        self.quern("compile", "k.cu::twice", "-o", "plain.ptx")
        self.path("mark.cu").write_bytes(mark + SOURCE.encode())
        self.path("mark.ptx").write_bytes(mark + self.path("plain.ptx").read_bytes())
        self.path("mark.py").write_bytes(mark + b"from numba import cuda\n@cuda.jit\ndef twice(n, x, y):\n    y[0] = 2 * x[0]\n")
        for name in ("mark.cu", "mark.ptx", "mark.py"):
            self.assertEqual(self.document("run", f"{name}::twice", 1, "ones(1, float32)", "zeros(1, float32)", "--block", 1)["arguments"][1]["first"], 2)

    def test_streams_and_cooperative_launches(self):
        for option in ("--stream", "--cooperative", "--shared=60000"):
            document = self.document("run", "k.cu::twice", 9, "ones(9, float32)", "zeros(9, float32)", option)
            self.assertEqual(document["arguments"][1]["last"], 2.0)


class Signals(Case):
    def catches(self, process, number):
        """True if the process has a handler for the signal; None if it has ended."""
        try:
            status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
        except OSError:
            return None
        caught = re.search(r"SigCgt:\s*(\w+)", status)
        return None if process.poll() is not None else bool(caught and int(caught.group(1), 16) >> (number - 1) & 1)

    def test_ctrl_c_ends_the_program_by_its_signal_while_nvrtc_reads_a_source(self):
        self.path("long.cu").write_text("".join(f"static __device__ int f{i}(int x) {{ return x + {i}; }}\n" for i in range(200000)) +
                                        'extern "C" __global__ void k(int* x) { x[0] = f7(x[0]); }\n')
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen([QUERN, "compile", "long.cu"], cwd=self.folder.name, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            while (caught := self.catches(process, number)) is False:
                time.sleep(0.002)
            self.assertTrue(caught, "NVRTC had no handler")
            process.send_signal(number)
            self.assertEqual(process.wait(60), -number)

    def test_a_signal_that_is_ignored_stays_ignored(self):
        process = subprocess.Popen([QUERN, "compile", SAXPY], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        for _ in range(20):
            process.send_signal(signal.SIGINT)
            time.sleep(0.005)
        self.assertIn(b".entry saxpy", process.communicate(timeout=60)[0])
        self.assertEqual(process.returncode, 0)


class Others(Case):
    def test_help(self):
        self.assertIn("run", self.quern("--help").stdout)
        for command in ("run", "compile", "test", "bench", "cache stats", "devices", "doctor"):
            self.assertIn("--json", self.quern(*command.split(), "--help").stdout)
        self.assertTrue(self.quern("--version").stdout.startswith("quern 0."))

    def test_every_stage_is_shown(self):
        self.assertEqual(self.quern("compile", "k.cu", "--emit", "cuda").stdout, SOURCE)
        self.assertIn(".entry twice", self.quern("compile", "k.cu").stdout)
        for stage in ("simt", "llvm", "asm"):
            self.assertIn("twice", self.quern("compile", "k.cu::twice", "--emit", stage, "--block", "64").stdout)
        self.fails("compile", "k.cu", "--emit", "asm", status=2, says=["name one"])
        self.fails("compile", "k.cu", "--emit", "sass", status=2, says=["sass"])

    def test_the_kernel_is_shown_as_a_pass_leaves_it(self):
        self.assertNotIn("phi", self.quern("compile", "k.cu::twice", "--emit", "simt=translate").stdout)
        self.assertIn("kernel twice", self.quern("compile", "k.cu::twice", "--emit", "simt=close_loops").stdout)
        self.assertIn("alloca", self.quern("compile", "k.cu::twice", "--emit", "llvm=emit_llvm").stdout)
        self.assertNotIn("alloca", self.quern("compile", "k.cu::twice", "--emit", "llvm=promote_slots").stdout)
        self.fails("compile", "k.cu::twice", "--emit", "simt=nosuch", status=2, says=["no pass 'nosuch'", "build_ssa, ", "analyse_full"])
        self.fails("compile", "k.cu::twice", "--emit", "simt=promote_slots", status=2, says=["no pass 'promote_slots'"])
        self.fails("compile", "k.cu::twice", "--emit", "llvm=nosuch", status=2, says=["emit_llvm, "])
        self.fails("compile", "k.cu::twice", "--emit", "asm=emit_llvm", status=2, says=["only simt and llvm"])
        self.fails("compile", "k.cu::twice", "--emit", "simt=", status=2, says=["names no pass"])
        self.fails("compile", "k.cu::twice", "--emit", "ptx=build_ssa", status=2, says=["passes of the stage ptx"])
        self.fails("compile", "k.cu::twice", "--emit", "simt", "--block", "2048", status=2, says=["1 to 1024 threads"])

    def test_passes_are_timed(self):
        names = [line.split()[0] for line in self.quern("compile", "k.cu::twice", "--emit", "asm", "--time-passes").stdout.splitlines()]
        self.assertEqual(names[:2], ["pass", "translate"])
        self.assertEqual(names[-2:], ["print_assembly", "all"])
        document = json.loads(self.quern("compile", "k.cu::twice", "--emit", "simt", "--time-passes", "--json").stdout)
        self.assertEqual([row["name"] for row in document["passes"]][-1], "choose_call_form")
        self.assertTrue(all(row["runs"] == 1 and row["ms"] >= 0 for row in document["passes"]))
        self.fails("compile", "k.cu::twice", "--time-passes", status=2, says=["passes belong to simt, llvm and asm"])

    def test_devices(self):
        document = json.loads(self.quern("devices", "--json").stdout)
        self.assertIn("cpu", [d["name"] for d in document["devices"]])

    def test_doctor(self):
        document = json.loads(self.quern("doctor", "--json").stdout)
        self.assertTrue(document["ready"])
        names = {row["name"]: row["value"] for row in document["environment"]}
        self.assertEqual(names["QUERN_DEVICE"], "cpu")
        read = set()
        for source in [*(KERNELS.parent / "src").rglob("*.[ch]pp"), *(KERNELS.parent / "tools" / "quern").rglob("*.cpp")]:
            if source.name != "doctor.cpp":
                read |= set(re.findall(r'"((?:QUERN|NUMBA|CUDA)_(?!ERROR_)[A-Z_]+|NO_COLOR)"', source.read_text()))
        self.assertGreater(len(read), 15)
        self.assertEqual(read - set(names), set(), "doctor lists what the project reads")
        done = self.quern("doctor", status=1, env={"QUERN_CPU_PLUGIN": "/nonexistent.so", "CUDA_VISIBLE_DEVICES": ""})
        self.assertIn("missing", done.stdout)

    def test_cases_run_and_fail_as_they_should(self):
        self.path("good.case.toml").write_text('''
kernel = "k.cu::twice"
[[case]]
name = "doubled"
args = ["4", "arange(4, float32)", "zeros(4, float32)"]
expect = { "y" = { value = [0, 2, 4, 6] }, "#1" = { same_as = "k.cu::twice" } }
[[case]]
name = "a fault"
kernel = "k.cu::store"
args = ["1099511627776", "zeros(4, int32)"]
block = "1"
error = "ILLEGAL_ADDRESS"
[[case]]
name = "after it"
kernel = "k.cu::store"
args = ["x=zeros(4, int32)", "at=4"]
block = "0"
error = "at least one thread"
''')
        self.assertIn("3 passed, 0 failed", self.quern("test", "good.case.toml", "-j", 2, "--junit", "j.xml").stdout)
        self.assertIn('failures="0"', self.path("j.xml").read_text())
        self.path("wrong.case.toml").write_text('''
kernel = "k.cu::twice"
[[case]]
name = "not doubled"
args = ["4", "ones(4, float32)", "zeros(4, float32)"]
expect = { "y" = { value = 3.0 } }
''')
        done = self.quern("test", "wrong.case.toml", "--json", status=1)
        document = json.loads(done.stdout)
        self.assertEqual(document["failed"], 1)
        self.assertIn("[0] is 2., expected 3.; 4 of 4 values are wrong", document["cases"][0]["message"])
        self.fails("test", "good.case.toml", "-k", "nothing like it", status=2, says=["no cases"])
        self.fails("test", "nowhere", says=["nowhere"])

PYTHON = """
import numpy as np
from numba import cuda
N = 3
TABLE = np.array([1, 2, 3])

@cuda.jit
def power(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] ** N

@cuda.jit
def look(x):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < x.size:
        x[i] = table[i % table.shape[0]]

@cuda.jit
def wide(x):
    table = cuda.const.array_like(WIDE)
    i = cuda.grid(1)
    if i < x.size:
        x[i] = table[i % table.shape[0], 1]

@cuda.jit
def halve(x, by):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = x[i] / by
"""


class KernelPython(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path("k.py").write_text(PYTHON)

    def last(self, *words):
        return self.document("run", *words)["arguments"][0]["last"]

    def test_bind_gives_constants_of_any_shape(self):
        self.assertEqual(self.last("k.py::power", "arange(5)"), 64)
        self.assertEqual(self.last("k.py::power", "arange(5)", "--bind", "N=2"), 16)
        self.assertEqual(self.last("k.py::power", "arange(5)", "--bind", "N=float32(0.5)"), 2)
        self.assertEqual(self.last("k.py::look", "zeros(6, int64)"), 3)
        self.assertEqual(self.last("k.py::look", "zeros(7, int64)", "--bind", "TABLE=arange(10, 15)"), 11)
        np.save(self.path("wide.npy"), np.arange(12).reshape(3, 4)[:, ::2])
        self.assertEqual(self.last("k.py::wide", "zeros(6, int64)", "--bind", "WIDE=wide.npy"), 10)
        self.assertEqual(self.last("k.py::wide", "zeros(6, int64)", "--bind", "WIDE=wide.npy[:2, ::-1]"), 4)
        source = self.quern("compile", "k.py::wide", "--sig", "(int64[::1],)", "--emit", "cuda", "--bind", "WIDE=wide.npy").stdout
        self.assertIn("WIDE[3][2] = {0, 2, 4, 6, 8, 10}", source)
        self.fails("run", "k.py::wide", "zeros(6, int64)", says=["WIDE"])
        self.fails("run", "k.py::power", "arange(5)", "--bind", "M=2", status=2, says=["cannot bind 'M'", "k.py"])
        self.fails("run", "k.py::power", "arange(5)", "--bind", "2", status=2, says=["NAME=ARG"])
        self.fails("run", "k.py::power", "arange(5)", "--bind", "N=#0", status=2, says=["N=#0"])
        self.fails("run", "k.cu::twice", 4, "zeros(4, float32)", "zeros(4, float32)", "--bind", "N=2", status=2, says=["only Kernel Python"])

    def test_a_signature_settles_the_types(self):
        self.assertEqual(self.last("k.py::halve", "ones(4, float32)", "3", "--sig", "float32[::1], float32"), float(np.float32(1) / np.float32(3)))
        self.fails("run", "k.py::halve", "ones(4, float32)", "3", "--sig", "float32[::1]", says=["takes 2 arguments"])
        self.fails("run", "k.py::halve", "ones(4, float64)", "3", "--sig", "float32[::1], float32", status=2, says=["float64"])


class Bench(Case):
    CASES = """
kernel = "k.cu::twice"
[[case]]
name = "doubled"
args = ["1000", "arange(1000, float32)", "zeros(1000, float32)"]
expect = { "y" = { same_as = "k.cu::twice" } }
bench = { bytes = "2 * 4 * 10**3", flops = "1e3" }
[[case]]
name = "not for timing"
args = ["4", "ones(4, float32)", "zeros(4, float32)"]
expect = { "y" = { value = 2.0 } }
"""

    def setUp(self):
        self.path("b.case.toml").write_text(self.CASES)

    def test_marked_cases_are_timed(self):
        text = self.quern("bench", "b.case.toml", "--seconds", 0, "--repeat", 3).stdout
        self.assertIn("b.case.toml: doubled", text)
        self.assertNotIn("not for timing", text)
        row, = self.document("bench", "b.case.toml", "--seconds", 0, "--repeat", 3)["benchmarks"]
        self.assertEqual((row["device"], row["launches"]), ("cpu", 3))
        self.assertLessEqual(row["min_ms"], row["median_ms"])
        self.assertAlmostEqual(row["gb_per_s"], 8000 / row["median_ms"] / 1e6)
        self.assertAlmostEqual(row["gflop_per_s"], 1000 / row["median_ms"] / 1e6)

    def test_medians_are_compared_with_an_earlier_document(self):
        first = self.quern("bench", "b.case.toml", "--seconds", 0, "--json").stdout
        before = json.loads(first)
        before["benchmarks"][0]["median_ms"] = 1e9
        self.path("before.json").write_text(json.dumps(before))
        row, = self.document("bench", "b.case.toml", "--seconds", 0, "--compare", "before.json")["benchmarks"]
        self.assertAlmostEqual(row["ratio"], row["median_ms"] / 1e9)
        self.assertIn("ratio", self.quern("bench", "b.case.toml", "--seconds", 0, "--compare", "before.json").stdout)
        self.path("other.json").write_text("[1, 2]")
        self.fails("bench", "b.case.toml", "--compare", "other.json", status=2, says=["other.json"])

    def test_wrong_results_are_not_timed(self):
        self.path("w.case.toml").write_text(self.CASES.replace('same_as = "k.cu::twice"', "value = 7.0"))
        done = self.quern("bench", "w.case.toml", status=1)
        self.assertIn("FAILED y: [0] is 0., expected 7.", done.stdout)
        self.fails("bench", "b.case.toml", "-k", "not for timing", status=2, says=["nothing to time"])
        self.path("f.case.toml").write_text(self.CASES.replace("10**3", "10 apples"))
        self.fails("bench", "f.case.toml", status=2, says=["f.case.toml:7", "10 apples"])


class ProgressBar(Case):
    def run_on_terminal(self, *words, env=None):
        """Returns the output on stderr, which is a terminal, and on stdout, which is a pipe."""
        import pty
        ours, theirs = pty.openpty()
        environment = {**os.environ, "QUERN_DEVICE": "cpu", "QUERN_CACHE": "0", "TERM": "xterm", **(env or {})}
        with subprocess.Popen([QUERN, *words], cwd=self.folder.name, env=environment, stderr=theirs, stdout=subprocess.PIPE) as child:
            os.close(theirs)
            seen = b""
            while True:
                try:
                    part = os.read(ours, 4096)
                except OSError:
                    break
                if not part:
                    break
                seen += part
            out = child.stdout.read()
        os.close(ours)
        return seen.decode(), out.decode()

    def test_long_work_shows_a_bar_on_a_terminal_only(self):
        cases = 'kernel = "k.cu::busy"\n' + "".join(
            f'[[case]]\nname = "case {k}"\nargs = ["600000000", "zeros(1, int64)"]\nblock = "1"\ngrid = "1"\nexpect = {{ "x" = {{ value = 1 }} }}\n' for k in range(3))
        self.path("k.cu").write_text(SOURCE + """
extern "C" __global__ void busy(long long nanoseconds, long long* x) {
  long long begin, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < nanoseconds);
  x[0] = now > begin;
}""")
        self.path("long.case.toml").write_text(cases)
        seen, out = self.run_on_terminal("test", "long.case.toml")
        self.assertIn("3 passed, 0 failed", out)
        self.assertIn("/3 long.case.toml: case", seen)
        self.assertTrue(seen.endswith("\r\x1b[K"), "the bar is gone at the end")
        self.assertNotIn("\x1b", out)
        seen, out = self.run_on_terminal("test", "long.case.toml", "-k", "case 1", env={"TERM": "dumb"})
        self.assertEqual(seen, "")

    def long_source(self, marker):
        """Writes a source that NVRTC compiles for much longer than half a second."""
        kernels = "".join(f'extern "C" __global__ void k{i}(float* x) {{ for (int i = 0; i < 17; ++i) x[i] = sinf(x[i] * {marker}.{i}f + powf(x[i + 1], x[i + 2])); }}\n'
                          for i in range(60))
        self.path("slow.cu").write_text(kernels)

    def test_a_long_compilation_is_shown_on_a_terminal_only(self):
        self.long_source(1)
        seen, out = self.run_on_terminal("compile", "slow.cu", "-o", "slow.ptx")
        self.assertRegex(seen, r"\r\x1b\[Kcompile slow\.cu: \d+\.\d s")
        self.assertTrue(seen.endswith("\r\x1b[K"), "the line is gone at the end")
        self.assertEqual(out, "")
        self.assertIn(".visible .entry k0(", self.path("slow.ptx").read_text())
        for words, env in ((["--no-progress"], {}), (["--json"], {}), ([], {"TERM": "dumb"})):
            self.assertEqual(self.run_on_terminal("compile", "slow.cu", "-o", "slow.ptx", *words, env=env)[0], "")
        self.assertEqual(self.quern("compile", "slow.cu").stderr, "")
        seen, _ = self.run_on_terminal("run", "slow.cu::k3", "zeros(64, float32)", "--grid", "1", "--block", "1")
        self.assertRegex(seen, r"\r\x1b\[Kcompile slow\.cu: ")
        seen, _ = self.run_on_terminal("run", "slow.cu::k3", "zeros(64, float32)", "--grid", "1", "--block", "1", "--quiet")
        self.assertEqual(seen, "")

    def test_long_generation_of_machine_code_is_shown_with_the_size_of_the_kernel(self):
        lines = "".join(f"  x[{i}] = sinf(x[{i}] * {i}.5f) + powf(x[{i + 1}], x[{i + 2}]);\n" for i in range(48))
        self.path("large.cu").write_text('extern "C" __global__ void large(float* x) {\n' + lines + "}\n")
        words = ("run", "large.cu", "zeros(128, float32)", "--grid", "1", "--block", "1")
        seen, out = self.run_on_terminal(*words)
        self.assertRegex(seen, r"\r\x1b\[Kcompile kernel large, \d+,\d{3} instructions of PTX: \d+\.\d s")
        self.assertTrue(seen.endswith("\r\x1b[K"), "the line is gone at the end")
        self.assertIn("compiled in ", out)
        self.assertEqual(self.run_on_terminal(*words, "--json")[0], "")

    def test_progress_that_is_asked_for_is_lines_where_there_is_no_terminal(self):
        self.long_source(2)
        lines = self.quern("compile", "slow.cu", "--progress").stderr.splitlines()
        self.assertGreater(len(lines), 0)
        for line in lines:
            self.assertRegex(line, r"^compile slow\.cu: \d+\.\d s$")

    def test_progress_does_not_go_with_a_document(self):
        self.fails("compile", "k.cu", "--progress", "--json", status=2, says=["--progress does not go with --json"])
        self.fails("run", "k.cu::hello", "1", "--progress", "--quiet", status=2, says=["--progress does not go with --quiet"])


if __name__ == "__main__":
    unittest.main()
