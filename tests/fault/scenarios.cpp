// SPDX-License-Identifier: Apache-2.0
#include "scenarios.hpp"

#include <quern/quern.h>
#include <quern/roc.hpp>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "device.hpp"
#include "host_memory.hpp"
#include "runtime/context.hpp"
#include "session/state.hpp"

namespace quern::fault {
namespace {

// x[i] += 1 for i < n; PTX, so that no compiler runs in each of thousands of rounds.
constexpr const char* kAddOne = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry add_one(.param .u64 x, .param .u32 n)
{
  .reg .pred %p; .reg .b32 %r<5>; .reg .f32 %f; .reg .b64 %d<3>;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  ld.param.u32 %r4, [n];
  setp.ge.u32 %p, %r1, %r4;
  @%p bra done;
  ld.param.u64 %d1, [x];
  mul.wide.u32 %d2, %r1, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.f32 %f, [%d1];
  add.f32 %f, %f, 0f3F800000;
  st.global.f32 [%d1], %f;
done:
  ret;
})";
constexpr int kCount = 100;

NDArray counting(const Shape& shape = {kCount}, float first = 0) {
  const NDArray array(shape, Dtype::float32);
  const std::span<float> values = array.values<float>();
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
  return array;
}
bool is_counting(const NDArray& array, float first) {
  return array.identical(counting(Shape(array.shape().begin(), array.shape().end()), first));
}
Kernel add_one(const Session& session) { return session.load_ptx(kAddOne).kernel(); }
const LaunchConfig kConfig = {.grid = 1, .block = 128};

bool device_arrays(const Session& session) {
  const DeviceNDArray made = session.device_array({10, 10}, Dtype::float32, {.order = Order::f});
  made.assign(counting({10, 10}));
  const DeviceNDArray like = session.device_array_like(made);
  like.copy_to_device(made);
  return is_counting(like.copy_to_host().copy(), 0);
}
bool host_to_device(const Session& session) {
  const NDArray host = counting({10, 10});
  const DeviceNDArray whole = session.to_device(host);
  const DeviceNDArray part = session.to_device(host(Slice{{}, {}, -2}));
  whole(Slice{{}, {}, 2}).copy_to_device(host(Slice{0, 5}));
  return part.copy_to_host().identical(host(Slice{{}, {}, -2}).copy()) &&
         whole(Slice{{}, {}, 2}).copy_to_host().identical(host(Slice{0, 5}).copy());
}
bool device_to_host(const Session& session) {
  const NDArray host = counting({10, 10});
  const DeviceNDArray device = session.to_device(host);
  const NDArray gaps = NDArray({10, 20}, Dtype::float32)(kEllipsis, Slice{{}, {}, 2});
  device.copy_to_host(gaps);
  std::vector<float> flat(100);
  device.buffer().copy_to_host(std::as_writable_bytes(std::span(flat)));
  return is_counting(gaps.copy(), 0) && flat[99] == 99 &&
         device.transpose()(Slice{0, 3}).copy_to_host().identical(host.transpose()(Slice{0, 3}).copy()) &&
         device(3, 4).item<float>() == 34;
}
bool streams(const Session& session) {
  const Stream stream = session.stream();
  const NDArray host = counting({10, 10});
  const DeviceNDArray device = session.to_device(host, {.stream = stream.view()});
  const DeviceNDArray part = session.to_device(host(Slice{{}, {}, 2}), {.stream = stream.view()});
  device(Slice{0, 5}).copy_to_device(part, stream);
  device(Slice{{}, {}, 2}).copy_to_device(part, stream);
  const NDArray all = device.copy_to_host(stream);
  const NDArray some = device(kEllipsis, Slice{0, 4}).copy_to_host(stream);
  stream.synchronize();
  return all(Slice{{}, {}, 2}).copy().identical(host(Slice{{}, {}, 2}).copy()) &&
         some.identical(all(kEllipsis, Slice{0, 4}).copy()) && stream.query();
}
bool on_device(const Session& session) {
  const DeviceNDArray a = session.to_device(counting());
  const DeviceNDArray b = a.copy();
  b(Slice{1, 100}).copy_to_device(b(Slice{0, 99}));
  a(Slice{0, 50}).assign(b(Slice{0, 100, 2}));
  a(Slice{50, 100}).assign(7);
  const NDArray raveled = a.reshape({10, 10}).transpose().ravel().copy_to_host();
  return b(99).item<float>() == 98 && a(1).item<float>() == 1 && raveled.at<float>(99) == 7 &&
         raveled.at<float>(9) == 7;
}
bool events(const Session& session) {
  const Stream stream = session.stream();
  const Event start = session.event(), end = session.event();
  start.record(stream);
  const auto device = session.device_array<float>(10);
  device.assign(3.0f, stream.view());
  end.record(stream);
  end.wait(session.default_stream());
  end.synchronize();
  return end.query() && end.elapsed_ms_since(start) >= 0 && device[9].item() == 3;
}
bool automatic(const Session& session) {
  const Stream stream = session.stream();
  std::vector<float> host(kCount);
  const DeviceNDArray device = session.to_device(counting());
  {
    const AutoSynchronize scope = stream.auto_synchronize();
    device.copy_bytes_to_host(std::as_writable_bytes(std::span(host)), scope.stream());
  }
  return host[99] == 99;
}
bool pinned(const Session& session) {
  const Stream stream = session.stream();
  const NDArray locked = session.pinned_array({kCount}, Dtype::float32);
  locked.assign(counting());
  const DeviceNDArray device = session.to_device(locked, {.stream = stream.view()});
  const NDArray owned({kCount}, Dtype::float32);
  {
    const PinnedScope scope = session.pinned({owned});
    device.copy_to_host(owned, stream);
  }
  stream.synchronize();
  return is_counting(owned, 0);
}
bool mapped(const Session& session) {
  const Kernel kernel = add_one(session);
  const MappedNDArray mapped = session.mapped_array({kCount}, Dtype::float32);
  const ManagedNDArray managed = session.managed_array({kCount}, Dtype::float32);
  mapped.host().assign(counting());
  managed.host().assign(counting());
  std::vector<float> own(kCount, 5.0f);
  {
    const MappedScope scope = session.mapped({NDArray::view(own)});
    kernel(kConfig)(mapped, kCount);
    kernel(kConfig)(managed, kCount);
    kernel(kConfig)(scope[0], kCount);
    session.synchronize();
  }
  return is_counting(mapped.host(), 1) && is_counting(managed.host(), 1) && own[50] == 6;
}
bool launches(const Session& session) {
  const Kernel kernel = add_one(session);
  const DeviceNDArray device = session.to_device(counting());
  kernel(kConfig)(device, kCount);
  kernel.for_all(kCount)(device, kCount);
  kernel({.grid = 1, .block = 128, .shared_bytes = 60000})(device, kCount);
  kernel({.grid = 1, .block = 128, .cooperative = true})(device, kCount);
  return is_counting(device.copy_to_host(), 4);
}
bool host_arguments(const Session& session) {
  const Kernel kernel = add_one(session);
  const NDArray array = counting();
  kernel(kConfig)(array, kCount);
  const Stream stream = session.stream();
  kernel({.grid = 1, .block = 128, .stream = stream})(array, kCount);
  stream.synchronize();
  return is_counting(array, 2);
}
bool smart(const Session& session) {
  const Kernel kernel = add_one(session);
  const SmartArray array = session.smart_array(counting());
  kernel(kConfig)(array, kCount);
  kernel(kConfig)(array, kCount);
  const NDArray held = array.host();
  kernel(kConfig)(array, kCount);
  return is_counting(array.host(), 3) && is_counting(held, 3);
}
bool foreign(const Session& session) {
  const Stream stream = session.stream();
  const DeviceNDArray device = session.to_device(counting());
  const DeviceNDArray view = session.adopt(device.cuda_array_interface(stream), nullptr);
  return is_counting(view.copy_to_host(), 0);
}
bool with_allocator(const Session& session, const std::shared_ptr<DeviceAllocator>& pool) {
  session.set_allocator(pool);
  const Stream one = session.stream(), other = session.stream();
  bool right = true;
  for (int round = 0; round < 3; ++round) {
    const DeviceNDArray array = session.to_device(counting(), {.stream = one.view()});
    const DeviceNDArray second = session.device_array_like(array, other);
    one.synchronize();
    second.copy_to_device(array, other);
    const NDArray back = second.copy_to_host(other);
    other.synchronize();
    right = right && is_counting(back, 0);
  }
  pool->trim();
  session.set_allocator(nullptr);
  return right;
}
/// A program's own, in RMM's shape.
struct OwnResource {
  std::shared_ptr<DeviceAllocator> upstream;
  void* allocate(std::size_t bytes, std::size_t alignment, StreamView stream) {
    return upstream->allocate(bytes, alignment, stream);
  }
  void deallocate(void* address, std::size_t bytes, std::size_t alignment, StreamView stream) {
    upstream->deallocate(address, bytes, alignment, stream);
  }
};
bool own_allocator(const Session& session) {
  return with_allocator(session, make_allocator(OwnResource{session.caching_pool()}));
}
bool stream_pool(const Session& session) { return with_allocator(session, session.stream_ordered_pool(0)); }
bool caching_pool(const Session& session) { return with_allocator(session, session.caching_pool()); }
bool registered(const Session& session) {
  std::vector<float> own(kCount, 5.0f);
  roc::register_(session, {NDArray::view(own)});
  const auto device = session.to_device(own);
  roc::deregister(session, {NDArray::view(own)});
  return device.copy_to_host() == own;
}
bool records(const Session& session) {
  struct Pair {
    int a;
    double b;
  };
  const DeviceRecord record = session.to_device(Pair{1, 2});
  record.field("a").assign(7);
  return record.get<Pair>().a == 7 && record.get<Pair>().b == 2;
}
/// Releases what C functions gave, and turns their failures into this test's.
struct CHandles {
  std::vector<std::uint64_t> ids;
  ~CHandles() {
    for (const std::uint64_t id : ids) quern_release(id);
  }
  template <class Handle>
  Handle take(QuernStatus status, const Handle& handle) {
    check(status);
    ids.push_back(handle.id);
    return handle;
  }
  static void check(QuernStatus status) {
    if (status == QUERN_OK) return;
    char text[512];
    quern_last_error(text, sizeof text);
    if (text[0] == '\0') throw Error(ErrorCode::internal, "no error text");
    throw Error(ErrorCode::driver, text);
  }
};
bool c_functions(const Session& session) {
  CHandles handles;
  handles.ids.reserve(16);
  QuernSession in{session::c_handle(session)};
  handles.ids.push_back(in.id);
  QuernModule module{};
  QuernKernel kernel{};
  QuernArray array{}, mapped{}, view{}, shared{};
  QuernStream stream{};
  handles.take(quern_load_ptx(in, kAddOne, &module), module);
  module.id = handles.ids.back();
  handles.take(quern_kernel(module, "add_one", &kernel), kernel);
  const std::int64_t shape[] = {kCount};
  void* host = nullptr;
  handles.take(quern_array_new(in, QUERN_FLOAT32, 1, shape, &array), array);
  handles.take(quern_array_new_mapped(in, QUERN_FLOAT32, 1, shape, &mapped, &host), mapped);
  handles.take(quern_stream_new(in, &stream), stream);
  std::vector<float> values(kCount, 3.0f), back(kCount);
  handles.check(quern_array_from_host_on(array, values.data(), 4 * kCount, stream));
  QuernCudaArray description{};
  description.struct_bytes = sizeof description;
  handles.check(quern_array_describe(array, &description));
  handles.take(quern_array_adopt(in, &description, nullptr, nullptr, &view), view);
  void* tensor = nullptr;
  handles.check(quern_array_to_dlpack(mapped, 0, &tensor));
  handles.take(quern_array_from_dlpack(in, tensor, &shared), shared);
  const std::uint32_t count = kCount;
  QuernArgument arguments[2] = {};
  arguments[0].kind = QUERN_ARGUMENT_ARRAY;
  arguments[0].array = view;
  arguments[1].kind = QUERN_ARGUMENT_SCALAR;
  arguments[1].dtype = QUERN_UINT32;
  arguments[1].data = &count;
  QuernLaunch launch{};
  launch.struct_bytes = sizeof launch;
  std::fill_n(launch.grid, 3, 1u);
  std::fill_n(launch.block, 3, 1u);
  launch.block[0] = 128;
  launch.stream = stream;
  handles.check(quern_launch(kernel, &launch, arguments, 2));
  handles.check(quern_array_to_host_on(array, back.data(), 4 * kCount, stream));
  handles.check(quern_stream_synchronize(stream));
  handles.check(quern_array_from_host(shared, back.data(), 4 * kCount));
  return back[99] == 4 && static_cast<const float*>(host)[99] == 4;
}
bool dlpack_exchange(const Session& session) {
  const DeviceNDArray device = session.to_device(counting({10, 10}));
  const DeviceNDArray again = from_dlpack(session, to_dlpack(device(kEllipsis, Slice{{}, {}, -2})));
  const MappedNDArray mapped = session.mapped_array({kCount}, Dtype::float32);
  mapped.host().assign(counting());
  const NDArray host = from_dlpack(to_dlpack(mapped.host()));
  const DeviceNDArray other = from_dlpack(session, to_dlpack_unversioned(mapped));
  return again(9, 0).item<float>() == 99 && is_counting(host, 0) && other(5).item<float>() == 5;
}
/// What Numba has beside the arrays: callbacks, views of other types, arrays like others.
bool numba_calls(const Session& session) {
  const Stream stream = session.stream();
  const MappedNDArray mapped = session.mapped_array_like(counting());
  const NDArray locked = session.pinned_array_like(mapped);
  locked.assign(counting());
  mapped.copy_to_device(locked, stream);
  auto called = std::make_shared<std::atomic<bool>>(false);
  stream.add_callback([called] { *called = true; });
  std::future<void> done = stream.async_done();
  stream.synchronize();
  done.get();
  const SmartArray array = session.smart_array(session.to_device(locked), true, Where::device);
  array.mark_changed(Where::device, session.external_stream(stream.handle()));
  session.release_pending();
  return *called && is_counting(mapped.host(), 0) &&
         mapped.as_element(Dtype::int32)(1).item<int>() == 0x3f800000 && is_counting(array.host(), 0);
}
/// A failure comes back as diagnostics, and is one.
bool expected_failures(const Session& session) {
  const auto array = session.try_device_array({kCount}, Dtype::float32);
  if (!array) throw Error(ErrorCode::driver, to_string(array.errors()));
  array->assign(counting());
  return is_counting(array->copy_to_host(), 0);
}
/// A context, an event and a stream that the program made itself, by calls that do not fail.
struct Program {
  const driver::DriverTable& api = AuditedDevice::get().plugin.table;
  CUcontext context = nullptr;
  CUevent event = nullptr;
  CUstream stream = nullptr;

