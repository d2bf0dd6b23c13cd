# SPDX-License-Identifier: Apache-2.0
"""Kinds of programs that use cuda.core, one a test. NumPy or plain Python computes what each expects."""
import ctypes
import gc
import multiprocessing
import pickle

import numpy as np
import pytest
from cuda.core import (Buffer, Device, DeviceMemoryResource, DeviceMemoryResourceOptions, EventOptions, GraphMemoryResource, LaunchConfig,
                       LegacyPinnedMemoryResource, Linker, LinkerOptions, ManagedMemoryResource, ObjectCode, PinnedMemoryResource, Program,
                       ProgramOptions, Stream, StreamOptions, VirtualMemoryResource, launch)
from cuda.core.graph import GraphDefinition
from cuda.core.utils import StridedMemoryView, args_viewable_as_strided_memory
from cuda.pathfinder import find_nvidia_header_directory

COUNT = 1000
AXPY = """
extern "C" __global__ void axpy(float a, const float* x, float* y, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) y[i] += a * x[i];
}
template <typename T> __global__ void fill(T* out, T value, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = value;
}
extern "C" __global__ void add_one(int* value) { *value += 1; }
extern "C" __global__ void double_it(int* value) { *value *= 2; }
"""


@pytest.fixture
def device():
    device = Device()
    device.set_current()
    return device


@pytest.fixture
def stream(device):
    return device.create_stream()


@pytest.fixture
def pinned(device):
    return LegacyPinnedMemoryResource()


def compiled(source=AXPY, code="ptx", names=(), **options):
    options = ProgramOptions(std="c++17", arch=f"sm_{Device().arch}", **options)
    return Program(source, "c++", options=options).compile(code, name_expressions=names)


def headers():
    return [find_nvidia_header_directory(name) for name in ("cudart", "cccl")]


def array(buffer, dtype):
    return np.from_dlpack(buffer).view(dtype)


def integer(resource, stream, value=0):
    buffer = resource.allocate(4, stream=stream)
    view = array(buffer, np.int32)
    view[0] = value
    return buffer, view


def test_device_properties(device):
    properties = device.properties
    assert device.compute_capability == (properties.compute_capability_major, properties.compute_capability_minor)
    assert properties.warp_size == 32
    assert properties.max_threads_per_block == 1024
    assert device.name


def test_device_list(device):
    devices = Device.get_all_devices()
    assert device.device_id in [each.device_id for each in devices]
    assert len({each.uuid for each in devices}) == len(devices)


def test_stream_priorities(device):
    high = device.create_stream(options=StreamOptions(nonblocking=True, priority=-1))
    assert high.priority == -1 and high.is_nonblocking
    high.sync()


def test_foreign_stream(device, pinned, stream):
    buffer, view = integer(pinned, stream, 3)
    borrowed = Stream.from_handle(int(stream.handle))
    launch(borrowed, LaunchConfig(grid=1, block=1), compiled().get_kernel("add_one"), buffer)
    stream.sync()
    assert view[0] == 4


def test_event_timing(device, stream):
    options = EventOptions(timing_enabled=True)
    begin, end = device.create_event(options), device.create_event(options)
    stream.record(begin)
    stream.record(end)
    end.sync()
    assert begin.is_done and 0 <= end - begin < 10_000


def test_event_between_streams(device, pinned, stream):
    other = device.create_stream()
    buffer, view = integer(pinned, stream, 1)
    code = compiled()
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("add_one"), buffer)
    other.wait(stream.record())
    launch(other, LaunchConfig(grid=1, block=1), code.get_kernel("double_it"), buffer)
    other.sync()
    assert view[0] == 4


def test_scalar_arguments(stream, pinned):
    x, y = (array(pinned.allocate(4 * COUNT, stream=stream), np.float32) for _ in range(2))
    x[:], y[:] = np.arange(COUNT), 1
    kernel = compiled().get_kernel("axpy")
    launch(stream, LaunchConfig(grid=8, block=128), kernel, np.float32(2), x.ctypes.data, y.ctypes.data, np.uint32(COUNT))
    stream.sync()
    np.testing.assert_array_equal(y, 2 * np.arange(COUNT, dtype=np.float32) + 1)


