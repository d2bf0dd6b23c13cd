#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The command line as a user meets it: what it prints, writes and says, on the CPU device. Expected values come from NumPy.

usage: cli_test.py QUERN [-v] [TEST...]
"""
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import numpy as np

QUERN = os.path.abspath(sys.argv.pop(1))
KERNELS = pathlib.Path(__file__).resolve().parents[2] / "kernels"
SAXPY = str(KERNELS / "basics" / "saxpy.cu")

SOURCE = r"""
#include <cuda_fp16.h>
extern "C" __global__ void twice(int n, const float* x, float* y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
}
extern "C" __global__ void shift(double by, double* x) { x[threadIdx.x] += by; }
struct Particle { float mass; double position[3]; };
extern "C" __global__ void move(int n, Particle by, Particle* p) {
  int i = threadIdx.x;
  if (i < n) for (int k = 0; k < 3; ++k) p[i].position[k] += by.mass * by.position[k];
}
extern "C" __global__ void halves(int n, __half* x) { if (threadIdx.x < n) x[threadIdx.x] = x[threadIdx.x] + x[threadIdx.x]; }
extern "C" __global__ void hello(int n) { if (threadIdx.x == 0) printf("hello from block %d of %d\n", (int)blockIdx.x, n); }
extern "C" __global__ void store(long long at, int* x) { x[at] = 1; }
template <class T> __global__ void fill(T value, T* x) { x[blockIdx.x * blockDim.x + threadIdx.x] = value; }
"""
# NumPy's aligned dtype of Particle: four bytes of padding after mass.
PARTICLE = np.dtype({"names": ["mass", "position"], "formats": ["<f4", ("<f8", (3,))], "offsets": [0, 8], "itemsize": 32})


class Case(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.path("k.cu").write_text(SOURCE)

    @classmethod
    def path(cls, name):
        return pathlib.Path(cls.folder.name) / name

    def quern(self, *words, status=0, env=None, **options):
        environment = dict(os.environ, QUERN_DEVICE="cpu", **(env or {}))
        done = subprocess.run([QUERN, *map(str, words)], cwd=self.folder.name, env=environment, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=120, **options)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{words}\n{done.stdout}\n{done.stderr}")
        return done

    def fails(self, *words, status=1, says=(), advice=None, **options):
        """What is said of a mistake; it ends in what to do."""
        done = self.quern(*words, status=status, **options)
        for part in says:
            self.assertIn(part, done.stderr)
        last = done.stderr.splitlines()[-1]
        if advice is None:
            self.assertTrue(last.startswith("hint: ") and len(last) > 20, done.stderr)
        else:
            self.assertIn(advice, last)
        return done.stderr

    def document(self, *words, **options):
        return json.loads(self.quern(*words, "--json", **options).stdout)


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


class Mistakes(Case):
    """The first mistakes of a new user: each message says what was wrong and ends in what to do."""

    def test_no_nvrtc(self):
        self.fails("run", SAXPY, 1, 1, "ones(1)", "ones(1)", env={"QUERN_NVRTC": "/nonexistent/libnvrtc.so"}, says=["NVRTC", "hint:"])

    def test_source_error(self):
        self.path("bad.cu").write_text('extern "C" __global__ void k(int* x) {\n  *x = y;\n}\n')
        self.fails("run", "bad.cu", "zeros(1, int32)", says=["bad.cu:2", "error:", "y"])
        done = self.quern("run", "bad.cu", "zeros(1, int32)", "--json", status=1)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], "compile")
        self.assertEqual((error["diagnostics"][0]["file"], error["diagnostics"][0]["line"]), ("bad.cu", 2))

    def test_unknown_kernel(self):
        self.fails("run", "k.cu::twise", says=["k.cu has no kernel 'twise'", "hint: it has twice, shift"])

    def test_no_kernel_named(self):
        self.fails("run", "k.cu", status=2, says=["k.cu has 6 kernels", "FILE::KERNEL"])

    def test_wrong_dtype(self):
        text = self.fails("run", SAXPY, 4, 2, "ones(4)", "ones(4, float32)", status=2, says=["argument #2", "float64", "const float* x"])
        self.assertIn("hint: give an array of float32", text.splitlines()[-1])

    def test_too_few_arguments(self):
        self.fails("run", SAXPY, 4, status=2, says=["takes 4 arguments, 1 was given", "saxpy(int n, float a, const float* x, float* y)"])
        self.fails("run", SAXPY, "n=4", "z=3", status=2, says=["no parameter named 'z'", "saxpy(int n"])
        self.fails("run", SAXPY, 1.5, 2, "ones(4, float32)", "ones(4, float32)", status=2, says=["int n", "hint:"])

    def test_block_too_large(self):
        self.fails("run", "k.cu::hello", 1, "--block", 4096, says=["at most 1024"], advice="hint: use a smaller block")

    def test_too_much_shared_memory(self):
        self.fails("run", "k.cu::hello", 1, "--shared", 10**6, says=["1000000 bytes"], advice="hint: use less shared memory")

    def test_broken_npy(self):
        self.path("cut.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (1000,), }")
        self.fails("run", "k.cu::twice", 1, "cut.npy", "ones(1, float32)", says=["cut.npy"])
        self.path("text.npy").write_text("hello, I am no array")
        self.fails("run", "k.cu::twice", 1, "text.npy", "ones(1, float32)", says=["text.npy"])
        text = self.fails("run", "k.cu::twice", 1, "missing.npy", "ones(1, float32)", says=["missing.npy"])
        self.assertEqual(text.count("error: "), 1)

    def test_what_the_language_leaves_out_begins_with_its_place(self):
        self.path("dict.py").write_text("from numba import cuda\n@cuda.jit\ndef k(a):\n    b = {1: 2}\n")
        text = self.fails("run", "dict.py", "zeros(1)")
        self.assertTrue(text.startswith("dict.py:4:9: error: "), text)

    def test_broken_ptx(self):
        self.path("bad.ptx").write_text(".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry k() {\n  frob.u32 %r1;\n}\n")
        self.fails("run", "bad.ptx", says=["bad.ptx:5", "frob", "hint:"])

    def test_what_the_device_refuses_is_told_in_lines_of_the_source(self):
        self.path("asm.cu").write_text("""__device__ int broken(int x) {
  int y;
  asm("ad.s32 %0, %1, 1;" : "=r"(y) : "r"(x));
  return y;
}
extern "C" __global__ void k(int* x) {
  x[threadIdx.x] = broken(x[threadIdx.x]);
}
""")
        place = "asm.cu:3:3: error: 'ad' is no PTX instruction\n      asm(\"ad.s32 %0, %1, 1;\" : "
        for words in (["run", "asm.cu", "zeros(4, int32)"], ["compile", "asm.cu", "--emit", "simt"]):
            text = self.fails(*words, says=["hint: did you mean 'add'?"])
            self.assertTrue(text.startswith(place), text)
            self.assertRegex(text, r"note: it is line \d+ of the PTX that was made of it: ad.s32 %r\d+, %r\d+, 1;\n")
        self.path("texture.cu").write_text('extern "C" __global__ void k(float* x, cudaTextureObject_t from) {\n'
                                           '  x[0] = tex1Dfetch<float>(from, 3);\n}\n')
        text = self.fails("run", "texture.cu", "zeros(4, float32)", 0)
        self.assertRegex(text, r"^texture.cu:2:\d+: error: 'tex.*\n      x\[0\] = tex1Dfetch<float>\(from, 3\);\n")

    def test_a_cpu_device_that_is_no_library(self):
        self.path("none.so").write_text("no library\n" * 100)
        self.fails("run", "k.cu::hello", 1, env={"QUERN_CPU_PLUGIN": str(self.path("none.so"))},
                   says=["invalid ELF header", "hint: QUERN_CPU_PLUGIN names this file"])

    def test_no_such_device(self):
        self.fails("run", "k.cu::hello", 1, "--device", "cpu:7", says=["cpu:7", "hint:"])
        self.fails("run", "k.cu::hello", 1, "--device", "gpu", status=2, says=["'gpu' names no device", "auto, cpu, cuda"])

    def test_missing_file_and_python(self):
        self.fails("run", "nothing.cu", says=["nothing.cu", "hint:"])
        self.fails("run", "kernel.py::f", says=["kernel.py", "hint:"])

    def test_kernel_python_runs_and_shows_its_cuda(self):
        saxpy = str(KERNELS / "basics" / "saxpy.py")
        out = self.quern("run", saxpy, "float32(2)", "arange(4, dtype=float32)", "ones(4, float32)", "--block", 32).stdout
        self.assertIn("[1. 3. 5. 7.]", out)
        cuda = self.quern("compile", saxpy, "--emit", "cuda", "--sig", "float32, float32[::1], float32[::1]").stdout
        self.assertIn("y[i] = a * x[i] + y[i];", cuda)
        self.fails("compile", saxpy, "--emit", "cuda", says=["saxpy.py:8:5: error: 'saxpy' is specialised on its argument types", "hint:"])
        self.path("wrong.py").write_text("from numba import cuda\n\n@cuda.jit\ndef k(x):\n    x[0] = y\n")
        self.fails("run", "wrong.py", "ones(1, float32)", says=["wrong.py:5:12: error: the name 'y' is not defined"])

    def test_a_wild_kernel_is_stopped(self):
        self.fails("run", "k.cu::store", 1 << 40, "zeros(4, int32)", "--block", 1, says=["kernel store", "CUDA_ERROR_ILLEGAL_ADDRESS", "hint:"])

    FAULTS = """
