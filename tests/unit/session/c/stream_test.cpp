// SPDX-License-Identifier: Apache-2.0
// Streams and events through the C functions: quern's streams, the driver's special ones, and those of the
// program.
#include <atomic>
#include <chrono>
#include <thread>

#include "native.hpp"

using namespace c;

namespace {

std::int32_t reached(QuernEvent event) {
  std::int32_t answer = -1;
  QUERN_GOOD(quern_event_query(event, &answer));
  return answer;
}
std::int32_t finished(QuernStream stream) {
  std::int32_t answer = -1;
  QUERN_GOOD(quern_stream_query(stream, &answer));
  return answer;
}
void* native(QuernStream stream) {
  void* handle = nullptr;
  QUERN_GOOD(quern_stream_native(stream, &handle));
  return handle;
}

}  // namespace

TEST_CASE("a program's own stream takes work, and is the program's to the end") {
  const Session session = open_cpu();
  const Current current(session);
  const auto make = driver<decltype(cuStreamCreate)>(session, "cuStreamCreate");
  const auto destroy = driver<decltype(cuStreamDestroy_v2)>(session, "cuStreamDestroy_v2");
  const auto query = driver<decltype(cuStreamQuery)>(session, "cuStreamQuery");
  CUstream mine = nullptr;
  REQUIRE(make(&mine, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  {
    const Kernel hold = kernel_of(session, kScalePtx, "hold");
    const Flag flag(session);
    Stream stream;
    QUERN_GOOD(quern_stream_external(session, mine, stream.place()));
    CHECK(native(stream) == mine);
    QUERN_GOOD(launch(hold, launch_of(1, 1, stream), flag.arguments()));
    CHECK(query(mine) == CUDA_ERROR_NOT_READY);
    CHECK(finished(stream) == 0);
    flag.open();
    QUERN_GOOD(quern_stream_synchronize(stream));
    CHECK(query(mine) == CUDA_SUCCESS);
    CHECK(finished(stream) == 1);
    const int values[] = {1, 2, 3};
    int back[3] = {};
    const Array array = new_array(session, QUERN_INT32, {3});
    QUERN_GOOD(quern_array_from_host_on(array, values, sizeof values, stream));
    QUERN_GOOD(quern_array_to_host_on(array, back, sizeof back, stream));
    QUERN_GOOD(quern_stream_synchronize(stream));
    CHECK(back[2] == 3);
  }
  CHECK(destroy(mine) == CUDA_SUCCESS);
}

TEST_CASE("a stream of another context is refused") {
  const Session session = open_cpu();
  CUcontext context = nullptr;
  REQUIRE(driver<decltype(cuCtxCreate_v4)>(session, "cuCtxCreate_v4")(&context, nullptr, 0, 0) ==
          CUDA_SUCCESS);
  Session other;
  QUERN_GOOD(quern_session_adopt("cpu", other.place()));
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1});
  const float by = 2;
  Stream theirs;
  QUERN_GOOD(quern_stream_external(other, nullptr, theirs.place()));
  QUERN_FAILS(
      QUERN_USAGE, "another session",
      launch(scale, launch_of(1, 1, theirs), {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)}));
  QUERN_FAILS(QUERN_USAGE, "another session", quern_array_from_host_on(array, &by, sizeof by, theirs));
  theirs.reset();
  other.reset();
  CHECK(driver<decltype(cuCtxDestroy_v2)>(session, "cuCtxDestroy_v2")(context) == CUDA_SUCCESS);
}

TEST_CASE("a stream that the driver does not know is an error of the driver's, with its result") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1});
  const float by = 2;
  Stream invented;
  QUERN_GOOD(quern_stream_external(session, reinterpret_cast<void*>(0x12345), invented.place()));
  QUERN_FAILS(
      QUERN_DRIVER, "cuLaunchKernel",
      launch(scale, launch_of(1, 1, invented), {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)}));
  CHECK(quern_last_driver_result() == CUDA_ERROR_INVALID_HANDLE);
  QUERN_FAILS(QUERN_DRIVER, "stream", quern_stream_synchronize(invented));
  CHECK(values_of<float>(array, 1)[0] == 1);
}