def test_template_names(stream, pinned):
    code = compiled(names=("fill<int>", "fill<double>"))
    for name, dtype in (("fill<int>", np.int32), ("fill<double>", np.float64)):
        buffer = pinned.allocate(100 * np.dtype(dtype).itemsize, stream=stream)
        launch(stream, LaunchConfig(grid=1, block=32), code.get_kernel(name), buffer, dtype(7), np.int32(100))
        stream.sync()
        assert (array(buffer, dtype) == 7).all()


def test_macros_and_register_limit(stream, pinned):
    source = 'extern "C" __global__ void store(int* out) { *out = ANSWER; }'
    code = compiled(source, define_macro=[("ANSWER", "42")], max_register_count=32)
    buffer, view = integer(pinned, stream)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("store"), buffer)
    stream.sync()
    assert view[0] == 42


def test_program_from_ptx(stream, pinned):
    ptx = compiled(relocatable_device_code=True)
    code = Program(ptx.code.decode(), "ptx", options=ProgramOptions(arch=f"sm_{Device().arch}")).compile("cubin")
    buffer, view = integer(pinned, stream, 5)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("add_one"), buffer)
    stream.sync()
    assert view[0] == 6


def test_cubin_from_nvrtc(stream, pinned):
    buffer, view = integer(pinned, stream, 5)
    launch(stream, LaunchConfig(grid=1, block=1), compiled(code="cubin").get_kernel("add_one"), buffer)
    stream.sync()
    assert view[0] == 6


def test_linked_programs(stream, pinned):
    caller = 'extern __device__ int square(int); extern "C" __global__ void run(int* value) { *value = square(*value); }'
    callee = "__device__ int square(int value) { return value * value; }"
    objects = [compiled(source, relocatable_device_code=True) for source in (caller, callee)]
    code = Linker(*objects, options=LinkerOptions(arch=f"sm_{Device().arch}")).link("cubin")
    buffer, view = integer(pinned, stream, 9)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("run"), buffer)
    stream.sync()
    assert view[0] == 81


def test_object_code_from_file(stream, pinned, tmp_path):
    file = tmp_path / "axpy.ptx"
    file.write_bytes(compiled().code)
    buffer, view = integer(pinned, stream, 10)
    launch(stream, LaunchConfig(grid=1, block=1), ObjectCode.from_ptx(str(file)).get_kernel("add_one"), buffer)
    stream.sync()
    assert view[0] == 11


def test_pickled_object_code(stream, pinned):
    code = pickle.loads(pickle.dumps(compiled()))
    buffer, view = integer(pinned, stream, 10)
    launch(stream, LaunchConfig(grid=1, block=1), code.get_kernel("double_it"), buffer)
    stream.sync()
    assert view[0] == 20


def test_kernel_attributes(device):
    attributes = compiled('extern "C" __global__ void __launch_bounds__(64) k(int* p) { __shared__ int s[100]; s[threadIdx.x] = *p; '
                          "__syncthreads(); *p = s[63 - threadIdx.x]; }").get_kernel("k").attributes
    assert attributes.max_threads_per_block == 64
    assert attributes.shared_size_bytes == 400
    assert attributes.num_regs > 0


def test_kernel_arguments(device):
    arguments = compiled().get_kernel("axpy").arguments_info
    assert [(each.offset, each.size) for each in arguments] == [(0, 4), (8, 8), (16, 8), (24, 4)]


def test_occupancy(device):
    occupancy = compiled().get_kernel("axpy").occupancy
    blocks = occupancy.max_active_blocks_per_multiprocessor(1024, 0)
    assert 1 <= blocks <= device.properties.max_threads_per_multiprocessor // 1024
    grid, block = occupancy.max_potential_block_size(0, 0)
    assert grid >= 1 and block % 32 == 0


def test_large_dynamic_shared_memory(device, stream, pinned):
    source = """extern __shared__ int cells[];
    extern "C" __global__ void sum(int* out, int count) {
      for (int i = threadIdx.x; i < count; i += blockDim.x) cells[i] = i;
      __syncthreads();
      if (threadIdx.x == 0) { int total = 0; for (int i = 0; i < count; ++i) total += cells[i]; *out = total; }
    }"""
    kernel, count = compiled(source).get_kernel("sum"), 16000
    kernel.attributes  # 64,000 bytes are more than a launch may have without an attribute; cuda.core sets none by itself.
    from cuda.bindings import driver
    handle = driver.CUkernel(int(kernel.handle))
    limit = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert driver.cuKernelSetAttribute(limit, 4 * count, handle, driver.CUdevice(device.device_id))[0] == 0
    buffer, view = integer(pinned, stream)
    launch(stream, LaunchConfig(grid=1, block=128, shmem_size=4 * count), kernel, buffer, np.int32(count))
    stream.sync()
    assert view[0] == count * (count - 1) // 2