#include <cuda/std/cassert>
extern "C" __global__ void endless(volatile int* x) { while (x[0] != 77); }
__device__ __noinline__ int deep(int n, volatile int* x) { int b[64]; b[n & 63] = x[0]; if (x[1] == 12345) return 0; return deep(n + 1, x) + b[n & 63]; }
extern "C" __global__ void recurse(int* x) { x[0] = deep(0, x); }
extern "C" __global__ void asserts(int* x) { assert(x[0] == 5); x[0] = 1; }
extern "C" __global__ void traps(int* x) { if (threadIdx.x == 3) __trap(); x[0] = 1; }
extern "C" __global__ void waits(int* x) { if (threadIdx.x < 5) asm volatile("bar.sync 1, 64;"); x[0] = 1; }
extern "C" __global__ void wild(int* x) { x[1ll << 40] = 1; }
extern "C" __global__ void odd(char* x) { *(int*)(x + 1) = 1; }
extern "C" __global__ void jumps(long long* x) { ((void (*)(long long*))x[1])(x); }
"""

    def test_each_fault_has_its_own_advice(self):
        self.path("f.cu").write_text(self.FAULTS)
        for kernel, name, advice in [("endless", "LAUNCH_TIMEOUT", "QUERN_CPU_TIMEOUT"), ("recurse", "HARDWARE_STACK_ERROR", "recursion"),
                                     ("asserts", "ASSERT", "assertion"), ("traps", "LAUNCH_FAILED", "__trap()"), ("waits", "LAUNCH_FAILED", "barrier"),
                                     ("wild", "ILLEGAL_ADDRESS", "bounds checks"), ("odd", "MISALIGNED_ADDRESS", "multiple of its size"),
                                     ("jumps", "INVALID_PC", "function pointers")]:
            array = {"odd": "zeros(64, int8)", "jumps": "zeros(64, int64)"}.get(kernel, "zeros(64, int32)")
            with self.subTest(kernel):
                text = self.fails("run", f"f.cu::{kernel}", array, "--block", 64, env={"QUERN_CPU_TIMEOUT": "1"}, says=[f"CUDA_ERROR_{name}"])
                self.assertIn(advice, text.splitlines()[-1])

    def test_files_that_cannot_be_read_or_written(self):
        for words in (["run", "k.cu::fill<int>", 1, "none.npy"], ["run", "k.cu::fill<int>", 1, "folder.npy"], ["test", "bad.case.toml"],
                      ["run", "k.cu::fill<int>", 1, "zeros(1, int32)", "--save", "x=nowhere/x.npy"],
                      ["run", "k.cu::fill<int>", 1, "zeros((1, 1), int32)", "--block", 1, "--show", "image", "x=nowhere/x.png"],
                      ["compile", "k.cu", "-o", "nowhere/x.ptx"], ["test", "good.case.toml", "--junit", "nowhere/x.xml"]):
            self.path("folder.npy").mkdir(exist_ok=True)
            self.path("bad.case.toml").write_text("kernel = = 3")
            self.path("good.case.toml").write_text('kernel = "k.cu::fill<int>"\n[[case]]\nname = "it"\nargs = ["2", "zeros(1, int32)"]\n'
                                                   'expect = { "x" = { value = 2 } }\n')
            with self.subTest(words):
                self.fails(*words, status=2 if "bad.case.toml" in words else 1)
        done = self.quern("run", "k.cu::fill<int>", 1, "zeros(1, int32)", "--save", "x=nowhere/x.npy", "--json", status=1)
        self.assertTrue(json.loads(done.stdout)["error"]["message"].startswith("cannot write nowhere/x.npy: "))

    def test_arrays_of_what_kernels_do_not_have(self):
        for dtype in (object, "U5", "M8[s]", np.longdouble):
            np.save(self.path("d.npy"), np.zeros(3, dtype))
            text = self.fails("run", "k.cu::fill<int>", 1, "d.npy", says=["d.npy"])
            self.assertIn("astype(", text.splitlines()[-1])
        program = pathlib.Path(QUERN).read_bytes()
        if b"__tsan_init" in program or b"__asan_init" in program:  # sanitizers end the process where memory does not suffice
            return
        self.fails("run", "k.cu::fill<int>", 1, "zeros(30000000000000, float32)", says=["no memory", "hint: use a smaller array"])

    def test_a_file_without_kernels(self):
        for name, text, form in [("e.cu", "int x;", "__global__"), ("e.py", "import math\n", "@cuda.jit"),
                                 ("e.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n", ".entry")]:
            self.path(name).write_text(text)
            self.assertIn(form, self.fails("run", name, says=[f"{name} has no kernel"]).splitlines()[-1])

    def test_overloads_are_named_with_their_types(self):
        self.path("o.cu").write_text("__global__ void over(int* x) { *x = 1; }\n__global__ void over(double* x, int n) { *x = n; }\n")
        self.fails("run", "o.cu::over", says=["over(int*)", "overloaded"])
        for name in ("over(double*,int)", "over(double*, int)"):
            self.assertEqual(self.document("run", "o.cu::" + name, "zeros(1)", 3)["arguments"][0]["first"], 3)

    def test_compile_leaves_nothing_aside(self):
        self.fails("compile", "k.cu::twice", "--sig", "float32", status=2, says=["only Kernel Python"])
        for stage in ("cuda", "ptx", "simt"):
            self.fails("compile", "k.cu::nosuch", "--emit", stage, says=["k.cu has no kernel 'nosuch'"])
        for stage in ("cuda", "ptx"):
            self.assertIn("fill", self.quern("compile", "k.cu::fill<float>", "--emit", stage).stdout)
        self.path("bad.ptx").write_text(".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry k() {\n  frob.u32 %r1;\n}\n")
        for stage in ("ptx", "simt", "llvm", "asm"):
            self.fails("compile", "bad.ptx", "--emit", stage, says=["bad.ptx:5", "frob"])
        self.path("new.ptx").write_text(".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k() {\n  griddepcontrol.wait;\n  ret;\n}\n")
        self.assertIn("griddepcontrol", self.quern("compile", "new.ptx").stdout)

    def test_numbers_that_are_too_large(self):
        self.fails("run", "k.cu::hello", 1, "--grid", 2**32, status=2, says=["--grid '4294967296' is too large"])
        self.fails("run", "k.cu::hello", 1, "--repeat", 10**20, status=2, says=["--repeat", "too large"])
        self.fails("run", "k.cu::hello", 1, "--shared", 10**20, status=2, says=["--shared", "too large"])

    def test_an_environment_variable_that_is_no_number_is_passed_over_aloud(self):
        for name, values in {"QUERN_CPU_MEMORY": ["abc", "-5", "1.5G", "1000P"], "QUERN_CPU_WORKERS": ["abc", "-1", "1.5"], "QUERN_CPU_DEVICES": ["two"]}.items():
            for value in values:
                done = self.quern("devices", env={name: value})
                self.assertRegex(done.stderr, f"^quern CPU device: {name} is not a .*, and is passed over: {value}\n$")
        done = self.quern("devices", env={"QUERN_CPU_MEMORY": "64M", "QUERN_CPU_WORKERS": "1"})
        self.assertEqual(done.stderr, "")
        self.assertIn(", 64.0 MiB, 1 multiprocessors,", done.stdout)

    def test_a_number_beyond_its_range_is_told(self):
        for name, value, taken in [("QUERN_CPU_WORKERS", "0", "1"), ("QUERN_CPU_WORKERS", "1000", "256"), ("QUERN_CPU_DEVICES", "17", "16"),
                                   ("QUERN_CPU_MEMORY", "1M", str(16 << 20)), ("QUERN_CPU_MEMORY", str(2**64 - 1), str(16 << 40))]:
            with self.subTest(name, value=value):
                # Sanitizers leave no addresses for the largest: that is told as well then.
                done = self.quern("devices", status=None, env={name: value, "LD_LIBRARY_PATH": ""})
                said, *rest = done.stderr.splitlines()
                self.assertRegex(said, f"^quern CPU device: {name} is not from [0-9]+ to [0-9]+; {taken} is taken: [0-9]+$")
                self.assertIn("cannot reserve" if done.returncode else "quern CPU device", "".join(rest) or done.stdout)

    def test_no_variable_of_the_environment_is_passed_over_in_silence(self):
        run = ["run", "k.cu::hello", 1, "--block", 1]
        for name, value, kind in [("QUERN_CPU_ISA", "avx9", "baseline, avx2 or avx512"), ("QUERN_CPU_DISPATCH", "yes", "0 or 1"),
                                  ("QUERN_CPU_TIMEOUT", "soon", "a number of seconds"), ("QUERN_CPU_DEVICES", "two", "a whole number"),
                                  ("QUERN_HIDE_TOOLKIT", "yes", "0 or 1"), ("QUERN_LEAK_REPORT", "yes", "0 or 1"),
                                  ("QUERN_TRACK_ALLOCATIONS", "on", "0 or 1"), ("QUERN_MAX_PENDING_DEALLOCS_COUNT", "ten", "a whole number"),
                                  ("QUERN_MAX_PENDING_DEALLOCS_RATIO", "20%", "a number from 0 to 1"),
                                  ("NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO", "7", "a number from 0 to 1")]:
            speaker = "quern CPU device" if "_CPU_" in name and "ISA" not in name else "quern: warning"
            with self.subTest(name):
                # NVRTC starts the libcuda that it finds, which could be the CPU device once more.
                only_once = {name: value, "LD_LIBRARY_PATH": ""}
                self.assertEqual(self.quern(*run, env=only_once).stderr, f"{speaker}: {name} is not {kind}, and is passed over: {value}\n")
        self.assertEqual(self.quern(*run, env={"QUERN_CPU_ISA": "avx512", "QUERN_CPU_DISPATCH": "0", "QUERN_LEAK_REPORT": "0"}).stderr, "")

    def test_what_is_no_argument(self):
        self.fails("run", "k.cu::hello", "zeroes(3)", status=2, says=["zeroes", "hint:"])
        self.fails("run", "k.cu::twice", "#7", "ones(1, float32)", "ones(1, float32)", status=2, says=["#7"])

    def test_wrong_usage(self):
        self.fails(status=2, says=["hint:"])
        self.fails("rum", status=2, says=["there is no command 'rum'", "run, compile, test, bench"])
        self.fails("run", status=2, says=["hint:"])
        self.fails("run", "k.cu::hello", 1, "--grid", "big", status=2, says=["--grid"])
        self.fails("run", "k.cu::hello", 1, "--save", "y", status=2, says=["NAME=FILE"])
        self.fails("run", "k.cu::hello", 1, "--save", "y=y.npy", status=2, says=["'y' is no array argument"])
        self.fails("run", "k.cu::hello", 1, "--frobnicate", status=2, says=["--frobnicate"])
        done = self.quern("run", "--json", status=2)
        self.assertEqual(json.loads(done.stdout)["error"]["code"], "usage")


class Scripts(unittest.TestCase):
    def test_no_order_of_the_options_makes_a_dry_run_a_wet_one(self):
        with tempfile.TemporaryDirectory() as folder:
            tools = pathlib.Path(folder) / "tools"
            (tools / "lib").mkdir(parents=True)
            for script in ("run", "lib/common.sh"):
                shutil.copy(KERNELS.parent / "tools" / script, tools / script)
            (tools / "setup").write_text('#!/bin/bash\necho "setup $* hide=${QUERN_HIDE_TOOLKIT:-0}"\n')
            (tools / "setup").chmod(0o755)
            environment = {k: v for k, v in os.environ.items() if k != "QUERN_HIDE_TOOLKIT"} | {"PATH": "/usr/bin:/bin"}
            for options, hidden in [(["--dry-run"], 0), (["--hide-toolkit", "--dry-run"], 1), (["--dry-run", "--hide-toolkit"], 1)]:
                with self.subTest(options):
                    done = subprocess.run([tools / "run", *options], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
                    self.assertEqual(done.stdout, f"setup --level run --dry-run hide={hidden}\n")


class Output(Case):
    """What is printed arrives, or the program says that it did not."""
    COMMANDS = [["compile", SAXPY], ["run", "k.cu::fill<int>", 7, "zeros(4, int32)"], ["run", "k.cu::fill<int>", 7, "zeros(4, int32)", "--json"],
                ["run", "k.cu::hello", 1, "--quiet"], ["test", "one.case.toml"], ["devices"], ["doctor"], ["--help"], ["run", "--help"], ["--version"]]
    ONE = """
