#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the messages of the command line about mistakes and about output that cannot be written.

usage: mistakes_test.py QUERN [-v] [TEST...]
"""
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

from case import Case, KERNELS, QUERN, SAXPY, SOURCE


class Mistakes(Case):
    """Mistakes of new users: each message names the error and ends with advice."""

    def test_no_nvrtc(self):
        self.fails("run", SAXPY, 1, 1, "ones(1)", "ones(1)", env={"QUERN_NVRTC": "/nonexistent/libnvrtc.so"}, says=["NVRTC", "hint:"])

    def test_source_error(self):
        self.path("bad.cu").write_text('extern "C" __global__ void k(int* x) {\n  *x = y;\n}\n')
        self.fails("run", "bad.cu", "zeros(1, int32)", says=["bad.cu:2", "error:", "y"])
        done = self.quern("run", "bad.cu", "zeros(1, int32)", "--json", status=1)
        error = json.loads(done.stdout)["error"]
        self.assertEqual(error["code"], "compile")
        self.assertEqual((error["diagnostics"][0]["file"], error["diagnostics"][0]["line"]), ("bad.cu", 2))

    def test_a_source_that_is_no_regular_file(self):
        os.mkfifo(self.path("pipe.cu"))  # without a writer, opening it waits for one
        os.mkfifo(self.path("pipe.h"))
        self.path("zero.h").symlink_to("/dev/zero")
        self.path("folder.cu").mkdir()
        self.fails("compile", "pipe.cu", says=["cannot read pipe.cu: it is no regular file"])
        self.fails("run", "pipe.cu", "zeros(1, int32)", says=["cannot read pipe.cu: it is no regular file"])
        self.fails("compile", "folder.cu", says=["cannot read folder.cu: Is a directory"])
        for name in ("pipe.h", "zero.h"):
            self.path("includes.cu").write_text(f'#include "{name}"\nextern "C" __global__ void k(int* x) {{ *x = 1; }}\n')
            self.fails("compile", "includes.cu", says=[f"cannot include {name}: it is no regular file"])

    def test_a_limit_of_file_sizes(self):
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (256, 256))
        self.fails("compile", "k.cu", "-o", "large.ptx", says=["cannot write large.ptx: File too large"], preexec_fn=small)
        self.assertFalse(self.path("large.ptx").exists())

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

    def test_the_device_and_nvrtc_name_the_same_files_and_lines(self):
        names = ["sub/orig.cu", "../up/orig.cu", "./dot/./orig.cu", "/abs/orig.cu", str(self.path("whole.cu")), "<generated>"]
        for text, says in [('asm("ad.s32 %0, %0, 1;" :: "r"(x[0]));', "'ad' is no PTX instruction"), ("undeclared = 1;", "undeclared")]:
            self.path("line.cu").write_text("".join(f'extern "C" __global__ void k{i}(int* x) {{\n#line {10 * i} "{name}"\n  {text}\n}}\n'
                                                    for i, name in enumerate(names, 1)))
            done = self.quern("run", "line.cu", "zeros(1, int32)", "--json", status=1)
            errors = json.loads(done.stdout)["error"]["diagnostics"]
            self.assertEqual([(d["file"], d["line"], d["column"]) for d in errors], [(name, 10 * i, 3) for i, name in enumerate(names, 1)])
            self.assertIn(f"../up/orig.cu:20:3: error: ", done.stderr)
            self.assertEqual(done.stderr.count(f"\n      {text}\n      ^"), len(names))
        self.path("renumbered.cu").write_text('extern "C" __global__ void k(int* x) {\n#line 2\n  asm("ad.s32 %0, %0, 1;" :: "r"(x[0]));\n}\n')
        text = self.fails("run", "renumbered.cu", "zeros(1, int32)", says=['renumbered.cu:2:3: error: ', '\n      asm("ad.s32 %0'])
        self.path("inc").mkdir(exist_ok=True)
        self.path("inc/bad.h").write_text('__device__ inline void bad(int x) {\n  asm("ad.s32 %0, %0, 1;" :: "r"(x));\n}\n'
                                          'extern "C" __global__ void h(int* x) { bad(x[0]); }\n')
        self.path("includes.cu").write_text('#include "bad.h"\n')
        for folder in ("inc", str(self.path("inc"))):
            self.assertTrue(self.fails("run", "includes.cu", "zeros(1, int32)", "-I", folder).startswith(f"{folder}/bad.h:2:3: error: "))

    def test_columns_count_characters_and_words_have_an_end(self):
        self.path("utf.cu").write_text('extern "C" __global__ void k(int* x) {\n\t/* \u00e9\u00e9 */ *x = undeclared_y;\n}\n')
        done = self.quern("run", "utf.cu", "zeros(1, int32)", "--json", status=1)
        error = json.loads(done.stdout)["error"]["diagnostics"][0]
        self.assertEqual((error["line"], error["column"], error["end_column"]), (2, 16, 28))
        self.assertIn("\n    \t/* \u00e9\u00e9 */ *x = undeclared_y;\n    \t              ^~~~~~~~~~~~\n", done.stderr)
        self.path("utf.py").write_text("from numba import cuda\n@cuda.jit\ndef k(x):\n    x[0] = undeclared_y\n")
        done = self.quern("run", "utf.py", "zeros(1)", "--json", status=1)
        error = json.loads(done.stdout)["error"]["diagnostics"][0]
        self.assertEqual((error["line"], error["column"], error["end_column"]), (4, 12, 24))
        self.path("end.ptx").write_text(".version 8.0\n.target sm_89\n.address_size 64\n.visible .entry k() {\n  frob.u32 %r1;\n}\n")
        error = json.loads(self.quern("run", "end.ptx", "--json", status=1).stdout)["error"]["diagnostics"][0]
        self.assertEqual((error["line"], error["column"], error["end_column"]), (5, 3, 11))

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

    def test_a_fault_is_in_the_document_of_the_error(self):
        self.path("trapezoid.cu").write_text("""extern "C" __global__ void trapezoid(int* x, long long far) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 70)
    x[i + far] = 1;
}
""")
        done = self.quern("run", "trapezoid.cu", "zeros(128, int32)", 1 << 42, "--grid", 4, "--block", 32, "--json", status=1)
        fault = json.loads(done.stdout)["error"]["fault"]
        self.assertTrue(fault.pop("file").endswith("trapezoid.cu"))
        address = fault.pop("address")
        self.assertEqual(address % (1 << 40) % 4, 0)
        self.assertEqual(fault, {"kernel": "trapezoid", "grid": [4, 1, 1], "block_dim": [32, 1, 1], "block": [2, 0, 0], "thread": [6, 0, 0],
                                 "threads": [[6, 0, 0], [6, 0, 0]], "line": 4, "access": "store", "access_bytes": 4, "space": "global"})
        self.assertIn("in block (2,0,0), thread (6,0,0), line 4 of trapezoid.cu: a store of 4 bytes in global memory", done.stderr)
        self.assertIn("bounds checks", done.stderr)

    def test_a_fault_in_one_field_of_a_record_has_its_line(self):
        """Good code loads the three fields at once. The array ends with a page, and the record of thread 37 is cut off by it."""
        self.path("fields.cu").write_text("""extern "C" __global__ void fields(const float* p, const int* place, float* out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const float* record = p + place[i];
  const float x = record[0];
  const float y = record[1];
  const float z = record[2];
  out[i] = x * 3.0f + y * 5.0f + z;
}
""")
        elements = 1 << 22
        for present in (2, 1):
            places = np.arange(64, dtype=np.int32) * 5 % 1000
            places[37] = elements - present
            np.save(self.path("places.npy"), places)
            done = self.quern("run", "fields.cu", f"zeros({elements}, float32)", "places.npy", "zeros(64, float32)", "--grid", 2, "--block", 32, "--json",
                              status=1, env={"QUERN_CPU_TIER": "good"})
            fault = json.loads(done.stdout)["error"]["fault"]
            self.assertEqual(fault["address"] % (1 << 20), 0)
            self.assertEqual([fault[key] for key in ("thread", "block", "line", "access", "access_bytes")], [[5, 0, 0], [1, 0, 0], 4 + present, "load", 4])

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

    def test_a_malformed_environment_variable_is_ignored_with_a_warning(self):
        for name, values in {"QUERN_CPU_MEMORY": ["abc", "-5", "1.5G", "1000P"], "QUERN_CPU_WORKERS": ["abc", "-1", "1.5"], "QUERN_CPU_DEVICES": ["two"],
                             "QUERN_CPU_COMPUTE_CAPABILITY": ["abc", "8", "8.4", "90"]}.items():
            for value in values:
                done = self.quern("devices", env={name: value})
                self.assertRegex(done.stderr, f"^quern CPU device: {name} is not .*, and is ignored: {value}\n$")
        done = self.quern("devices", env={"QUERN_CPU_MEMORY": "64M", "QUERN_CPU_WORKERS": "1"})
        self.assertEqual(done.stderr, "")
        self.assertIn(", 64.0 MiB, 1 multiprocessors,", done.stdout)

    def test_the_compute_capability_of_the_cpu_device_is_a_choice(self):
        for value, told in [("9.0", "9.0"), ("12.0", "12.0"), ("", "8.9"), ("8.4", "8.9")]:
            with self.subTest(value):
                self.assertIn(f"compute capability {told}", self.quern("devices", env={"QUERN_CPU_COMPUTE_CAPABILITY": value}).stdout)

    def test_a_number_beyond_its_range_is_told(self):
        for name, value, taken in [("QUERN_CPU_WORKERS", "0", "1"), ("QUERN_CPU_WORKERS", "1000", "256"), ("QUERN_CPU_DEVICES", "17", "16"),
                                   ("QUERN_CPU_MEMORY", "1M", str(16 << 20)), ("QUERN_CPU_MEMORY", str(2**64 - 1), str(16 << 40))]:
            with self.subTest(name, value=value):
                # Sanitizers leave no addresses for the largest: that is told as well then.
                done = self.quern("devices", status=None, env={name: value, "LD_LIBRARY_PATH": ""})
                said, *rest = done.stderr.splitlines()
                self.assertRegex(said, f"^quern CPU device: {name} is not from [0-9]+ to [0-9]+; {taken} is taken: [0-9]+$")
                self.assertIn("the CPU device needs" if done.returncode else "quern CPU device", "".join(rest) or done.stdout)

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
                self.assertEqual(self.quern(*run, env=only_once).stderr, f"{speaker}: {name} is not {kind}, and is ignored: {value}\n")
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


class Words(Case):
    """Hints use the terms of the interface: functions in the library, options on the command line."""
    ROOT = KERNELS.parent
    # Options of NVRTC are the same in both.
    NVRTC = re.compile(r"--(gpu-architecture|std|include-path|name=value|use_fast_math|maxrregcount|fmad|device-|generate-line-info|relocatable-device-code|modify-stack-limit|create-pch|use-pch|instantiate-templates-in-pch)")

    def test_the_library_speaks_to_programs(self):
        found = []
        for file in sorted((self.ROOT / "src").rglob("*.[ch]pp")):
            if file.parent.name == "serve":  # a program, which has options
                continue
            for line in file.read_text().splitlines():
                for text in re.findall(r'"(?:[^"\\]|\\.)*"', line.split("// ")[0]):
                    if re.search(r"(?<![-\w])--[a-z]|FILE::| -[DI]\b", text) and not self.NVRTC.search(text):
                        found.append(f"{file.name}: {text}")
        self.assertEqual(found, [])

    def test_every_row_of_the_table_stands_for_words_of_the_library(self):
        sources = "".join(re.sub(r'"\s*\n\s*"', "", file.read_text()) for file in (self.ROOT / "src").rglob("*.cpp"))
        rows = re.findall(r'^QUERN_WORDS\("(.*?)", +"(.*?)"\)$', (self.ROOT / "tools/quern/terminal/words.def").read_text(), re.M)
        self.assertGreater(len(rows), 10)
        for library, _ in rows:
            self.assertIn(library, sources)

    def test_the_command_line_speaks_of_its_options(self):
        self.path("include.cu").write_text('#include "own/header.h"\nextern "C" __global__ void k() {}\n')
        text = self.fails("run", "include.cu", advice="hint: name the directory that holds own/header.h with -I")
        self.assertNotIn("LoadOptions", text)
        self.fails("run", "k.cu", status=2, advice="name one, as in FILE::KERNEL")
        self.fails("run", "k.cu::twice", 1, "value", "ones(1, float32)", status=2)
        text = self.fails("run", "k.cu::twice", 1, 2.5, "ones(1, float32)", status=2, advice="give an array: x.npy")
        self.assertNotIn("session", text)
        done = self.quern("run", "k.cu::twice", 1, 2.5, "ones(1, float32)", "--json", status=2)
        self.assertIn("give an array: x.npy", json.loads(done.stdout)["error"]["diagnostics"][0]["hint"])

    def test_what_nvrtc_always_says_is_no_hint(self):
        self.path("plain.cu").write_text('extern "C" __global__ void k(int* x) { *x = undeclared_y; }\n')
        done = self.quern("run", "plain.cu", "zeros(1, int32)", "--json", status=1)
        self.assertEqual(json.loads(done.stdout)["error"]["diagnostics"][0]["hint"], "")
        self.assertNotIn("Kernel Python", done.stderr)

    def test_documents_that_messages_name_are_there(self):
        for folder in ("src", "tools/quern"):
            for file in (self.ROOT / folder).rglob("*.[ch]pp"):
                for name in re.findall(r'"[^"\n]*\b(docs/[-\w/]+\.md)', file.read_text()):
                    self.assertTrue((self.ROOT / name).exists(), f"{file.name} names {name}")


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


    def test_tools_build_what_they_run_or_say_the_one_command(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(KERNELS.parent / "tools/lib", root / "tools/lib")
            for script in ("contract", "gpu-check"):
                shutil.copy(KERNELS.parent / "tools" / script, root / "tools" / script)
            (root / "tests/contract").mkdir(parents=True)
            shutil.copy(KERNELS.parent / "tests/contract/rows.toml", root / "tests/contract/rows.toml")
            (root / "bin").mkdir()
            (root / "bin/ninja").write_text('#!/bin/bash\necho "ninja $*" >>"$(dirname "$0")/log"\necho "no rule"\nexit 1\n')
            (root / "bin/ninja").chmod(0o755)
            environment = {k: v for k, v in os.environ.items() if k != "MESON_TEST_ITERATION"} | {"PATH": f"{root}/bin:{os.environ['PATH']}"}

            def tool(*words):
                return subprocess.run(list(words), cwd=root, env=environment, capture_output=True, text=True, timeout=60)
            self.assertIn("run `tools/test unit`", tool("tools/contract").stderr)
            self.assertIn("run `tools/test unit`", tool("tools/gpu-check", "--bundle", "bundle").stderr)
            (root / "build").mkdir()
            (root / "build/build.ninja").write_text("build tests/contract/contract: link\nbuild quern: link\n")
            self.assertIn("the build failed:\nno rule", tool("tools/contract").stderr)
            self.assertIn("the build failed", tool("tools/gpu-check", "--bundle", "bundle").stderr)
            self.assertEqual((root / "bin/log").read_text(), f"ninja -C {root}/build tests/contract/contract\nninja -C {root}/build quern tests/contract/contract\n")


class Output(Case):
    """If the output cannot be written, the program reports that."""
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
                if "--quiet" not in words:  # there the device received the reason
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


if __name__ == "__main__":
    unittest.main()