def test_cooperative_launch(stream, pinned):
    source = """#include <cooperative_groups.h>
    extern "C" __global__ void sum(int* cells, int* out) {
      const auto grid = cooperative_groups::this_grid();
      cells[grid.thread_rank()] = 1;
      grid.sync();
      if (grid.thread_rank() == 0) for (int i = 0; i < grid.size(); ++i) *out += cells[i];
    }"""
    kernel = compiled(source, include_path=headers()).get_kernel("sum")
    cells = pinned.allocate(4 * 128, stream=stream)
    buffer, view = integer(pinned, stream)
    launch(stream, LaunchConfig(grid=2, block=64, is_cooperative=True), kernel, cells, buffer)
    stream.sync()
    assert view[0] == 128


def test_cluster_launch(stream, pinned):
    source = """extern "C" __global__ void rank(unsigned* out) {
      unsigned rank; asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); out[blockIdx.x] = rank;
    }"""
    buffer = pinned.allocate(16, stream=stream)
    launch(stream, LaunchConfig(grid=2, cluster=2, block=1), compiled(source).get_kernel("rank"), buffer)
    stream.sync()
    assert array(buffer, np.uint32).tolist() == [0, 1, 0, 1]


def test_copies_through_device_memory(device, stream, pinned):
    source, target = pinned.allocate(COUNT, stream=stream), pinned.allocate(COUNT, stream=stream)
    array(source, np.uint8)[:] = np.arange(COUNT) % 251
    middle = device.allocate(COUNT, stream=stream)
    source.copy_to(middle, stream=stream)
    middle.copy_to(target, stream=stream)
    stream.sync()
    np.testing.assert_array_equal(array(target, np.uint8), np.arange(COUNT) % 251)
    middle.close(stream)


def test_fills(device, stream, pinned):
    buffer = pinned.allocate(16, stream=stream)
    for value, dtype in ((7, np.uint8), (np.uint16(0x1234), np.uint16), (np.float32(1.5), np.float32)):
        buffer.fill(value, stream=stream)
        stream.sync()
        assert (array(buffer, dtype) == value).all()


def test_pool_with_a_limit(device, stream):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(max_size=1 << 22))
    first = pool.allocate(1 << 20, stream=stream)
    assert pool.attributes.used_mem_current >= 1 << 20
    with pytest.raises(Exception, match="OUT_OF_MEMORY"):
        pool.allocate(1 << 24, stream=stream)
    first.close(stream)
    stream.sync()
    assert pool.attributes.used_mem_current == 0


def test_pinned_pool(stream, device):
    buffer = PinnedMemoryResource().allocate(4, stream=stream)
    assert buffer.is_host_accessible and buffer.is_device_accessible
    stream.sync()
    view = array(buffer, np.int32)
    view[0] = 1
    launch(stream, LaunchConfig(grid=1, block=1), compiled().get_kernel("add_one"), buffer)
    stream.sync()
    assert view[0] == 2


def test_managed_memory(stream, device):
    buffer = ManagedMemoryResource().allocate(4, stream=stream)
    stream.sync()
    view = array(buffer, np.int32)
    view[0] = 20
    launch(stream, LaunchConfig(grid=1, block=1), compiled().get_kernel("add_one"), buffer)
    stream.sync()
    assert view[0] == 21


def test_virtual_memory_grows(device, stream, pinned):
    resource = VirtualMemoryResource(device)
    buffer = resource.allocate(4096, stream=stream)
    buffer.fill(9, stream=stream)
    stream.sync()
    size = buffer.size
    larger = resource.modify_allocation(buffer, 4 * size)
    assert larger.size >= 4 * size
    copy = pinned.allocate(4096, stream=stream)
    launch(stream, LaunchConfig(grid=1, block=32), compiled(names=("fill<int>",)).get_kernel("fill<int>"), int(larger.handle) + 2 * size,
           np.int32(5), np.int32(16))
    Buffer.from_handle(larger.handle, 4096).copy_to(copy, stream=stream)
    stream.sync()
    assert (array(copy, np.uint8) == 9).all()


