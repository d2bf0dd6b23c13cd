// SPDX-License-Identifier: Apache-2.0
// Lifetime of memory: memory that queued work uses lives until that work has run. After a fault, all of it is
// released.
#include <cuda.h>
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../../support/arrays.hpp"
#include "../../support/messages.hpp"
#include "../../support/small_kernels.hpp"

using namespace quern;
using quern::test::counting;
using quern::test::holds;
using quern::test::kSmallKernels;
using quern::test::message;

namespace {

constexpr const char* kPtx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry add_one(.param .u64 x)
{
  .reg .b32 %r; .reg .f32 %f; .reg .b64 %d<3>;
  mov.u32 %r, %tid.x;
  ld.param.u64 %d1, [x];
  mul.wide.u32 %d2, %r, 4;
  add.u64 %d1, %d1, %d2;
  ld.global.f32 %f, [%d1];
  add.f32 %f, %f, 0f3F800000;
  st.global.f32 [%d1], %f;
  ret;
})";
constexpr unsigned kCount = 100;

template <class F>
F* driver(const Session& session, const char* name) {
  return reinterpret_cast<F*>(driver_function(session.device(), name));
}

/// A stream of the program that is not ordered with other streams. It is never destroyed.
StreamView free_stream(const Session& session) {
  CUcontext popped = nullptr;
  CUstream stream = nullptr;
  driver<decltype(cuCtxPushCurrent_v2)>(
      session, "cuCtxPushCurrent_v2")(static_cast<CUcontext>(session.native_context()));
  driver<decltype(cuStreamCreate)>(session, "cuStreamCreate")(&stream, CU_STREAM_NON_BLOCKING);
  driver<decltype(cuCtxPopCurrent_v2)>(session, "cuCtxPopCurrent_v2")(&popped);
  return session.external_stream(stream);
}

