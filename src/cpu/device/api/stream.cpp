// SPDX-License-Identifier: Apache-2.0
// Streams, events and host functions.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/shared_event.hpp"
#include "cpu/device/thread_streams.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;

namespace {

std::shared_ptr<engine::EventPoint> point_of(EventObject& event) {
  const quern::base::LockGuard lock(event.mutex);
  return event.point;
}

CUresult create_stream(CUstream* stream, unsigned flags, int priority) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(stream != nullptr && (flags == CU_STREAM_DEFAULT || flags == CU_STREAM_NON_BLOCKING));
    auto object = std::make_shared<StreamObject>();
    object->context = context;
    object->stream =
        driver.scheduler().make_stream(*context->domain, flags != CU_STREAM_NON_BLOCKING,
                                       std::clamp(priority, kGreatestStreamPriority, kLeastStreamPriority));
    *stream = driver.add(std::move(object));
  });
}

/// Nodes of graphs do not reach other processes yet.
void refuse_shared_node(const StreamObject& stream, const EventObject& event, bool external) {
  if (external && event.shared != nullptr) require(!is_capturing(stream), CUDA_ERROR_NOT_SUPPORTED);
}

constexpr unsigned kEventFlags = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

}  // namespace

CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return create_stream(stream, flags, kLeastStreamPriority);
}

CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return create_stream(stream, flags, priority);
}

CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    refuse_invalid_capture(*its_stream.stream);
    require(priority != nullptr);
    *priority = its_stream.stream->priority();
  });
}

CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(flags != nullptr);
    const bool blocking = is_default_stream(stream) || its_stream.stream->blocking();
    *flags = blocking ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
  });
}

CUresult cuStreamDestroy_v2(CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.remove(stream);  // the special handles are no handles here
    forget_stream(*object->stream);
    driver.scheduler().retire(*object->stream);
    check_fault(*object->context);
  });
}

CUresult cuStreamSynchronize(CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of_even_failed(stream);
    refuse_capturing(its_stream);
    refuse_unsafe_call();
    driver.scheduler().synchronize(its_stream.stream);
    check_fault(*its_stream.context);
  });
}

CUresult cuStreamQuery(CUstream stream) {
  return entry_in_host_function([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    refuse_capturing(its_stream);
    refuse_unsafe_call();
    require(driver.scheduler().idle(*its_stream.stream), CUDA_ERROR_NOT_READY);
    check_fault(*its_stream.context);
  });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require((flags & ~static_cast<unsigned>(CU_EVENT_WAIT_EXTERNAL)) == 0);
    const auto object = driver.find(event);
    const bool external = (flags & CU_EVENT_WAIT_EXTERNAL) != 0;
    refuse_shared_node(its_stream, *object, external);
    if (capture_wait(driver, its_stream, event, object, external)) return;
    queue_wait(driver, *its_stream.context, its_stream.stream, awaited_point(*object));
  });
}

CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* user) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(function != nullptr);
    if (is_capturing(its_stream)) {
      HostNode node;
      node.params.fn = function;
      node.params.userData = user;
      return record(driver, its_stream, std::move(node));
    }
    engine::HostJob job;
    job.function = function;
    job.user = user;
    driver.scheduler().submit(its_stream.stream, std::move(job));
  });
}

CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(event != nullptr && (flags & ~kEventFlags) == 0);
    const bool shared = (flags & CU_EVENT_INTERPROCESS) != 0;
    require(!shared || (flags & CU_EVENT_DISABLE_TIMING) != 0);
    auto object = std::make_shared<EventObject>();
    object->context = context;
    object->flags = flags;
    if (shared) object->shared = SharedEvent::make(context->device);
    *event = driver.add(std::move(object));
  });
}

CUresult cuEventDestroy_v2(CUevent event) {
  return entry([&] {
    const auto object = Driver::get().remove(event);
    check_fault(*object->context);
  });
}

CUresult cuEventDestroy(CUevent event) { return cuEventDestroy_v2(event); }
CUresult cuStreamDestroy(CUstream stream) { return cuStreamDestroy_v2(stream); }

CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, CU_EVENT_RECORD_DEFAULT);
}

CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    const auto object = driver.find(event);
    const bool external = flags == CU_EVENT_RECORD_EXTERNAL;
    require(external || flags == CU_EVENT_RECORD_DEFAULT);
    require(object->context == its_stream.context, CUDA_ERROR_INVALID_HANDLE);
    refuse_shared_node(its_stream, *object, external);
    if (capture_record(driver, its_stream, event, object, external)) return;
    require(!external, CUDA_ERROR_ILLEGAL_STATE);  // it is for streams that capture
    record_event(driver, *object, its_stream.stream);
  });
}

CUresult cuEventQuery(CUevent event) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(event);
    refuse_captured(*object);
    refuse_unsafe_call();
    const AwaitedPoint point = awaited_point(*object);
    require(point.own != nullptr ? driver.scheduler().is_passed(*point.own) : is_reached(point),
            CUDA_ERROR_NOT_READY);
    check_fault(*object->context);
  });
}

CUresult cuEventSynchronize(CUevent event) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(event);
    refuse_captured(*object);
    refuse_unsafe_call();
    wait_for(driver, *object, awaited_point(*object));
    check_fault(*object->context);
  });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(milliseconds != nullptr);
    const auto first = driver.find(start);
    const auto last = driver.find(end);
    require(((first->flags | last->flags) & CU_EVENT_DISABLE_TIMING) == 0, CUDA_ERROR_INVALID_HANDLE);
    require(first->context == last->context, CUDA_ERROR_INVALID_HANDLE);
    refuse_captured(*first);
    refuse_captured(*last);
    const auto from = point_of(*first);
    const auto to = point_of(*last);
    require(from != nullptr && to != nullptr, CUDA_ERROR_INVALID_HANDLE);
    require(from->done() && to->done(), CUDA_ERROR_NOT_READY);
    check_fault(*first->context);
    const std::int64_t ns =
        to->time_ns.load(std::memory_order_relaxed) - from->time_ns.load(std::memory_order_relaxed);
    *milliseconds = static_cast<float>(static_cast<double>(ns) * 1e-6);
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return cuEventElapsedTime_v2(milliseconds, start, end);
}