TEST_CASE("the legacy and the per-thread default stream take work under the driver's own handles") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const float by = 2;
  Stream legacy, per_thread, null;
  QUERN_GOOD(quern_stream_legacy_default(session, legacy.place()));
  QUERN_GOOD(quern_stream_per_thread_default(session, per_thread.place()));
  QUERN_GOOD(quern_stream_external(session, nullptr, null.place()));
  CHECK(native(legacy) == CU_STREAM_LEGACY);
  CHECK(native(per_thread) == CU_STREAM_PER_THREAD);
  CHECK(native(null) == nullptr);
  for (const QuernStream stream : {QuernStream(legacy), QuernStream(per_thread), QuernStream(null)}) {
    const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2});
    QUERN_GOOD(
        launch(scale, launch_of(1, 2, stream), {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)}));
    QUERN_GOOD(quern_stream_synchronize(stream));
    CHECK(finished(stream) == 1);
    CHECK(values_of<float>(array, 2)[1] == 4);
  }
}

TEST_CASE("a program's own event is recorded, waited for and asked, and is the program's to the end") {
  const Session session = open_cpu();
  const Current current(session);
  const auto make = driver<decltype(cuEventCreate)>(session, "cuEventCreate");
  const auto destroy = driver<decltype(cuEventDestroy_v2)>(session, "cuEventDestroy_v2");
  const auto query = driver<decltype(cuEventQuery)>(session, "cuEventQuery");
  CUevent mine = nullptr;
  REQUIRE(make(&mine, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  {
    const Kernel hold = kernel_of(session, kScalePtx, "hold");
    const Flag flag(session);
    Stream first, second;
    Event event, behind, untimed;
    QUERN_GOOD(quern_stream_new(session, first.place()));
    QUERN_GOOD(quern_stream_new(session, second.place()));
    QUERN_GOOD(quern_event_external(session, mine, event.place()));
    QUERN_GOOD(quern_event_new(session, behind.place()));
    void* handle = nullptr;
    QUERN_GOOD(quern_event_native(event, &handle));
    CHECK(handle == mine);
    QUERN_GOOD(launch(hold, launch_of(1, 1, first), flag.arguments()));
    QUERN_GOOD(quern_event_record(event, first));
    CHECK(query(mine) == CUDA_ERROR_NOT_READY);
    QUERN_GOOD(quern_event_wait(event, second));
    QUERN_GOOD(quern_event_record(behind, second));
    CHECK(reached(event) == 0);
    CHECK(reached(behind) == 0);
    flag.open();
    QUERN_GOOD(quern_event_synchronize(behind));
    CHECK(reached(event) == 1);
    CHECK(query(mine) == CUDA_SUCCESS);
    double ms = -1;
    QUERN_GOOD(quern_event_elapsed_ms(event, behind, &ms));
    CHECK(ms >= 0);
    QUERN_GOOD(quern_event_new_untimed(session, untimed.place()));
    QUERN_GOOD(quern_event_record(untimed, second));
    QUERN_GOOD(quern_event_synchronize(untimed));
    QUERN_FAILS(QUERN_DRIVER, "cuEventElapsedTime", quern_event_elapsed_ms(event, untimed, &ms));
    CHECK(quern_last_driver_result() == CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(destroy(mine) == CUDA_SUCCESS);
}

TEST_CASE("a callback runs when the stream has come that far") {
  const Session session = open_cpu();
  const Kernel hold = kernel_of(session, kScalePtx, "hold");
  static std::atomic<int> called;
  called = 0;
  const Flag flag(session);
  Stream stream;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(launch(hold, launch_of(1, 1, stream), flag.arguments()));
  QUERN_GOOD(quern_stream_add_callback(
      stream, [](void* user) { static_cast<std::atomic<int>*>(user)->fetch_add(1); }, &called));
  CHECK(called == 0);
  flag.open();
  QUERN_GOOD(quern_stream_synchronize(stream));
  CHECK(called == 1);
}

TEST_CASE("a handle that one thread releases while another uses it is good or refused, never dangling") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const float by = 1;
  for (int round = 0; round < 100; ++round) {
    Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1});
    Stream stream;
    QUERN_GOOD(quern_stream_new(session, stream.place()));
    const QuernArgument arguments[] = {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)};
    const QuernLaunch config = launch_of(1, 1, stream);
    std::thread other([&] {
      stream.reset();
      array.reset();
    });
    QuernStatus status = QUERN_OK;
    for (int i = 0; i < 20 && status == QUERN_OK; ++i) status = quern_launch(scale, &config, arguments, 2);
    other.join();
    CHECK((status == QUERN_OK || status == QUERN_BAD_HANDLE));
  }
  QUERN_GOOD(quern_session_synchronize(session));
}

