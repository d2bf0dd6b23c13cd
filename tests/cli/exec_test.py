#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""quern exec: runs programs that do not know quern, in C and in Python, with the CPU device as libcuda.so.1.

usage: exec_test.py QUERN LIBCUDA CUDA_INCLUDE [-v] [TEST...]
"""
import os
import pathlib
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
import unittest

from case import Case, QUERN

LIBCUDA = pathlib.Path(sys.argv.pop(1)).resolve()
CUDA_INCLUDE = sys.argv.pop(1)

# Doubles 32 words. Written by hand; the result is 2 * i.
PTX = """.version 7.0
.target sm_70
.address_size 64
.visible .entry twice(.param .u64 words) {
  .reg .u64 %rd<4>;
  .reg .u32 %r<3>;
  ld.param.u64 %rd1, [words];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r2, [%rd3];
  add.u32 %r2, %r2, %r2;
  st.global.u32 [%rd3], %r2;
  ret;
}
"""

PYTHON = """import ctypes
cu = ctypes.CDLL("libcuda.so.1")
def call(name, *arguments):
    result = getattr(cu, name)(*arguments)
    assert result == 0, (name, result)
context, module, function, words = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
call("cuInit", 0)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
call("cuCtxSetCurrent", context)
call("cuModuleLoadData", ctypes.byref(module), open("twice.ptx", "rb").read())
call("cuModuleGetFunction", ctypes.byref(function), module, b"twice")
call("cuMemAlloc_v2", ctypes.byref(words), ctypes.c_size_t(128))
host = (ctypes.c_uint32 * 32)(*range(32))
call("cuMemcpyHtoD_v2", words, host, ctypes.c_size_t(128))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(words))
for _ in range(3):
    call("cuLaunchKernel", function, 1, 1, 1, 32, 1, 1, 0, None, arguments, None)
