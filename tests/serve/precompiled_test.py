#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Precompiled headers in the compile service change only the time of a compile."""
import fcntl
import json
import os
import pathlib
import re
import shutil
import signal
import sys
import tempfile
import time
import unittest

import server
from server import KERNEL, Server

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEMORY = pathlib.Path("/dev/shm")
COOPERATIVE = """namespace cg = cooperative_groups;
extern "C" __global__ void k(float* p) {
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  p[threadIdx.x] = tile.shfl_down(p[threadIdx.x], 1);
}
"""
# Headers that take long to compile, with kernels that use them, including warnings and errors.
HEAVY = {
    "groups": "#include <cooperative_groups.h>\n" + COOPERATIVE,
    "groups, behind comments": "// one\n/* two\n */\n\n#  include <cooperative_groups.h>  // three\n#include <cuda_fp16.h>\n#define X 1\n" + COOPERATIVE,
    "groups and their reductions": """#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(int* p) { p[0] = cg::reduce(cg::tiled_partition<32>(cg::this_thread_block()), p[threadIdx.x], cg::plus<int>()); }
""",
    "cub": """#include <cub/block/block_reduce.cuh>
extern "C" __global__ void k(float* p) {
  using Reduce = cub::BlockReduce<float, 128>;
  __shared__ typename Reduce::TempStorage storage;
  const float sum = Reduce(storage).Sum(p[threadIdx.x]);
  if (threadIdx.x == 0) p[0] = sum;
}
""",
    "cub, two headers": """#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
template <class T> __global__ void k(T* p) {
  using Scan = cub::BlockScan<T, 64>;
  __shared__ typename Scan::TempStorage storage;
  T value = p[threadIdx.x];
  Scan(storage).InclusiveSum(value, value);
  p[threadIdx.x] = value;
}
template __global__ void k<int>(int*);
template __global__ void k<double>(double*);
""",
    "libcu++": """#include <cuda/std/atomic>
#include <cuda/std/array>
__device__ cuda::std::atomic<int> count;
extern "C" __global__ void k(int* p) { cuda::std::array<int, 3> a{1, 2, 3}; p[0] = count.fetch_add(a[threadIdx.x % 3]); }
""",
    "a standard header": "#include <atomic>\nextern \"C\" __global__ void k(std::atomic<int>* p) { p->fetch_add(1); }\n",
    "a warning": "#include <cooperative_groups.h>\nextern \"C\" __global__ void k(int* p) { int unused; p[0] = __LINE__; }\n",
    "an error": "#include <cooperative_groups.h>\nextern \"C\" __global__ void k(int* p) { p[0] = nowhere; }\n",
    "a wrong use of a header": "#include <cub/block/block_reduce.cuh>\nextern \"C\" __global__ void k(int* p) { cub::BlockReduce<int> r; }\n",
}


def without_process(text):
    """NVRTC ends the names of a file's own variables (40_INTERNAL_..., 41_GLOBAL__N__...) with a hash and a number that depend on its process."""
    def shorter(match):
        name, rest = match[2][:int(match[1])], match[2][int(match[1]):]
        return name.rsplit("_", 2)[0] + without_process(rest)
    return re.sub(r"(\d+)(_(?:INTERNAL|GLOBAL)_\w+)", shorter, text)


def outcome(answer):
    """The parts of an answer that the source determines."""
    fields = dict(answer.json)
    for field in ("key", "compile_ms"):
        fields.pop(field, None)
    if answer.status != 200:
        fields["error"].pop("request_id", None)
    return answer.status, without_process(json.dumps(fields))