TEST_CASE("work goes on when the handle of its stream is released") {
  const Session session = open_cpu();
  const Kernel hold = kernel_of(session, kScalePtx, "hold");
  const Flag flag(session);
  Stream stream;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(launch(hold, launch_of(1, 1, stream), flag.arguments()));
  stream.reset();
  flag.open();
  QUERN_GOOD(quern_session_synchronize(session));
  CHECK(values_of<std::uint32_t>(flag.count, 1)[0] == 1);
}

TEST_CASE("streams have priorities and may be non-blocking; managed memory is prefetched on them") {
  const Session session = open_cpu();
  std::int32_t least = 9, greatest = 9, priority = 9, non_blocking = 9;
  QUERN_GOOD(quern_session_stream_priorities(session, &least, &greatest));
  CHECK(greatest < least);
  QuernStreamOptions options{};
  options.struct_bytes = sizeof options;
  options.priority = greatest - 10;
  options.non_blocking = 1;
  Stream stream, plain;
  QUERN_GOOD(quern_stream_make(session, &options, stream.place()));
  QUERN_GOOD(quern_stream_info(stream, &priority, &non_blocking));
  CHECK(priority == greatest);
  CHECK(non_blocking == 1);
  QUERN_GOOD(quern_stream_new(session, plain.place()));
  QUERN_GOOD(quern_stream_info(plain, &priority, &non_blocking));
  CHECK(priority == 0);
  CHECK(non_blocking == 0);
  options.reserved = 1;
  QUERN_FAILS(QUERN_USAGE, "reserved", quern_stream_make(session, &options, plain.place()));

  const std::int64_t shape[] = {16};
  QuernArrayType type{};
  type.struct_bytes = sizeof type;
  type.element.dtype = QUERN_FLOAT32;
  type.ndim = 1;
  type.shape = shape;
  Array managed, device;
  void* host = nullptr;
  QUERN_GOOD(quern_array_make_managed(session, &type, managed.place(), &host));
  QUERN_GOOD(quern_array_prefetch(managed, QUERN_WHERE_DEVICE, stream));
  QUERN_GOOD(quern_array_advise(managed, QUERN_ADVICE_ACCESSED_BY, QUERN_WHERE_HOST));
  QUERN_GOOD(quern_stream_synchronize(stream));
  QUERN_GOOD(quern_array_new(session, QUERN_FLOAT32, 1, shape, device.place()));
  QUERN_FAILS(QUERN_USAGE, "host does not see", quern_array_prefetch(device, QUERN_WHERE_DEVICE, stream));
}

TEST_CASE("a cancelled stream's launches end, who waits for them is told, and the stream goes on") {
  const Session session = open_cpu();
  const Kernel hold = kernel_of(session, kScalePtx, "hold");
  Flag flag(session);
  Stream stream;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(launch(hold, launch_of(1, 1, stream), flag.arguments()));
  std::atomic<QuernStatus> answer{QUERN_OK};
  std::atomic<bool> called{false};
  std::thread waiting([&] {
    called = true;
    answer = quern_stream_synchronize(stream);
  });
  while (!called) std::this_thread::yield();
  // by then the other thread waits, or begins too late to test anything
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  QUERN_GOOD(quern_stream_cancel(stream));
  waiting.join();
  CHECK(answer == QUERN_CANCELLED);
  std::uint32_t count = 7;
  QUERN_GOOD(quern_array_to_host_on(flag.count, &count, sizeof count, stream));
  QUERN_GOOD(quern_stream_synchronize(stream));
  CHECK(count == 0);
}