call("cuMemcpyDtoH_v2", host, words, ctypes.c_size_t(128))
print(list(host) == [8 * i for i in range(32)])
"""

# Linked with -lcuda. Exits with the number of devices + 40.
LINKED = r"""#include <cuda.h>
#include <stdio.h>
int main(int count, char** words) {
  int devices = 0;
  CUdeviceptr none = 0;
  if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetCount(&devices) != CUDA_SUCCESS) return 1;
  if (cuMemFree(none + 1) == CUDA_SUCCESS) return 2;
  printf("%d device\n", devices);
  fflush(stdout);
  if (count > 1) *(volatile int*)0 = 1;
  return 40 + devices;
}
"""

# Looks functions up by name, as programs without -lcuda do.
ASKING = r"""#include <cuda.h>
#include <dlfcn.h>
#include <stdio.h>
typedef CUresult (*Get)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
typedef CUresult (*Init)(unsigned);
typedef CUresult (*Alloc)(CUdeviceptr*, size_t);
int main(void) {
  if (dlsym(RTLD_DEFAULT, "cuInit")) return 1;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (dlsym(driver, "cuOfNoVersion") || !dlerror()) return 2;
  Init init = (Init)dlsym(driver, "cuInit");
  Get get = (Get)dlsym(driver, "cuGetProcAddress_v2");
  if (init(0)) return 3;
  Alloc alloc = 0;
  CUdriverProcAddressQueryResult found;
  CUdeviceptr memory;
  if (get("cuMemAlloc", (void**)&alloc, 12000, 0, &found) || !alloc) return 4;
  if (alloc(&memory, 64) != CUDA_ERROR_INVALID_CONTEXT || alloc(&memory, 64) != CUDA_ERROR_INVALID_CONTEXT) return 5;
  void* nothing = 0;
  get("cuAskedForInVain", &nothing, 12000, 0, &found);
  return nothing ? 6 : 0;
}
"""

# Its own limit of file sizes is too small for the counts.
LIMITED = r"""#include <cuda.h>
#include <sys/resource.h>
int main(void) {
  struct rlimit limit = {1024, 1024};
  setrlimit(RLIMIT_FSIZE, &limit);
  return cuInit(0) == CUDA_SUCCESS ? 7 : 1;
}
"""

# Like the CUDA runtime library: a library that requests a private table.
RUNTIME = r"""#include <cuda.h>
int ask_for_table(void) {
  CUuuid id = {{1}};
  const void* table = 0;
  cuInit(0);
  return cuGetExportTable(&table, &id);
}
"""

# The symbols that libcusparse of CUDA 12.8 and 13.0 binds, and the newest symbols of each libnvJitLink.
BOUND = ("Create", "Destroy", "AddData", "Complete", "GetLinkedCubinSize", "GetLinkedCubin", "GetErrorLogSize", "GetErrorLog")
JIT_LINK_SYMBOLS = {12: [(name, 8) for name in BOUND] + [("GetInfoLog", 0), ("AddFile", 9)],
                    13: [(name, 0) for name in BOUND] + [("GetLinkedPtxSize", 1), ("GetLinkedLTOIR", 5)]}

# Like NVIDIA's libraries: bound to the versioned functions when it is loaded. use() gives 0 if all fail, without writing what is not theirs.
JIT_LINK_USER = """#include <stddef.h>
int (*all[])() = {{{all}}};
int use(void) {{
  void* handle = &handle;
  size_t size = 7;
  if ({create}(&handle, 0, 0) != 6 || handle) return 1;
  if ({size}(handle, &size) != 6 || size) return 2;
  for (size_t i = 0; i < sizeof all / sizeof *all; ++i)
    if (all[i](0, 0, 0, 0, 0, 0) == 0) return 3;
  return 0;
}}
"""


class Exec(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path("twice.ptx").write_text(PTX)
        cls.path("twice.py").write_text(PYTHON)

    def exec(self, *words, options=(), **settings):
        return self.quern("exec", *options, "--", *words, **settings)

    def compile(self, name, text, *flags):
        source = self.path(name + ".c")
        source.write_text(text)
        subprocess.run([*shlex.split(os.environ.get("CC", "cc")), str(source), "-I", CUDA_INCLUDE, "-o", str(self.path(name)), *flags], check=True)
        return self.path(name)

    def linked(self):
        return self.compile("linked", LINKED, f"-L{LIBCUDA.parent}", "-lcuda")


class Programs(Exec):
    def test_a_python_program_launches_ptx(self):
        self.assertEqual(self.exec(sys.executable, "twice.py").stdout, "True\n")

    def test_a_c_program_is_linked_with_libcuda(self):
        done = self.exec(self.linked(), status=41)
        self.assertEqual((done.stdout, done.stderr), ("1 device\n", ""))

    def test_both_names_of_the_driver_are_one_library(self):
        text = ("import ctypes\n"
                "for name in ('libcuda.so', 'libcuda.so.1'): ctypes.CDLL(name)\n"
                "print(len({line.split()[-1] for line in open('/proc/self/maps') if 'libcuda.so' in line}))\n")
        self.assertEqual(self.exec(sys.executable, "-c", text).stdout, "1\n")

    def test_nvjitlink_is_unusable(self):
        text = ("import ctypes, os\n"
                "for version in (12, 13):\n"
                "    library = ctypes.CDLL(f'libnvJitLink.so.{version}', mode=os.RTLD_NOLOAD | os.RTLD_NOW)\n"
                "    print(hasattr(library, 'nvJitLinkVersion'), hasattr(library, 'nvJitLinkCreate'))\n")
        self.assertEqual(self.exec(sys.executable, "-c", text).stdout, "False False\n" * 2)

    def test_libraries_that_need_nvjitlink_load_and_get_its_error(self):
        for version, symbols in JIT_LINK_SYMBOLS.items():
            with self.subTest(version=version):
                # A library with NVIDIA's SONAME and symbol versions, which is there at link time alone.
                names = [f"__nvJitLink{name}_{version}_{minor}" for name, minor in symbols]
                script = self.path("real.map")
                script.write_text(f"libnvJitLink.so.{version} {{ global: *; }};\n")
                real = self.compile("real", "".join(f"int {name}(void) {{ return 0; }}\n" for name in names), "-shared", "-fPIC",
                                    f"-Wl,-soname,libnvJitLink.so.{version}", f"-Wl,--version-script={script}")
                user = "".join(f"int {name}();\n" for name in names) + JIT_LINK_USER.format(
                    create=next(name for name in names if "Create" in name), size=next(name for name in names if "LogSize" in name),
                    all=", ".join(names))
                library = self.compile("user", user, "-shared", "-fPIC", str(real), "-Wl,-z,now")
                text = f"import ctypes\nprint(ctypes.CDLL({str(library)!r}).use())\n"
                self.assertEqual(self.exec(sys.executable, "-c", text).stdout, "0\n")

    def test_nvrtc_can_be_opened(self):
        text = ("import ctypes\n"
                "for version in (13, 12):\n"
                "    try: print(ctypes.CDLL(f'libnvrtc.so.{version}').nvrtcVersion is not None); break\n"
                "    except OSError: pass\n")
        self.assertEqual(self.exec(sys.executable, "-c", text).stdout, "True\n")

    def test_words_behind_the_mark_are_the_programs(self):
        words = ["--json", "-5", "--", "--help", "run", ""]
        self.assertEqual(self.exec("printf", "%s|", *words).stdout, "".join(word + "|" for word in words))

    def test_the_variables_of_the_caller_stay(self):
        done = self.exec("sh", "-c", "echo $LD_LIBRARY_PATH", env={"LD_LIBRARY_PATH": "/mine"})
        folders = done.stdout.strip().split(":")
        self.assertEqual(pathlib.Path(folders[0]).resolve(), LIBCUDA.parent)
        self.assertEqual(folders[1], "/mine")

    def test_numba_s_own_variable_for_the_driver_gives_way(self):
        command = ["sh", "-c", "echo $NUMBA_CUDA_DRIVER"]
        self.assertEqual(self.exec(*command).stdout, "\n")
        named = self.exec(*command, env={"NUMBA_CUDA_DRIVER": "/usr/lib/libcuda.so"}).stdout.strip()
        self.assertEqual(pathlib.Path(named).resolve(), LIBCUDA)


class Status(Exec):
    def test_it_is_the_programs(self):
        self.exec("sh", "-c", "exit 7", status=7)
        self.exec("true")

    def test_a_signal_counts_from_128(self):
        self.exec("sh", "-c", "kill -TERM $$", status=128 + signal.SIGTERM)
        self.exec(self.linked(), "crash", status=128 + signal.SIGSEGV)

    def test_no_such_program(self):
        self.fails("exec", "--", "no-such-program", status=127, says=["cannot run no-such-program"])
        self.path("data").write_text("no program")
        self.fails("exec", "--", "./data", status=126, says=["cannot run ./data: Permission denied"])

    def test_signals_reach_the_program(self):
        text = "trap 'echo told; exit 9' TERM INT; echo ready; while :; do sleep 0.05; done"
        for number in (signal.SIGTERM, signal.SIGINT):
            # A shell cannot trap a signal that was ignored when it began, as SIGINT is in the background of another shell.
            process = subprocess.Popen([QUERN, "exec", "--", "sh", "-c", text], stdout=subprocess.PIPE, text=True,
                                       preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
            self.addCleanup(process.stdout.close)
            self.addCleanup(process.kill)
            self.assertEqual(process.stdout.readline(), "ready\n")
            process.send_signal(number)
            self.assertEqual(process.communicate(timeout=60)[0], "told\n")
            self.assertEqual(process.returncode, 9)

    def test_a_signal_at_once_reaches_the_program(self):
        text = "trap 'exit 9' TERM; kill -TERM $PPID; for i in $(seq 1000); do sleep 0.01; done"
        for _ in range(50):
            self.exec("sh", "-c", text, status=9)

    def test_the_status_where_children_are_ignored(self):
        done = subprocess.run([QUERN, "exec", "--", "sh", "-c", "exit 7"], preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 7)

    def test_wrong_use(self):
        self.fails("exec", status=2, says=["no command was given"])
        self.fails("exec", "--stats", "--", status=2, says=["no command was given"])
        self.fails("exec", "--print-env", "--", "true", status=2, says=["--print-env runs nothing"])
        self.fails("exec", "--print-env", "--stats", status=2, says=["--stats", "--print-env"])
        self.fails("exec", "--stat", "--", "true", status=2, says=["--stat"])


class Environment(Exec):
    def test_a_shell_can_take_the_variables(self):
        printed = self.quern("exec", "--print-env").stdout
        text = f'eval "$1"; exec {shlex.quote(sys.executable)} twice.py'
        done = subprocess.run(["sh", "-c", text, "sh", printed], cwd=self.folder.name, text=True, stdout=subprocess.PIPE, check=True)
        self.assertEqual(done.stdout, "True\n")

    def test_quotes_survive_the_shell(self):
        odd = "/it's \"odd\" $HOME"
        printed = self.quern("exec", "--print-env", env={"LD_LIBRARY_PATH": odd}).stdout
        done = subprocess.run(["bash", "-c", 'eval "$1"; echo "$LD_LIBRARY_PATH"', "bash", printed], text=True, stdout=subprocess.PIPE, check=True)
        self.assertIn(odd, done.stdout)


class Stats(Exec):
    def stats(self, *words, **settings):
        """Returns the calls by function, and the lines after them."""
        lines = self.exec(*words, options=["--stats"], **settings).stderr.splitlines()
        self.assertEqual(lines[0], "quern exec: calls of the driver")
        rows = [re.fullmatch(r" *(\d+) (\w+)(?:, (.*))?", line) for line in lines[1:-2]]
        return {row.group(2): (int(row.group(1)), row.group(3)) for row in rows}, lines[-2:]

    def test_a_python_program(self):
        calls, rest = self.stats(sys.executable, "twice.py", env={"QUERN_CACHE": "0"})
        self.assertEqual(calls["cuLaunchKernel"], (3, None))
        self.assertEqual(calls["cuInit"], (1, None))
        self.assertEqual(rest, ["modules loaded: 1, kernels compiled: 1, launched: 3", "missing functions: none"])

    def test_a_linked_program_and_a_failed_call(self):
        calls, _ = self.stats(self.linked(), status=41)
        self.assertEqual(calls, {"cuInit": (1, None), "cuDeviceGetCount": (1, None), "cuMemFree_v2": (1, "1 failed")})

    def test_counts_survive_a_crash(self):
        calls, _ = self.stats(self.linked(), "crash", status=139)
        self.assertEqual(calls["cuDeviceGetCount"], (1, None))

    def test_processes_are_counted_together(self):
        calls, _ = self.stats("sh", "-c", f"{self.linked()}; {self.linked()} & wait; exit 0")
        self.assertEqual(calls["cuInit"], (2, None))

    def test_functions_that_are_asked_for(self):
        asking = self.compile("asking", ASKING, "-ldl")
        self.exec(asking)
        calls, rest = self.stats(asking)
        self.assertEqual(calls["cuMemAlloc"], (2, "2 failed"))
        self.assertEqual(rest[1], "missing functions: cuAskedForInVain cuOfNoVersion")

    def test_a_limit_of_file_sizes(self):
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        self.fails("exec", "--stats", "--", "true", says=["for --stats", "1024 bytes"], advice="ulimit -f", preexec_fn=small)
        limited = self.compile("limited", LIMITED, f"-L{LIBCUDA.parent}", "-lcuda")
        self.assertIn("no driver function was called", self.exec(limited, options=["--stats"], status=7).stderr)

    def test_messages_that_exceed_the_limit_of_file_sizes_are_lost(self):
        limited = self.compile("limited", LIMITED, f"-L{LIBCUDA.parent}", "-lcuda")
        with open(self.path("full.log"), "w+") as log:  # it is full
            log.write(1024 * "x")
            log.flush()
            done = subprocess.run([QUERN, "exec", "--", str(limited)], env=dict(os.environ, QUERN_CPU_WORKERS="many"), stderr=log)
            self.assertEqual((done.returncode, log.tell()), (7, 1024))

    def test_one_below_another_has_a_summary_of_its_own(self):
        inner = f"{shlex.quote(QUERN)} exec --stats -- {self.linked()} 2>inner.txt"
        calls, _ = self.stats("sh", "-c", f"{self.linked()}; {inner}; {shlex.quote(QUERN)} exec -- {self.linked()}; exit 0")
        self.assertEqual(calls["cuInit"], (2, None))
        self.assertIn(" 1 cuInit\n", self.path("inner.txt").read_text())

    def test_a_program_without_cuda(self):
        done = self.exec("true", options=["--stats"])
        self.assertEqual(done.stderr, "quern exec: no driver function was called\n")


class PrivateTables(Exec):
    def test_the_library_that_asks_is_named(self):
        runtime = self.compile("libruntime.so", RUNTIME, "-shared", "-fPIC", f"-L{LIBCUDA.parent}", "-lcuda")
        text = f"import ctypes\nask = ctypes.CDLL({str(runtime)!r}).ask_for_table\nprint(ask(), ask())\n"
        for options in ((), ("--stats",)):
            done = self.exec(sys.executable, "-c", text, options=options)
            self.assertEqual(done.stdout, "500 500\n")  # CUDA_ERROR_NOT_FOUND
            said = [line for line in done.stderr.splitlines() if "private tables" in line]
            self.assertEqual(len(said), 1, done.stderr)
            self.assertIn(f"{runtime} asks for private tables of NVIDIA's driver (cuGetExportTable)", said[0])


if __name__ == "__main__":
    unittest.main()