  Program() {
    in_driver(true);
    api.cuCtxCreate_v4(&context, nullptr, 0, 0);
    api.cuEventCreate(&event, CU_EVENT_DEFAULT);
    api.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    in_driver(false);
  }
  ~Program() {
    in_driver(true);
    api.cuEventDestroy_v2(event);
    api.cuStreamDestroy_v2(stream);
    api.cuCtxDestroy_v2(context);
    in_driver(false);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
};
bool adopted(const Session& session) {
  const Program program;
  const auto context = runtime::adopt_current_context(session.device());
  if (context == nullptr || context->handle() != program.context) return false;
  const Session joined = session::SessionAccess::with_context(session.device(), context);
  const StreamView stream = joined.external_stream(program.stream);
  const DeviceNDArray array = joined.to_device(counting(), {.stream = stream});
  const Event event = joined.external_event(program.event);
  event.record(stream);
  event.wait(joined.default_stream());
  event.synchronize();
  return is_counting(array.copy_to_host(), 0);
}
constexpr const char* kCuda = R"(
extern "C" __global__ void add_one(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
})";
constexpr const char* kPython = R"(
from numba import cuda

@cuda.jit
def add_one(x, n):
    i = cuda.grid(1)
    if i < n:
        x[i] += 1
)";
bool compiled(const Session& session) {
  const Kernel cuda = session.load_cuda(kCuda).kernel();
  const Kernel python = session.load_python(kPython).kernel();
  const DeviceNDArray array = session.to_device(counting());
  cuda(kConfig)(array, kCount);
  python(kConfig)(array, kCount);
  return is_counting(array.copy_to_host(), 2);
}
bool deferred(const Session& session) {
  const DeferredCleanup scope = session.defer_cleanup();
  for (int i = 0; i < 15; ++i) (void)session.allocate(100);
  const auto device = session.to_device(std::vector<int>{1, 2, 3});
  return device.copy_to_host()[2] == 3 && session.free_memory_bytes() > 0;
}

constexpr Scenario kScenarios[] = {
    {"device arrays", device_arrays},
    {"host to device", host_to_device},
    {"device to host", device_to_host},
    {"copies on streams", streams},
    {"copies on the device", on_device},
    {"events", events},
    {"automatic waits", automatic},
    {"pinned memory", pinned},
    {"mapped memory", mapped},
    {"launches", launches},
    {"host arrays as arguments", host_arguments},
    {"SmartArray", smart},
    {"CUDA array interface", foreign},
    {"stream-ordered pool", stream_pool},
    {"caching pool", caching_pool},
    {"registered memory", registered},
    {"records", records},
    {"DLPack", dlpack_exchange},
    {"the C functions", c_functions},
    {"callbacks and likes", numba_calls},
    {"expected failures", expected_failures},
    {"deferred cleanup", deferred},
    {"an allocator of the program's", own_allocator},
    {"a context of the program's", adopted},
    {"CUDA C++ and Kernel Python", compiled, true},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

}  // namespace quern::fault
