# SPDX-License-Identifier: Apache-2.0
"""Shared by the tests of the command line: the program, which is the first argument of each test, a source, and functions that run the program."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
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

    def quern(self, *words, status=0, env=None, program=(QUERN,), timeout=120, **options):
        environment = dict(os.environ, QUERN_DEVICE="cpu", QUERN_CACHE="0") | (env or {})
        done = subprocess.run([*program, *map(str, words)], cwd=self.folder.name, env=environment, text=True, errors="replace",
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout, **options)
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
