// SPDX-License-Identifier: Apache-2.0
#include "scenarios.hpp"

#include <quern/roc.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "device.hpp"
#include "host_memory.hpp"
#include "runtime/context/context.hpp"
#include "session/state.hpp"

namespace quern::failure {
namespace {

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
constexpr const char* kWithVariables = R"(.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .b8 table[400];
.visible .global .align 4 .f32 gain = 0f40400000;
.visible .entry empty() { ret; }
)";
/// Uses variables of a module after the module's handle was dropped.
bool variables(const Session& session) {
  const Stream stream = session.stream();
  std::optional<Module> module = session.load_ptx(kWithVariables);
  const Global<float[]> table = module->global<float[]>("table");
  const Global<float> gain = module->kernel("empty").global<float>("gain");
  module.reset();
  const NDArray host = counting();
  std::vector<float> back(kCount);
  table.copy_from_host(host.values<float>(), stream);
  const float before = gain.get();
  gain.set(8, stream);
  table.copy_to_host(back, stream);
  stream.synchronize();
  return before == 3 && gain.get() == 8 && back[99] == 99 && table.array().copy_to_host() == back;
}
/// Links two PTX texts into one module.
Module linked_module(const Session& session) {
  const LinkSource user{R"(.version 8.0
.target sm_80
.address_size 64
.extern .global .align 4 .f32 gain;
.visible .entry scale(.param .u64 to)
{
  .reg .f32 %f<2>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to];
  ld.global.f32 %f1, [gain];
  st.global.f32 [%rd1], %f1;
  ret;
}
)",
                        {},
                        SourceLanguage::ptx};
  const LinkSource definer{kWithVariables, {}, SourceLanguage::ptx};
  return session.link({user, definer});
}
bool linked(const Session& session) {
  const Module module = linked_module(session);
  const auto x = session.device_array<float>(1);
  module.kernel("scale")({.grid = 1, .block = 1})(x);
  return x[0].item() == 3 && module.global<float>("gain").get() == 3;
}
bool saved(const Session& session) {
  const Module module = session.load_saved(linked_module(session).saved());
  const Kernel scale = module.kernel("scale");
  scale.prepare({1});
  const auto x = session.device_array<float>(1);
  scale({.grid = 1, .block = 1})(x);
  return x[0].item() == 3;
}
bool priorities(const Session& session) {
  const StreamPriorities range = session.stream_priorities();
  const Stream stream = session.stream({.priority = range.greatest, .non_blocking = true});
  const ManagedNDArray managed = session.managed_array({kCount}, Dtype::float32);
  managed.advise(MemoryAdvice::preferred_location, Where::host);
  managed.host().assign(counting());
  managed.prefetch(Where::device, stream);
  stream.synchronize();
  return stream.priority() == range.greatest && stream.is_non_blocking() && is_counting(managed.host(), 0);
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
bool cancelled(const Session& session) {
  const Stream stream = session.stream();
  const Kernel kernel = add_one(session);
  const DeviceNDArray array = session.to_device(counting());
  const LaunchConfig limited = {.grid = 1, .block = 128, .stream = stream, .timeout = std::chrono::hours(1)};
  kernel(limited)(array, kCount);
  std::future<void> done = stream.async_done();
  stream.cancel();
  try {
    done.get();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::cancelled) throw;
  }
  const bool ran = is_counting(array.copy_to_host(), 1);
  if (!ran && !is_counting(array.copy_to_host(), 0)) return false;
  kernel(limited)(array, kCount);
  stream.synchronize();
  return is_counting(array.copy_to_host(), ran ? 2 : 1);
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
bool smart_on_foreign_streams(const Session& session) {
  const Kernel kernel = add_one(session);
  const ForeignStream one(session), two(session);
  const SmartArray array = session.smart_array(counting());
  kernel({.grid = 1, .block = 128, .stream = one.view()})(array, kCount);
  one.view().synchronize();  // the program orders the work of two streams
  kernel({.grid = 1, .block = 128, .stream = two.view()})(array, kCount);
  const bool both = is_counting(array.host(), 2);
  array.host().assign(counting({kCount}, 5));
  array.mark_changed(Where::host);
  kernel({.grid = 1, .block = 128, .stream = one.view()})(array, kCount);
  return both && is_counting(array.host(), 6);
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
/// A launch on another stream keeps the memory until the launch has run.
bool pooled_launches(const Session& session) {
  const Kernel kernel = add_one(session);
  session.set_allocator(session.caching_pool());
  const Stream one = session.stream(), other = session.stream();
  DeviceNDArray array = session.to_device(counting(), {.stream = one.view()});
  one.synchronize();
  kernel({.grid = 1, .block = 128, .stream = other})(array, kCount);
  const NDArray back = array.copy_to_host(other);
  array = {};
  const DeviceNDArray next = session.to_device(counting({kCount}, 7), {.stream = one.view()});
  other.synchronize();
  const bool right = is_counting(back, 1) && is_counting(next.copy_to_host(), 7);
  session.set_allocator(nullptr);
  return right;
}
/// An allocator of the program, with RMM's interface.
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
bool dlpack_exchange(const Session& session) {
  const DeviceNDArray device = session.to_device(counting({10, 10}));
  const DeviceNDArray again = from_dlpack(session, to_dlpack(device(kEllipsis, Slice{{}, {}, -2})));
  const MappedNDArray mapped = session.mapped_array({kCount}, Dtype::float32);
  mapped.host().assign(counting());
  const NDArray host = from_dlpack(to_dlpack(mapped.host()));
  const DeviceNDArray other = from_dlpack(session, to_dlpack_unversioned(mapped));
  return again(9, 0).item<float>() == 99 && is_counting(host, 0) && other(5).item<float>() == 5;
}
/// An array of another library, whose values are produced on a stream.
struct ByInterface {
  DeviceNDArray array;
  StreamView producer;
  CudaArrayInterface cuda_array_interface() const { return array.cuda_array_interface(producer); }
};
struct ByDlpack {
  DeviceNDArray array;
  StreamView producer;
  dlpack::ManagedTensorVersioned* to_dlpack(std::optional<StreamView> consumer) const {
    return quern::to_dlpack(array, {.producer = producer, .consumer = consumer});
  }
};
bool from_others(const Session& session) {
  const Stream theirs = session.stream(), ours = session.stream();
  const DeviceNDArray source = session.to_device(counting(), {.stream = theirs.view()});
  const DeviceNDArray one = session.device_array_like(source), two = session.device_array_like(source);
  one.copy_to_device(ByInterface{source, theirs}, ours);
  two.copy_to_device(ByDlpack{source, theirs}, ours);
  const NDArray first = one.copy_to_host(ours), second = two.copy_to_host(ours);
  ours.synchronize();
  one.copy_to_device(ByInterface{two(Slice{{}, {}, -1}), theirs});
  two.copy_to_device(to_dlpack(counting({kCount}, 9)));
  return is_counting(first, 0) && is_counting(second, 0) && one(0).item<float>() == 99 &&
         is_counting(two.copy_to_host(), 9);
}
bool ordered_dlpack(const Session& session) {
  const Stream one = session.stream(), other = session.stream();
  const ForeignStream third(session);
  const DeviceNDArray source = session.to_device(counting(), {.stream = one.view()});
  const DeviceNDArray there =
      from_dlpack(session, to_dlpack(source, {.producer = one.view(), .consumer = other.view()}));
  const NDArray first = there.copy_to_host(other);
  other.synchronize();
  there.assign(3.0f, other.view());
  const DeviceNDArray again =
      from_dlpack(session, to_dlpack_unversioned(there, {.producer = other, .consumer = third.view()}),
                  {.producer = third.view(), .consumer = one.view()});
  const NDArray second = again.copy_to_host(one);
  one.synchronize();
  const DeviceNDArray waited =
      from_dlpack(session, to_dlpack(again, {.producer = one, .consumer = std::nullopt}), {.producer = one});
  return is_counting(first, 0) && second.at<float>(99) == 3 && waited(5).item<float>() == 3;
}
/// Lists the resources of this machine. Its drivers are opened separately, not through the failing table. If
/// host memory is exhausted, the affected parts are reported as missing.
bool machine(const Session&) {
  const DoctorReport found = doctor();
  return !found.findings.empty() && devices().size() < 100;
}
/// Features of Numba other than arrays: callbacks, views of other types, arrays like others.
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
/// A context, an event and a stream that the program creates. No failure is planned for these calls.
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

@cuda.jit
def look_up(x, n):
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    if i < n:
        x[i] = table[i % 4] * FACTOR
)";
bool compiled(const Session& session) {
  const Kernel cuda = session.load_cuda(kCuda).kernel();
  const Kernel python = session.load_python(kPython).kernel("add_one");
  const DeviceNDArray array = session.to_device(counting());
  cuda(kConfig)(array, kCount);
  python(kConfig)(array, kCount);
  return is_counting(array.copy_to_host(), 2);
}
bool saved_python(const Session& session) {
  const Module module = session.load_python(kPython);
  const Kernel add = module.kernel("add_one");
  const DeviceNDArray array = session.to_device(counting());
  add(kConfig)(array, kCount);
  session.load_saved(module.saved()).kernel("add_one")(kConfig)(array, kCount);
  return is_counting(array.copy_to_host(), 2);
}
bool bound(const Session& session) {
  const Module module = session.load_python(kPython);
  const Module once = module.bind("TABLE", NDArray::of({1.f, 2.f, 3.f, 4.f})).bind("FACTOR", 2);
  const Module twice = once.bind("FACTOR", 3);
  const DeviceNDArray array = session.to_device(counting());
  once.kernel("look_up")(kConfig)(array, kCount);
  const float first = array(7).item<float>();
  twice.kernel("look_up")(kConfig)(array, kCount);
  return first == 8 && array(7).item<float>() == 12;
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
    {"time limits and cancelling", cancelled},
    {"variables of modules", variables},
    {"linked modules", linked},
    {"saved modules, prepared kernels", saved},
    {"streams with a priority, advice", priorities},
    {"host arrays as arguments", host_arguments},
    {"SmartArray", smart},
    {"SmartArray on streams of the program's", smart_on_foreign_streams},
    {"CUDA array interface", foreign},
    {"arrays of other libraries", from_others},
    {"stream-ordered pool", stream_pool},
    {"caching pool", caching_pool},
    {"launches on a pool's memory", pooled_launches},
    {"registered memory", registered},
    {"records", records},
    {"DLPack", dlpack_exchange},
    {"DLPack between streams", ordered_dlpack},
    {"the C functions", c_functions},
    {"host memory through C", c_memory},
    {"what the machine has", machine},
    {"callbacks and likes", numba_calls},
    {"expected failures", expected_failures},
    {"deferred cleanup", deferred},
    {"an allocator of the program's", own_allocator},
    {"a context of the program's", adopted},
    {"CUDA C++ and Kernel Python", compiled, true},
    {"constants of Kernel Python", bound, true},
    {"saved Kernel Python", saved_python, true},
};

}  // namespace

std::span<const Scenario> scenarios() { return kScenarios; }

}  // namespace quern::failure
