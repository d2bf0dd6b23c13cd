# SPDX-License-Identifier: Apache-2.0
"""Programs that use the driver API and NVRTC through cuda-bindings, one a test. NumPy or plain Python computes what each expects."""
import ctypes

import numpy as np
import pytest
from cuda.bindings import driver, nvrtc

SOURCE = b"""
__constant__ int table[4];
__device__ int counter;
extern "C" __global__ void scale(float* values, float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}
extern "C" __global__ void look_up(int* out) { out[threadIdx.x] = table[threadIdx.x]; atomicAdd(&counter, 1); }
extern "C" __global__ void fail(int* out) { *out = *(volatile int*)0; }
"""


def ask(result):
    """What a call gives; raises RuntimeError with the name of its error."""
    status, *values = result
    if status != type(status)(0):
        raise RuntimeError(status.name)
    return values[0] if len(values) == 1 else values or None


def ptx_of(source, *options):
    program = ask(nvrtc.nvrtcCreateProgram(source, b"program.cu", 0, [], []))
    ask(nvrtc.nvrtcCompileProgram(program, len(options), list(options)))
    ptx = b" " * ask(nvrtc.nvrtcGetPTXSize(program))
    ask(nvrtc.nvrtcGetPTX(program, ptx))
    ask(nvrtc.nvrtcDestroyProgram(program))
    return ptx


@pytest.fixture
def context():
    ask(driver.cuInit(0))
    device = ask(driver.cuDeviceGet(0))
    context = ask(driver.cuDevicePrimaryCtxRetain(device))
    ask(driver.cuCtxSetCurrent(context))
    yield context
    ask(driver.cuDevicePrimaryCtxRelease(device))


@pytest.fixture
def module(context):
    return ask(driver.cuModuleLoadData(ptx_of(SOURCE, b"--gpu-architecture=compute_80")))


def launch(function, grid, block, values=(), types=(), stream=0):
    ask(driver.cuLaunchKernel(function, grid, 1, 1, block, 1, 1, 0, stream, (values, types), 0))


def test_versions(context):
    assert ask(driver.cuDriverGetVersion()) >= 13000
    assert ask(driver.cuDeviceGetCount()) >= 1
    assert ask(driver.cuDeviceGetName(64, 0)).rstrip(b"\0")


def test_scale_an_array(module):
    values = np.arange(1000, dtype=np.float32)
    memory = ask(driver.cuMemAlloc(values.nbytes))
    ask(driver.cuMemcpyHtoD(memory, values.ctypes.data, values.nbytes))
    launch(ask(driver.cuModuleGetFunction(module, b"scale")), 8, 128, (memory, 2.5, 1000), (None, ctypes.c_float, ctypes.c_int))
    result = np.empty_like(values)
    ask(driver.cuMemcpyDtoH(result.ctypes.data, memory, values.nbytes))
    ask(driver.cuMemFree(memory))
    np.testing.assert_array_equal(result, values * np.float32(2.5))


def test_arguments_as_pointers(module):
    values = np.ones(32, np.float32)
    memory = ask(driver.cuMemAlloc(values.nbytes))
    ask(driver.cuMemcpyHtoD(memory, values.ctypes.data, values.nbytes))
    cells = [np.array([int(memory)], np.uint64), np.array([3], np.float32), np.array([16], np.int32)]
    pointers = np.array([cell.ctypes.data for cell in cells], np.uint64)
    ask(driver.cuLaunchKernel(ask(driver.cuModuleGetFunction(module, b"scale")), 1, 1, 1, 32, 1, 1, 0, 0, pointers.ctypes.data, 0))
    ask(driver.cuMemcpyDtoH(values.ctypes.data, memory, values.nbytes))
    assert values.tolist() == [3.0] * 16 + [1.0] * 16


def test_module_variables(module):
    table, size = ask(driver.cuModuleGetGlobal(module, b"table"))
    values = np.array([5, 6, 7, 8], np.int32)
    assert size == values.nbytes
    ask(driver.cuMemcpyHtoD(table, values.ctypes.data, size))
    memory = ask(driver.cuMemAlloc(size))
    launch(ask(driver.cuModuleGetFunction(module, b"look_up")), 1, 4, (memory,), (None,))
    result = np.zeros(4, np.int32)
    ask(driver.cuMemcpyDtoH(result.ctypes.data, memory, size))
    counter, size = ask(driver.cuModuleGetGlobal(module, b"counter"))
    count = np.zeros(1, np.int32)
    ask(driver.cuMemcpyDtoH(count.ctypes.data, counter, size))
    assert result.tolist() == [5, 6, 7, 8] and count[0] == 4


