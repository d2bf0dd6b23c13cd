// SPDX-License-Identifier: Apache-2.0
// Managed memory: advice, prefetching, discarding. Host and device share their memory: nothing has to move,
// and streams have nothing to wait for.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/managed_ranges.hpp"
#include "cpu/device/thread_streams.hpp"

using namespace quern::cpu::device;
using quern::cpu::engine::AllocationKind;

namespace {

ManagedRange managed_range(Driver& driver, CUdeviceptr pointer, std::size_t bytes) {
  auto allocation = driver.memory().find(reinterpret_cast<const void*>(pointer));
  require(bytes > 0 && allocation != nullptr && allocation->kind == AllocationKind::managed &&
          bytes <= allocation->bytes - (pointer - reinterpret_cast<CUdeviceptr>(allocation->base)));
  return {std::move(allocation), pointer, bytes};
}

/// A place that managed memory can be at, without what its type ignores. All processors count as one NUMA
/// node.
CUmemLocation place_of(const Driver& driver, CUmemLocation location) {
  switch (location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      driver.device(location.id);
      return location;
    case CU_MEM_LOCATION_TYPE_HOST:
      return {CU_MEM_LOCATION_TYPE_HOST, 0};
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
      require(location.id == 0);
      return location;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

/// The location that a device means in the first versions of the functions.
CUmemLocation location_of(CUdevice device) {
  if (device == CU_DEVICE_CPU) return {CU_MEM_LOCATION_TYPE_HOST, 0};
  return {CU_MEM_LOCATION_TYPE_DEVICE, device};
}

/// The device that an attribute of the first kind means; CU_DEVICE_INVALID for none.
CUdevice device_of(const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) return location.id;
  return location.type == CU_MEM_LOCATION_TYPE_INVALID ? CU_DEVICE_INVALID : CU_DEVICE_CPU;
}

/// Devices and the host may access memory; a NUMA node is none of these.
CUdevice accessor_of(const Driver& driver, const CUmemLocation& location) {
  require(location.type == CU_MEM_LOCATION_TYPE_DEVICE || location.type == CU_MEM_LOCATION_TYPE_HOST);
  return device_of(place_of(driver, location));
}

void advise(Driver& driver, const ManagedRange& range, CUmem_advise advice, const CUmemLocation& location) {
  ManagedRanges& ranges = driver.managed_ranges();
  switch (advice) {
    case CU_MEM_ADVISE_SET_READ_MOSTLY:
    case CU_MEM_ADVISE_UNSET_READ_MOSTLY:
      return ranges.update(
          range, [&](PageAdvice& page) { page.read_mostly = advice == CU_MEM_ADVISE_SET_READ_MOSTLY; });
    case CU_MEM_ADVISE_SET_PREFERRED_LOCATION:
      return ranges.update(
          range, [place = place_of(driver, location)](PageAdvice& page) { page.preferred = place; });
    case CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION:
      return ranges.update(range, [](PageAdvice& page) { page.preferred = {}; });
    case CU_MEM_ADVISE_SET_ACCESSED_BY:
      return ranges.update(range, [accessor = accessor_of(driver, location)](PageAdvice& page) {
        page.accessed_by.insert(accessor);
      });
    case CU_MEM_ADVISE_UNSET_ACCESSED_BY:
      return ranges.update(range, [accessor = accessor_of(driver, location)](PageAdvice& page) {
        page.accessed_by.erase(accessor);
      });
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

CUresult advise(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, const CUmemLocation& location) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    refuse_unsafe_call();
    advise(driver, managed_range(driver, pointer, bytes), advice, location);
  });
}

void prefetch(Driver& driver, const ManagedRange& range, const CUmemLocation& place) {
  driver.managed_ranges().update(range, [&](PageAdvice& page) { page.prefetched = place; });
}

CUresult prefetch(CUdeviceptr pointer, std::size_t bytes, const CUmemLocation& location, unsigned flags,
                  CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.stream_of(stream);
    require(flags == 0);
    const CUmemLocation place = place_of(driver, location);
    refuse_unsafe_call();
    prefetch(driver, managed_range(driver, pointer, bytes), place);
  });
}

struct Batch {
  CUdeviceptr* pointers;
  std::size_t* sizes;
  std::size_t count;
  unsigned long long flags;
  CUstream stream;
};
struct Places {
  CUmemLocation* locations;
  std::size_t* first_ranges;  ///< of each location
  std::size_t count;
};

/// The ranges of a batch. The legacy stream takes no batches.
std::vector<ManagedRange> ranges_of(Driver& driver, const Batch& batch) {
  driver.stream_of(batch.stream);
  require(batch.pointers != nullptr && batch.sizes != nullptr && batch.count > 0 && batch.flags == 0);
  require((batch.stream == nullptr ? default_stream() : batch.stream) != CU_STREAM_LEGACY);
  std::vector<ManagedRange> ranges;
  for (std::size_t i = 0; i < batch.count; ++i)
    ranges.push_back(managed_range(driver, batch.pointers[i], batch.sizes[i]));
  return ranges;
}

