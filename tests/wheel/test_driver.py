# SPDX-License-Identifier: Apache-2.0
"""Run by tools/check_wheel in a fresh environment, with and without pytest: a program without quern that loads PTX with ctypes."""
import ctypes
import os

# Written by hand: doubles 32 words.
PTX = b""".version 7.0
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


def doubled(values):
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name, *arguments):
        result = getattr(cuda, name)(*arguments)
        assert result == 0, f"{name} answers {result}"

    context, module, function, words = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)
    call("cuModuleLoadData", ctypes.byref(module), PTX)
    call("cuModuleGetFunction", ctypes.byref(function), module, b"twice")
    host = (ctypes.c_uint32 * len(values))(*values)
    size = ctypes.c_size_t(ctypes.sizeof(host))
    call("cuMemAlloc_v2", ctypes.byref(words), size)
    call("cuMemcpyHtoD_v2", words, host, size)
    call("cuLaunchKernel", function, 1, 1, 1, len(values), 1, 1, 0, None, (ctypes.c_void_p * 1)(ctypes.addressof(words)), None)
    call("cuMemcpyDtoH_v2", host, words, size)
    return list(host)


def test_a_kernel_doubles_its_words():
    assert doubled(range(32)) == list(range(0, 64, 2))


def test_both_names_open_one_driver():
    addresses = {ctypes.cast(ctypes.CDLL(name).cuInit, ctypes.c_void_p).value for name in ("libcuda.so.1", "libcuda.so")}
    assert len(addresses) == 1


def test_it_runs_once_under_quern_exec():
    assert os.environ["QUERN_EXEC"] == "1"


if __name__ == "__main__":
    print(doubled(range(32)) == list(range(0, 64, 2)))
