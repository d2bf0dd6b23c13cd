// SPDX-License-Identifier: Apache-2.0
// What streams are: their ids, contexts and attributes.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/limits.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;

namespace {

/// The attributes that were set, by their id. Hints that are only kept, but for the priority.
using Attributes = std::map<int, CUlaunchAttributeValue>;

/// Those of all streams that live.
struct AllAttributes {
  struct Entry {
    std::weak_ptr<engine::Stream> stream;
    Attributes attributes;
  };
  quern::base::Mutex mutex;
  std::vector<Entry> entries QUERN_GUARDED_BY(mutex);

  Attributes get(const std::shared_ptr<engine::Stream>& stream) QUERN_EXCLUDES(mutex) {
    const quern::base::LockGuard lock(mutex);
    const auto found = find(stream);
    return found == entries.end() ? Attributes{} : found->attributes;
  }
  void set(const std::shared_ptr<engine::Stream>& stream, Attributes attributes) QUERN_EXCLUDES(mutex) {
    const quern::base::LockGuard lock(mutex);
    std::erase_if(entries, [](const Entry& entry) { return entry.stream.expired(); });
    const auto found = find(stream);
    if (found == entries.end())
      entries.push_back({stream, std::move(attributes)});
    else
      found->attributes = std::move(attributes);
  }

 private:
  std::vector<Entry>::iterator find(const std::shared_ptr<engine::Stream>& stream) QUERN_REQUIRES(mutex) {
    return std::ranges::find_if(entries, [&](const Entry& entry) { return entry.stream.lock() == stream; });
  }
};
AllAttributes& all() {
  static auto* const instance = new AllAttributes;  // used by any thread until the process ends
  return *instance;
}

void check(CUstreamAttrID id) {
  switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
      return;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void check(CUstreamAttrID id, const CUstreamAttrValue& value) {
  check(id);
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
    require(value.syncPolicy >= CU_SYNC_POLICY_AUTO && value.syncPolicy <= CU_SYNC_POLICY_BLOCKING_SYNC);
  if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)
    require(value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_DEFAULT ||
            value.memSyncDomain == CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE);
}

StreamObject with_valid_capture(StreamObject stream) {
  refuse_invalid_capture(*stream.stream);
  return stream;
}

/// Of a stream for which it was not set.
CUstreamAttrValue initial(CUstreamAttrID id) {
  CUstreamAttrValue value{};
  if (id == CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY) value.syncPolicy = CU_SYNC_POLICY_AUTO;
  if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap = {.default_ = 0, .remote = 1};
  return value;
}

}  // namespace

CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(id != nullptr);
    const StreamObject its_stream = driver.stream_of_even_failed(stream);
    refuse_capturing(its_stream);
    *id = its_stream.stream->id();
  });
}

CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(context != nullptr);
    const StreamObject its_stream = with_valid_capture(driver.stream_of_even_failed(stream));
    *context = driver.contexts().handle_of(its_stream.context->id);
  });
}

CUresult cuStreamGetCtx_v2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(context != nullptr && green != nullptr);
    *context = driver.contexts().handle_of(driver.stream_of_even_failed(stream).context->id);
    *green = nullptr;  // this device has no green contexts
  });
}

CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(device != nullptr);
    *device = static_cast<CUdevice>(driver.stream_of_even_failed(stream).context->device);
  });
}

CUresult cuStreamGetAttribute(CUstream stream, CUstreamAttrID id, CUstreamAttrValue* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto its_stream = with_valid_capture(driver.stream_of(stream)).stream;
    require(value != nullptr);
    check(id);
    const Attributes attributes = all().get(its_stream);
    const auto found = attributes.find(id);
    *value = found == attributes.end() ? initial(id) : found->second;
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY) value->priority = its_stream->priority();
  });
}

CUresult cuStreamSetAttribute(CUstream stream, CUstreamAttrID id, const CUstreamAttrValue* value) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto its_stream = with_valid_capture(driver.stream_of(stream)).stream;
    require(value != nullptr);
    check(id, *value);
    if (id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
      its_stream->set_priority(std::clamp(value->priority, kGreatestStreamPriority, kLeastStreamPriority));
    Attributes attributes = all().get(its_stream);
    attributes[id] = *value;
    all().set(its_stream, std::move(attributes));
  });
}

CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject target = with_valid_capture(driver.stream_of(to)),
                       source = with_valid_capture(driver.stream_of(from));
    require(target.context == source.context);
    target.stream->set_priority(source.stream->priority());
    all().set(target.stream, all().get(source.stream));
  });
}