/// Stops a stream until it is opened.
class Gate {
 public:
  explicit Gate(StreamView stream) {
    stream.add_callback([open = open_] {
      while (!*open) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    });
  }
  ~Gate() { *open_ = true; }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { *open_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

/// Does the same with a kernel, so that callbacks on other streams continue.
class KernelGate {
 public:
  explicit KernelGate(const Session& session)
      : flag_(session.mapped_array({1}, Dtype::int32)),
        spin_(session.load_ptx(kSmallKernels).kernel("hold")) {}
  ~KernelGate() { open(); }
  KernelGate(const KernelGate&) = delete;
  KernelGate& operator=(const KernelGate&) = delete;
  void close(StreamView stream) const {
    flag_.host().assign(0);
    spin_({.grid = 1, .block = 1, .stream = stream})(flag_);
  }
  void open() const { *reinterpret_cast<volatile int*>(flag_.host().data()) = 1; }

 private:
  MappedNDArray flag_;
  Kernel spin_;
};

/// A session whose arrays come from a pool that reuses a freed block at once.
class PooledSession : public Session {
 public:
  PooledSession() : Session("cpu") { set_allocator(caching_pool()); }
  ~PooledSession() { set_allocator(nullptr); }
  PooledSession(const PooledSession&) = delete;
  PooledSession& operator=(const PooledSession&) = delete;
};

/// An array of another library. Its memory counts as alive as long as `owner` lives.
struct Foreign {
  DeviceNDArray memory;
  std::shared_ptr<int> owner = std::make_shared<int>();
  CudaArrayInterface cuda_array_interface() const { return memory.cuda_array_interface(); }
};

/// The same with DLPack; `released` counts the calls of the deleter.
struct Tensor {
  dlpack::ManagedTensorVersioned managed;
  std::int64_t shape[1] = {kCount};
  int released = 0;

  explicit Tensor(const DeviceNDArray& memory) {
    managed.tensor.data = memory.data();
    managed.tensor.device = {dlpack::DeviceType::cuda, 0};
    managed.tensor.ndim = 1;
    managed.tensor.shape = shape;
    managed.context = this;
    managed.deleter = [](dlpack::ManagedTensorVersioned* done) {
      ++static_cast<Tensor*>(done->context)->released;
    };
  }
};

NDArray numbers(float first = 0) {
  NDArray array({kCount}, Dtype::float32);
  for (float& value : array.values<float>()) value = first++;
  return array;
}

}  // namespace

TEST_CASE("a queued copy of a strided view to the host keeps the memory, a pool's and another library's") {
  const PooledSession session;
  const StreamView stream = free_stream(session);
  DeviceNDArray pooled = session.to_device(numbers());
  Foreign foreign{session.to_device(numbers())};
  const std::weak_ptr<int> owner = foreign.owner;
  DeviceNDArray view = session.as_cuda_array(foreign);
  foreign.owner.reset();
  Gate gate(stream);
  const NDArray odd = pooled(Slice{1, {}, 2}).copy_to_host(stream);
  const NDArray even = view(Slice{0, {}, 2}).copy_to_host(stream);
  pooled = {};
  view = {};
  session.release_pending();
  const DeviceNDArray next = session.to_device(numbers(1000));  // must not get the block
  CHECK_FALSE(owner.expired());
  gate.open();
  stream.synchronize();
  CHECK(odd.at<float>(1) == 3);
  CHECK(even.at<float>(1) == 2);
  CHECK(owner.expired());
}

TEST_CASE("a buffer is filled and copied, at once and on a stream, and kept until that has run") {
  const PooledSession session;
  const StreamView stream = free_stream(session);
  const auto bytes_of = [](const DeviceBuffer& buffer) {
    std::vector<std::byte> bytes(buffer.size_bytes());
    buffer.copy_to_host(bytes);
    return bytes;
  };
  const DeviceBuffer target = session.allocate(400);
  target.fill(std::byte{3});
  CHECK(bytes_of(target) == std::vector<std::byte>(400, std::byte{3}));
  {
    DeviceBuffer source = session.allocate(400);
    Gate gate(stream);
    source.fill(std::byte{7}, stream);
    target.copy_from(source, stream);
    CHECK(bytes_of(target)[0] == std::byte{3});
    source = {};
    session.release_pending();
    const DeviceNDArray next = session.to_device(numbers(1000));  // must not get the block
    gate.open();
    stream.synchronize();
    CHECK(next(0).item<float>() == 1000);
  }
  CHECK(bytes_of(target) == std::vector<std::byte>(400, std::byte{7}));
  const DeviceBuffer shorter = session.allocate(100);
  shorter.fill(std::byte{9});
  target.copy_from(shorter);
  std::vector<std::byte> both(400, std::byte{7});
  std::fill_n(both.begin(), 100, std::byte{9});
  CHECK(bytes_of(target) == both);
  CHECK(holds(message([&] { shorter.copy_from(target); }), "the buffer has 100"));
  DeviceBuffer alone = session.allocate(400);
  Gate gate(stream);
  alone.fill(std::byte{7}, stream);
  alone = {};
  session.release_pending();
  const DeviceNDArray next = session.to_device(numbers(1000));  // must not get the block
  gate.open();
  stream.synchronize();
  CHECK(next(0).item<float>() == 1000);
}

TEST_CASE("a queued kernel keeps another library's memory until it has run, then lets it go") {
  const Session session("cpu");
  const Kernel add_one = session.load_ptx(kPtx).kernel();
  const StreamView stream = free_stream(session);
  const DeviceNDArray memory = session.to_device(numbers());
  Foreign foreign{memory};
  const std::weak_ptr<int> owner = foreign.owner;
  DeviceNDArray view = session.as_cuda_array(foreign);
  foreign.owner.reset();
  Tensor tensor(memory);
  DeviceNDArray imported = from_dlpack(session, &tensor.managed);
  const LaunchConfig config = {.grid = 1, .block = kCount, .stream = stream};
  {
    Gate gate(stream);
    add_one(config)(view);
    add_one(config)(imported(Slice{0, 50}));
    view = {};
    imported = {};
    session.release_pending();
    CHECK_FALSE(owner.expired());
    CHECK(tensor.released == 0);
    gate.open();
    stream.synchronize();
  }
  CHECK(owner.expired());
  CHECK(tensor.released == 1);
  CHECK(memory(5).item<float>() == 7);
  // If the work has run already, the memory is released with its last view, without a call of the session.
  Tensor second(memory);
  imported = from_dlpack(session, &second.managed);
  add_one({.grid = 1, .block = kCount})(imported);
  CHECK(imported.copy_to_host().at<float>(5) == 8);
  CHECK(second.released == 0);
  imported = {};
  CHECK(second.released == 1);
}

TEST_CASE("what a fault took stays gone: objects of the lost session do not reach into a new one") {
  const Session lost("cpu");
  const auto pool = lost.caching_pool();
  lost.set_allocator(pool);
  (void)lost.device_array({kCount}, Dtype::float32);
  lost.release_pending();  // the pool has a block
  lost.set_allocator(nullptr);
  const DeviceNDArray old = lost.to_device(numbers());
  const DeviceNDArray foreign = lost.as_cuda_array(Foreign{old});
  const SmartArray smart = lost.smart_array(numbers());
  const Stream stream = lost.stream();
  const Event event = lost.event();
  const Kernel add_one = lost.load_ptx(kPtx).kernel();
  add_one({.grid = 1, .block = 1})(nullptr);
  CHECK(holds(message([&] { lost.synchronize(); }), "CUDA_ERROR_ILLEGAL_ADDRESS"));

  const Session fresh("cpu");
  const Kernel fresh_add_one = fresh.load_ptx(kPtx).kernel();
  const DeviceNDArray array = fresh.to_device(numbers(1000));
  const std::size_t free_bytes = fresh.free_memory_bytes();
  const std::vector<std::pair<std::string, std::function<void()>>> entries = {
      {"copy_to_host", [&] { (void)old.copy_to_host(); }},
      {"copy_to_host(stream)", [&] { (void)old.copy_to_host(stream); }},
      {"copy_to_host, strided", [&] { (void)old(Slice{0, {}, 2}).copy_to_host(); }},
      {"copy_to_device", [&] { old.copy_to_device(numbers(5)); }},
      {"copy_to_device(stream)", [&] { old.copy_to_device(numbers(5), stream); }},
      {"assign", [&] { old.assign(-7.0f); }},
      {"item", [&] { (void)old(0).item<float>(); }},
      {"copy", [&] { (void)old.copy(); }},
      {"fill", [&] { old.buffer().fill(std::byte{1}); }},
      {"fill(stream)", [&] { old.buffer().fill(std::byte{1}, stream); }},
      {"another library's array", [&] { (void)foreign.copy_to_host(); }},
      {"to_dlpack", [&] { (void)to_dlpack(old); }},
      {"cuda_array_interface", [&] { (void)old.cuda_array_interface(); }},
      {"as_cuda_array", [&] { (void)fresh.as_cuda_array(Foreign{old}); }},
      {"SmartArray", [&] { (void)smart.device(); }},
      {"launch", [&] { add_one({.grid = 1, .block = kCount})(array.data()); }},
      {"launch of an old array", [&] { add_one({.grid = 1, .block = kCount})(old); }},
      {"device_array", [&] { (void)lost.device_array({kCount}, Dtype::float32); }},
      {"pinned_array", [&] { (void)lost.pinned_array({kCount}, Dtype::float32); }},
      {"mapped_array", [&] { (void)lost.mapped_array({kCount}, Dtype::float32); }},
      {"to_device", [&] { (void)lost.to_device(numbers()); }},
      {"stream", [&] { (void)lost.stream(); }},
      {"event", [&] { (void)lost.event(); }},
      {"load_ptx", [&] { (void)lost.load_ptx(kPtx); }},
      {"free_memory_bytes", [&] { (void)lost.free_memory_bytes(); }},
      {"synchronize", [&] { lost.synchronize(); }},
      {"synchronize of a stream", [&] { stream.synchronize(); }},
      {"query of a stream", [&] { (void)stream.query(); }},
      {"callback", [&] { stream.add_callback([] {}); }},
      {"event.record", [&] { event.record(stream); }},
      {"event.query", [&] { (void)event.query(); }},
      {"event.synchronize", [&] { event.synchronize(); }},
      {"caching_pool", [&] { (void)pool->allocate(4 * kCount, 256, fresh.default_stream()); }},
      {"stream_ordered_pool", [&] { (void)lost.stream_ordered_pool(); }},
  };
  for (const auto& [what, entry] : entries) {
    CAPTURE(what);
    try {
      entry();
      FAIL_CHECK("it was done");
    } catch (const DriverError& error) {
      CHECK(error.code() == ErrorCode::device_fault);
      CHECK(error.result() == CUDA_ERROR_ILLEGAL_ADDRESS);
      CHECK(holds(error.what(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
      CHECK(holds(error.what(), "open a new session"));
    }
  }
  CHECK(message([&] { fresh_add_one({.grid = 1, .block = kCount})(old); }) != "");
  CHECK(message([&] { array.copy_to_device(old); }) != "");
  CHECK(fresh.free_memory_bytes() == free_bytes);
  CHECK(array.copy_to_host().identical(numbers(1000)));
  fresh_add_one({.grid = 1, .block = kCount})(array);
  CHECK(array(5).item<float>() == 1006);
}

TEST_CASE("a lost session that goes leaves the new one as it is") {
  std::optional<Session> lost("cpu");
  std::vector<DeviceNDArray> old(20, lost->to_device(numbers()));
  lost->load_ptx(kPtx).kernel()({.grid = 1, .block = 1})(nullptr);
  CHECK(message([&] { lost->synchronize(); }) != "");
  const Session fresh("cpu");
  const DeviceNDArray array = fresh.to_device(numbers(1000));
  for (int i = 0; i < 20; ++i) old.push_back(fresh.to_device(numbers()));
  old.clear();
  lost.reset();
  fresh.release_pending();
  CHECK(array.copy_to_host().identical(numbers(1000)));
  CHECK(fresh.to_device(numbers(5)).copy_to_host().identical(numbers(5)));
}

TEST_CASE("the per-thread default stream is another one in every thread, for pools as well") {
  const Session session("cpu");
  const Kernel add_one = session.load_ptx(kPtx).kernel();
  const StreamView own = session.per_thread_default_stream();
  const LaunchConfig config = {.grid = 1, .block = kCount, .stream = own};
  const KernelGate gate(session);
  for (const auto& pool : {session.caching_pool(), session.stream_ordered_pool()}) {
    session.set_allocator(pool);
    DeviceNDArray array = session.to_device(numbers(), {.stream = own});
    own.synchronize();
    std::promise<void> queued, dropped;
    std::thread worker([&] {
      gate.close(own);  // the worker's
      add_one(config)(array);
      queued.set_value();
      dropped.get_future().get();
      gate.open();
      own.synchronize();
    });
    queued.get_future().get();
    array = {};
    session.release_pending();
    const DeviceNDArray next = session.to_device(numbers(1000), {.stream = own});  // must not get the block
    own.synchronize();
    dropped.set_value();
    worker.join();
    CHECK(next(5).item<float>() == 1005);
  }
  session.set_allocator(nullptr);
}

TEST_CASE(
    "a caching pool hands a block of a thread's own default stream to other threads when that has run") {
  const Session session("cpu");
  const auto pool = session.caching_pool();
  const StreamView own = session.per_thread_default_stream();
  constexpr std::size_t kAlignment = 256;
  void* const block = pool->allocate(1000, kAlignment, own);
  std::atomic<bool> ran = false;
  own.add_callback([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    ran = true;
  });
  pool->deallocate(block, 1000, kAlignment, own);
  void* const same = pool->allocate(1000, kAlignment, own);
  CHECK(same == block);
  CHECK_FALSE(ran);  // this thread's stream is in order
  pool->deallocate(same, 1000, kAlignment, own);
  std::thread([&] {
    void* const other = pool->allocate(1000, kAlignment, own);
    CHECK(other == block);
    CHECK(ran);
    pool->deallocate(other, 1000, kAlignment, own);
  }).join();
}

TEST_CASE("a queued kernel keeps a pool's buffer that it got as one") {
  const PooledSession session;
  const Kernel add_one = session.load_ptx(kPtx).kernel();
  const StreamView stream = free_stream(session);
  DeviceBuffer buffer = session.allocate(4 * kCount);
  Gate gate(stream);
  add_one({.grid = 1, .block = kCount, .stream = stream})(buffer);
  buffer = {};
  session.release_pending();
  const DeviceNDArray next = session.to_device(numbers(1000));  // must not get the block
  gate.open();
  stream.synchronize();
  CHECK(next(5).item<float>() == 1005);
}