def test_linked_modules(context):
    parts = (b"extern __device__ int half(int); extern \"C\" __global__ void run(int* p) { *p = half(*p); }",
             b"__device__ int half(int x) { return x / 2; }")
    state = ask(driver.cuLinkCreate(0, [], []))
    for number, part in enumerate(parts):
        ptx = ptx_of(part, b"-rdc=true")
        ask(driver.cuLinkAddData(state, driver.CUjitInputType.CU_JIT_INPUT_PTX, ptx, len(ptx), b"part%d" % number, 0, [], []))
    image, _ = ask(driver.cuLinkComplete(state))
    module = ask(driver.cuModuleLoadData(image))
    ask(driver.cuLinkDestroy(state))
    memory = ask(driver.cuMemAllocManaged(4, driver.CUmemAttach_flags.CU_MEM_ATTACH_GLOBAL.value))
    cell = ctypes.c_int.from_address(int(memory))
    cell.value = 84
    launch(ask(driver.cuModuleGetFunction(module, b"run")), 1, 1, (memory,), (None,))
    ask(driver.cuCtxSynchronize())
    assert cell.value == 42


def test_a_graph_of_copies(context):
    source, target = np.arange(64, dtype=np.uint8), np.zeros(64, np.uint8)
    memory = ask(driver.cuMemAlloc(64))
    stream = ask(driver.cuStreamCreate(0))
    ask(driver.cuStreamBeginCapture(stream, driver.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_GLOBAL))
    ask(driver.cuMemcpyHtoDAsync(memory, source.ctypes.data, 64, stream))
    ask(driver.cuMemcpyDtoHAsync(target.ctypes.data, memory, 64, stream))
    graph = ask(driver.cuStreamEndCapture(stream))
    assert ask(driver.cuGraphGetNodes(graph, 8))[1] == 2
    executable = ask(driver.cuGraphInstantiate(graph, 0))
    for offset in (0, 1):
        source += offset
        ask(driver.cuGraphLaunch(executable, stream))
        ask(driver.cuStreamSynchronize(stream))
        assert (source == target).all()


def test_pools(context):
    stream = ask(driver.cuStreamCreate(0))
    memory = ask(driver.cuMemAllocAsync(256, stream))
    ask(driver.cuMemsetD32Async(memory, 0x01020304, 64, stream))
    result = np.zeros(64, np.uint32)
    ask(driver.cuMemcpyDtoHAsync(result.ctypes.data, memory, 256, stream))
    ask(driver.cuMemFreeAsync(memory, stream))
    ask(driver.cuStreamSynchronize(stream))
    assert (result == 0x01020304).all()


def test_event_times(module):
    begin, end = (ask(driver.cuEventCreate(0)) for _ in range(2))
    memory = ask(driver.cuMemAlloc(1 << 20))
    ask(driver.cuEventRecord(begin, 0))
    launch(ask(driver.cuModuleGetFunction(module, b"scale")), 1024, 256, (memory, 1.0, 1 << 18), (None, ctypes.c_float, ctypes.c_int))
    ask(driver.cuEventRecord(end, 0))
    ask(driver.cuEventSynchronize(end))
    assert 0 < ask(driver.cuEventElapsedTime(begin, end)) < 10_000


def test_errors(context):
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_PTX|CUDA_ERROR_INVALID_IMAGE|CUDA_ERROR_INVALID_SOURCE"):
        ask(driver.cuModuleLoadData(b"no module\0"))
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_DEVICE"):
        ask(driver.cuDeviceGet(99))
    with pytest.raises(RuntimeError, match="NVRTC_ERROR_COMPILATION"):
        ptx_of(b"__global__ void k() { undeclared(); }")


def test_a_kernel_that_reads_address_0():
    """In a context of its own, which is lost."""
    ask(driver.cuInit(0))
    context = ask(driver.cuCtxCreate(None, 0, ask(driver.cuDeviceGet(0))))
    module = ask(driver.cuModuleLoadData(ptx_of(SOURCE)))
    memory = ask(driver.cuMemAlloc(4))
    launch(ask(driver.cuModuleGetFunction(module, b"fail")), 1, 1, (memory,), (None,))
    for _ in range(2):
        with pytest.raises(RuntimeError, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
            ask(driver.cuCtxSynchronize())
    driver.cuCtxDestroy(context)