class Precompiled(unittest.TestCase):
    def start(self, *options, **more):
        made = Server("--workers", 1, *options, **more).ready()
        self.addCleanup(made.stop)
        return made

    def test_no_result_differs(self):
        samples = {str(path.relative_to(ROOT)): path.read_text() for path in sorted((ROOT / "kernels").rglob("*.cu"))}
        self.assertGreater(len(samples), 20)
        sources = {**samples, **HEAVY}
        plain = self.start("--precompiled-headers", 0)
        fast = self.start("--precompiled-headers", "2GiB")
        # In the first round the headers are made that the sources want; then each source is new again, by a line at its end.
        for source in sources.values():
            fast.compile(source)
        wanted = 5  # the two of precompiled.def, and those of the other beginnings in HEAVY
        fast.wait_for(lambda: len(fast.events("precompiled")) >= wanted, 180)
        self.assertEqual(fast.events("not-precompiled"), [])
        before = fast.stats()["precompiled"]["uses"]
        for name, source in sources.items():
            with self.subTest(name):
                new = source + "// again\n"
                self.assertEqual(outcome(fast.compile(new, name=name)), outcome(plain.compile(new, name=name)))
        self.assertEqual(plain.stats()["precompiled"], {"uses": 0, "headers": 0, "bytes": 0})
        self.assertGreaterEqual(fast.stats()["precompiled"]["uses"] - before, wanted)
        metrics = fast.ask("GET", "/metrics").body.decode()
        self.assertRegex(metrics, r"\nquern_precompiled_uses_total [1-9]")

    def test_a_header_of_the_request_comes_before_the_toolkits(self):
        served = self.start()
        served.wait_for(lambda: served.events("precompiled"))
        source = "#include <cooperative_groups.h>\nextern \"C\" __global__ void k(int* p) { p[0] = OWN; }\n"
        header = {"name": "cooperative_groups.h", "text": "#define OWN 4711\n"}
        answer = served.ask("POST", "/v1/compile", json.dumps({"source": source, "headers": [header]}))
        self.assertEqual(answer.status, 200, answer.body)
        self.assertIn("4711", answer.json["ptx"])
        self.assertEqual(served.stats()["precompiled"]["uses"], 0)

    def test_the_memory_is_bounded(self):
        served = self.start("--precompiled-headers", "1MiB")
        served.wait_for(lambda: served.events("precompiled"))
        served.compile(HEAVY["libcu++"])
        time.sleep(2)
        self.assertEqual(len(served.events("precompiled")), 1)

    def test_changed_headers_are_noticed(self):
        toolkit = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, toolkit)
        known = pathlib.Path(self.start().events("toolkit")[0]["nvrtc"]).resolve()
        for folder in ("lib64", "include"):
            (toolkit / folder).mkdir()
        for library in known.parent.glob("libnvrtc*.so.*"):
            if ".alt." not in library.name:
                shutil.copy(library, toolkit / "lib64" / library.name)
        (toolkit / "lib64/libnvrtc.so").symlink_to(known.name)
        for header in ("cuda.h", "nvrtc.h", "cuda_fp16.h", "cuda_fp16.hpp"):
            shutil.copy(next(known.parents[1].rglob("include/" + header)), toolkit / "include" / header)
        extra = toolkit / "include/extra.h"
        extra.write_text("#define EXTRA 1234\n")
        served = self.start(env={"CUDA_HOME": str(toolkit)})
        self.assertTrue(served.events("toolkit")[0]["nvrtc"].startswith(str(toolkit)), served.events("toolkit"))
        source = "#include <extra.h>\nextern \"C\" __global__ void k(int* p) { p[0] = EXTRA; }\n"
        first = served.compile(source)
        self.assertIn("1234", first.json["ptx"])
        extra.write_text("#define EXTRA 5678\n")
        os.kill(served.process.pid, signal.SIGHUP)
        served.wait_for(lambda: len(served.events("toolkit")) == 2)
        second = served.compile(source)
        self.assertIn("5678", second.json["ptx"])
        self.assertNotEqual(first.json["toolkit"]["digest"], second.json["toolkit"]["digest"])
        # Without a signal: the first request that is compiled two seconds later finds the change.
        extra.write_text("#define EXTRA 9012\n")
        served.wait_for(lambda: served.compile(KERNEL % time.monotonic_ns()).status == 503, 10)
        self.assertIn("9012", served.compile(source).json["ptx"])

    def test_the_server_outlives_the_process_that_workers_come_from(self):
        served = self.start("--worker-requests", 2, "--precompiled-headers", 0)
        self.assertEqual(served.compile(KERNEL % 1).status, 200)
        [nursery] = served.children("quern-nursery")
        os.kill(nursery, signal.SIGKILL)
        for number in range(2, 8):
            self.assertEqual(served.compile(KERNEL % number).status, 200)
        self.assertEqual(len(served.workers()), 1)
        self.assertEqual(len(served.children("quern-nursery")), 1)

    def test_folders_of_killed_servers_are_removed(self):
        left = pathlib.Path(tempfile.mkdtemp(prefix="quern-precompiled-", dir=MEMORY))
        used = pathlib.Path(tempfile.mkdtemp(prefix="quern-precompiled-", dir=MEMORY))
        self.addCleanup(used.rmdir)
        (left / "header").write_text("x")
        lock = os.open(used, os.O_RDONLY)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        served = self.start()
        served.wait_for(lambda: served.events("precompiled"))
        self.assertFalse(left.exists())
        self.assertTrue(used.exists())

    def test_nothing_is_left_of_a_killed_server(self):
        served = self.start()
        served.wait_for(lambda: served.events("precompiled"))
        processes = served.workers() + served.children("quern-nursery")
        self.assertEqual(len(processes), 2)
        served.process.kill()
        served.process.wait()
        served.wait_for(lambda: not any(pathlib.Path(f"/proc/{each}").exists() for each in processes), 10)


if __name__ == "__main__":
    server.PROGRAM = sys.argv.pop(1)
    unittest.main()