kernel = "k.cu::say"
[[case]]
name = "it says something"
args = ["zeros(1, int32)"]
block = "1"
grid = "1"
expect = { "x" = { value = 3 } }
"""

    def setUp(self):
        self.path("k.cu").write_text(SOURCE + 'extern "C" __global__ void say(int* x) { printf("the kernel says\\n{ no newline"); *x = 3; }\n')
        self.path("one.case.toml").write_text(self.ONE)

    def run_into(self, words, stdout, **options):
        environment = dict(os.environ, QUERN_DEVICE="cpu")
        return subprocess.run([QUERN, *map(str, words)], cwd=self.folder.name, env=environment, stdout=stdout, stderr=subprocess.PIPE, text=True,
                              timeout=120, **options)

    def test_a_full_disk_is_an_error(self):
        for words in self.COMMANDS:
            with self.subTest(words), open("/dev/full", "w") as full:
                done = self.run_into(words, full)
                self.assertEqual(done.returncode, 1)
                self.assertIn("error: cannot write the output: ", done.stderr)
                if "--quiet" not in words:  # there the device saw the reason
                    self.assertIn("No space left on device", done.stderr)
                self.assertIn("hint:", done.stderr)
                self.assertEqual(done.stderr.count("error:"), 1)

    def test_a_closed_stdout_is_an_error_and_no_file_takes_its_place(self):
        for words in self.COMMANDS:
            with self.subTest(words):
                done = self.run_into(words, None, preexec_fn=lambda: os.close(1))
                self.assertEqual(done.returncode, 1)
                self.assertIn("cannot write the output: ", done.stderr)
        done = self.run_into(["run", "k.cu::fill<int>", 7, "zeros(4, int32)", "--quiet", "--save", "x=x.npy"], None, preexec_fn=lambda: os.close(1))
        self.assertEqual((done.returncode, done.stderr), (0, ""))  # nothing to print
        np.testing.assert_array_equal(np.load(self.path("x.npy")), np.full(4, 7, np.int32))

    def test_a_reader_that_leaves_is_no_error(self):
        for restore in (True, False):  # SIGPIPE ends the program, or write() fails
            ours, theirs = os.pipe()
            os.close(ours)
            done = self.run_into(["compile", "k.cu"], theirs, restore_signals=restore)
            os.close(theirs)
            self.assertEqual(done.stderr, "")

    def test_a_document_is_alone_on_stdout(self):
        for words in (["run", "k.cu::say", "zeros(1, int32)", "--block", 1], ["run", "k.cu::say", "zeros(1, int32)", "--block", 1, "--quiet"]):
            done = self.quern(*words, "--json")
            self.assertEqual(json.loads(done.stdout)["arguments"][0]["first"], 3)
            self.assertIn("the kernel says\n{ no newline", done.stderr)
        for words in (["test", "one.case.toml"], ["test", "one.case.toml", "--quiet"]):
            done = self.quern(*words, "--json")
            self.assertEqual(json.loads(done.stdout)["failed"], 0)
            self.assertIn("the kernel says", done.stderr)
        for words in (["run", "k.cu::say", "zeros(1, int32)", "--save", "x=/dev/stdout"], ["compile", "k.cu", "-o", "/dev/fd/1"],
                      ["run", "k.cu::say", "zeros((1, 1), int32)", "--show", "image", "x=/proc/self/fd/1"],
                      ["test", "one.case.toml", "--junit", "/dev/stdout"]):
            done = self.quern(*words, "--json", status=2)
            self.assertIn("with --json, which prints its document there\nhint: give another file", json.loads(done.stdout)["error"]["message"])
        self.assertEqual(self.quern("compile", "k.cu::say", "-o", "/dev/stdout").stdout, self.quern("compile", "k.cu::say").stdout)
        self.assertTrue(self.quern("run", "--help", "--json").stdout.startswith("Compile a kernel"), "help is no document")


class Signals(Case):
    def catches(self, process, number):
        """Whether it has a handler for the signal; None: it has ended."""
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
        for command in ("run", "compile", "test", "bench", "devices", "doctor"):
            self.assertIn("--json", self.quern(command, "--help").stdout)
        self.assertTrue(self.quern("--version").stdout.startswith("quern 0."))

    def test_every_stage_is_shown(self):
        self.assertEqual(self.quern("compile", "k.cu", "--emit", "cuda").stdout, SOURCE)
        self.assertIn(".entry twice", self.quern("compile", "k.cu").stdout)
        for stage in ("simt", "llvm", "asm"):
            self.assertIn("twice", self.quern("compile", "k.cu::twice", "--emit", stage, "--block", "64").stdout)
        self.fails("compile", "k.cu", "--emit", "asm", status=2, says=["name one"])
        self.fails("compile", "k.cu", "--emit", "sass", status=2, says=["sass"])

    def test_devices(self):
        document = json.loads(self.quern("devices", "--json").stdout)
        self.assertIn("cpu", [d["name"] for d in document["devices"]])

    def test_doctor(self):
        document = json.loads(self.quern("doctor", "--json").stdout)
        self.assertTrue(document["ready"])
        names = {row["name"]: row["value"] for row in document["environment"]}
        self.assertEqual(names["QUERN_DEVICE"], "cpu")
        read = set()
        for source in [*(KERNELS.parent / "src").rglob("*.[ch]pp"), *(KERNELS.parent / "tools" / "quern").glob("*.cpp")]:
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
        """What a terminal gets on stderr, and what stdout gets in a pipe."""
        import pty
        ours, theirs = pty.openpty()
        environment = {**os.environ, "QUERN_DEVICE": "cpu", "TERM": "xterm", **(env or {})}
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


if __name__ == "__main__":
    unittest.main()