def test_array_of_another_library(device):
    @args_viewable_as_strided_memory((0,))
    def shape_of(values):
        view = values.view(-1)
        return view.shape, view.is_device_accessible

    assert shape_of(np.zeros((3, 4), np.float32)) == ((3, 4), False)


def test_strided_view_of_device_memory(device, stream):
    buffer = device.allocate(64, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (4, 2), dtype=np.dtype(np.float64), strides=(1, 4))
    assert view.ptr == int(buffer.handle) and view.is_device_accessible and view.shape == (4, 2)
    stream.sync()


def test_captured_graph(stream, pinned):
    code = compiled()
    buffer, view = integer(pinned, stream, 1)
    builder = stream.device.create_graph_builder().begin_building()
    for name in ("add_one", "double_it", "add_one"):
        launch(builder, LaunchConfig(grid=1, block=1), code.get_kernel(name), buffer)
    graph = builder.end_building().complete()
    assert view[0] == 1
    for expected in (5, 13):
        graph.launch(stream)
        stream.sync()
        assert view[0] == expected


def test_captured_graph_with_branches(stream, pinned):
    code = compiled()
    cells = [integer(pinned, stream, value) for value in (1, 2, 3)]
    first, *others = stream.device.create_graph_builder().begin_building().split(3)
    for builder, (buffer, _) in zip((first, *others), cells):
        launch(builder, LaunchConfig(grid=1, block=1), code.get_kernel("double_it"), buffer)
    graph = type(first).join(first, *others).end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert [int(view[0]) for _, view in cells] == [2, 4, 6]


def test_graph_of_nodes(stream, pinned):
    code = compiled()
    source, view = integer(pinned, stream, 5)
    target, result = integer(pinned, stream)
    definition, called = GraphDefinition(), []
    node = definition.launch(LaunchConfig(grid=1, block=1), code.get_kernel("add_one"), source)
    node.memcpy(target, source, 4).callback(lambda: called.append(int(result[0])))
    del node
    gc.collect()
    definition.instantiate().launch(stream)
    stream.sync()
    assert result[0] == 6 and called == [6] and view[0] == 6


def test_graph_with_a_condition(stream, pinned):
    source = """#include <cuda_device_runtime_api.h>
    extern "C" __global__ void decide(cudaGraphConditionalHandle handle, const int* value) { cudaGraphSetConditional(handle, *value < 100); }
    extern "C" __global__ void double_it(int* value) { *value *= 2; }"""
    code = compiled(source, include_path=headers())
    buffer, view = integer(pinned, stream, 3)
    builder = stream.device.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=1)
    body = builder.while_loop(condition).begin_building()
    launch(body, LaunchConfig(grid=1, block=1), code.get_kernel("double_it"), buffer)
    launch(body, LaunchConfig(grid=1, block=1), code.get_kernel("decide"), condition, buffer)
    body.end_building()
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert view[0] == 192


def test_graph_memory(device, stream, pinned):
    target, view = integer(pinned, stream)
    resource = GraphMemoryResource(device)
    builder = device.create_graph_builder().begin_building()
    scratch = resource.allocate(4, stream=builder)
    scratch.fill(np.int32(40), stream=builder)
    launch(builder, LaunchConfig(grid=1, block=1), compiled().get_kernel("add_one"), scratch)
    target.copy_from(scratch, stream=builder)
    scratch.close(builder)
    builder.end_building().complete().launch(stream)
    stream.sync()
    assert view[0] == 41


def fill_of_parent(buffer_handle, resource, done):
    device = Device()
    device.set_current()
    stream = device.create_stream()
    Buffer.from_ipc_descriptor(resource, buffer_handle, stream=stream).fill(77, stream=stream)
    stream.sync()
    done.put(True)


def test_memory_of_another_process(device, stream, pinned):
    pool = DeviceMemoryResource(device, DeviceMemoryResourceOptions(ipc_enabled=True, max_size=1 << 22))
    shared, copy = pool.allocate(64, stream=stream), pinned.allocate(64, stream=stream)
    stream.sync()
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    child = context.Process(target=fill_of_parent, args=(shared.ipc_descriptor, pool, done))
    child.start()
    assert done.get(timeout=60)
    child.join()
    shared.copy_to(copy, stream=stream)
    stream.sync()
    assert ctypes.string_at(int(copy.handle), 64) == b"\x4d" * 64