CUresult prefetch(const Batch& batch, const Places& places) {
  return entry([&] {
    Driver& driver = Driver::get();
    const std::vector<ManagedRange> ranges = ranges_of(driver, batch);
    require(places.locations != nullptr && places.first_ranges != nullptr && places.count > 0 &&
            places.count <= batch.count && places.first_ranges[0] == 0);
    std::vector<CUmemLocation> locations;
    for (std::size_t i = 0; i < places.count; ++i) {
      require(i == 0 ||
              (places.first_ranges[i] > places.first_ranges[i - 1] && places.first_ranges[i] < batch.count));
      locations.push_back(place_of(driver, places.locations[i]));
    }
    for (std::size_t i = 0, place = 0; i < ranges.size(); ++i) {
      if (place + 1 < locations.size() && places.first_ranges[place + 1] == i) ++place;
      prefetch(driver, ranges[i], locations[place]);
    }
  });
}

template <class T>
void store(void* data, std::size_t bytes, T value) {
  require(bytes == sizeof value);
  std::memcpy(data, &value, sizeof value);
}

void store_accessors(void* data, std::size_t bytes, const PageAdvice& advice) {
  require(bytes > 0 && bytes % sizeof(CUdevice) == 0);
  auto* const out = static_cast<CUdevice*>(data);
  auto next = advice.accessed_by.begin();
  for (std::size_t i = 0; i < bytes / sizeof(CUdevice); ++i)
    out[i] = next != advice.accessed_by.end() ? *next++ : CU_DEVICE_INVALID;
}

void range_attribute(void* data, std::size_t bytes, CUmem_range_attribute attribute,
                     const PageAdvice& advice) {
  require(data != nullptr);
  switch (attribute) {
    case CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY:
      return store<int>(data, bytes, advice.read_mostly ? 1 : 0);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION:
      return store<CUdevice>(data, bytes, device_of(advice.preferred));
    case CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY:
      return store_accessors(data, bytes, advice);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION:
      return store<CUdevice>(data, bytes, device_of(advice.prefetched));
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE:
      return store(data, bytes, advice.preferred.type);
    case CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_ID:
      return store<int>(data, bytes, advice.preferred.id);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE:
      return store(data, bytes, advice.prefetched.type);
    case CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID:
      return store<int>(data, bytes, advice.prefetched.id);
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

CUresult cuMemAdvise_v2(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, CUmemLocation location) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require(location.type != CU_MEM_LOCATION_TYPE_INVALID);
    require(location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            (location.id >= 0 && static_cast<std::uint32_t>(location.id) < driver.device_count()));
    return advise(pointer, bytes, advice, location);
  });
}
CUresult cuMemAdvise(CUdeviceptr pointer, std::size_t bytes, CUmem_advise advice, CUdevice device) {
  return advise(pointer, bytes, advice, location_of(device));
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr pointer, std::size_t bytes, CUmemLocation location, unsigned flags,
                               CUstream stream) {
  return prefetch(pointer, bytes, location, flags, stream);
}
CUresult cuMemPrefetchAsync(CUdeviceptr pointer, std::size_t bytes, CUdevice device, CUstream stream) {
  return prefetch(pointer, bytes, location_of(device), 0, stream);
}

CUresult cuMemPrefetchBatchAsync(CUdeviceptr* pointers, std::size_t* sizes, std::size_t count,
                                 CUmemLocation* locations, std::size_t* first_ranges,
                                 std::size_t location_count, unsigned long long flags, CUstream stream) {
  return prefetch({pointers, sizes, count, flags, stream}, {locations, first_ranges, location_count});
}

/// The contents of discarded memory are indeterminate; here they stay.
CUresult cuMemDiscardBatchAsync(CUdeviceptr* pointers, std::size_t* sizes, std::size_t count,
                                unsigned long long flags, CUstream stream) {
  return entry([&] { ranges_of(Driver::get(), {pointers, sizes, count, flags, stream}); });
}

CUresult cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr* pointers, std::size_t* sizes, std::size_t count,
                                           CUmemLocation* locations, std::size_t* first_ranges,
                                           std::size_t location_count, unsigned long long flags,
                                           CUstream stream) {
  return prefetch({pointers, sizes, count, flags, stream}, {locations, first_ranges, location_count});
}

CUresult cuMemRangeGetAttribute(void* data, std::size_t data_bytes, CUmem_range_attribute attribute,
                                CUdeviceptr pointer, std::size_t bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    range_attribute(data, data_bytes, attribute,
                    driver.managed_ranges().common(managed_range(driver, pointer, bytes)));
  });
}

CUresult cuMemRangeGetAttributes(void** data, std::size_t* data_bytes, CUmem_range_attribute* attributes,
                                 std::size_t count, CUdeviceptr pointer, std::size_t bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(data != nullptr && data_bytes != nullptr && attributes != nullptr && count > 0);
    const PageAdvice advice = driver.managed_ranges().common(managed_range(driver, pointer, bytes));
    for (std::size_t i = 0; i < count; ++i) range_attribute(data[i], data_bytes[i], attributes[i], advice);
  });
}
