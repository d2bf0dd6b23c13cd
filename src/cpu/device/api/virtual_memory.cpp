// SPDX-License-Identifier: Apache-2.0
// Virtual memory management.
#include "cpu/device/cuda_api.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>

#include "cpu/device/driver.hpp"
#include "cpu/device/virtual_memory.hpp"

using namespace quern::cpu::device;
using quern::cpu::engine::Backing;

namespace {

bool is_on_host(const CUmemLocation& location) {
  return location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA;
}

/// A device, or the host with the one NUMA node that all processors count as.
void require_place(const Driver& driver, const CUmemLocation& location) {
  if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    driver.device(location.id);
    return;
  }
  require(is_on_host(location));
  require(location.type == CU_MEM_LOCATION_TYPE_HOST || location.id == 0);
}

int place_of(const Driver& driver, const CUmemLocation& location) {
  require_place(driver, location);
  return is_on_host(location) ? kHostLocation : location.id;
}

void require_properties(const Driver& driver, const CUmemAllocationProp* properties) {
  require(properties != nullptr && properties->type == CU_MEM_ALLOCATION_TYPE_PINNED);
  require(properties->win32HandleMetaData == nullptr);
  require_place(driver, properties->location);
  const unsigned types = static_cast<unsigned>(properties->requestedHandleTypes);
  constexpr unsigned kKnown = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR | CU_MEM_HANDLE_TYPE_WIN32 |
                              CU_MEM_HANDLE_TYPE_WIN32_KMT | CU_MEM_HANDLE_TYPE_FABRIC;
  require((types & ~kKnown) == 0);
  require(properties->location.type != CU_MEM_LOCATION_TYPE_HOST || types == 0);
  require((types & ~static_cast<unsigned>(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)) == 0,
          CUDA_ERROR_NOT_SUPPORTED);
  // Tile pools are for sparse arrays.
  require(properties->allocFlags.usage == 0, CUDA_ERROR_NOT_SUPPORTED);
}

AccessTable access_table(const Driver& driver, const CUmemAccessDesc* descriptions, std::size_t count) {
  require(descriptions != nullptr && count > 0);
  AccessTable table;
  for (std::size_t i = 0; i < count; ++i) {
    const CUmemLocation& location = descriptions[i].location;
    require(location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            (location.id >= 0 && static_cast<std::uint32_t>(location.id) < driver.device_count()));
    const CUmemAccess_flags flags = descriptions[i].flags;
    require(flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
            flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    table[place_of(driver, location)] = flags;
  }
  return table;
}

/// The properties of memory of another process.
CUmemAllocationProp imported_properties(const Driver& driver, const Backing& backing) {
  require(backing.device() < driver.device_count(), CUDA_ERROR_NOT_SUPPORTED);
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(backing.device())};
  return properties;
}

}  // namespace

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* properties,
                                       CUmemAllocationGranularity_flags option) {
  return entry([&] {
    const Driver& driver = Driver::get();
    require(granularity != nullptr);
    require_properties(driver, properties);
    require(option == CU_MEM_ALLOC_GRANULARITY_MINIMUM || option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
    *granularity = kVirtualGranularity;
  });
}

/// The address is a wish, which is not granted.
CUresult cuMemAddressReserve(CUdeviceptr* pointer, std::size_t bytes, std::size_t alignment, CUdeviceptr wish,
                             unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pointer != nullptr && bytes > 0 && bytes % kVirtualGranularity == 0 && flags == 0);
    require(wish % kVirtualGranularity == 0);
    require(alignment == 0 || std::has_single_bit(alignment));
    *pointer = driver.virtual_memory().reserve(bytes, alignment);
    note_object();
  });
}

CUresult cuMemAddressFree(CUdeviceptr pointer, std::size_t bytes) {
  return entry([&] { Driver::get().virtual_memory().free(pointer, bytes); });
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t bytes,
                     const CUmemAllocationProp* properties, unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(handle != nullptr && flags == 0);
    require_properties(driver, properties);
    require(bytes > 0 && bytes % kVirtualGranularity == 0);
    CUmemAllocationProp granted = *properties;
    granted.allocFlags = {};  // compression is a wish; memory of this device is not compressed
    const bool on_host = is_on_host(properties->location);
    auto backing = driver.memory().make_backing(
        on_host ? 0 : static_cast<std::uint32_t>(properties->location.id), on_host, bytes);
    require(backing != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
    *handle = driver.virtual_memory().create(granted, std::move(backing));
    note_object();
  });
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return entry([&] { Driver::get().virtual_memory().release(handle); });
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(handle != nullptr);
    *handle = driver.virtual_memory().retain(reinterpret_cast<CUdeviceptr>(address));
  });
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* properties,
                                                CUmemGenericAllocationHandle handle) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(properties != nullptr);
    *properties = driver.virtual_memory().properties(handle);
  });
}

CUresult cuMemMap(CUdeviceptr pointer, std::size_t bytes, std::size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(flags == 0);
    driver.virtual_memory().properties(handle);  // no such handle comes before the rest
    require(offset == 0, CUDA_ERROR_NOT_SUPPORTED);
    driver.virtual_memory().map(pointer, bytes, handle);
  });
}

CUresult cuMemUnmap(CUdeviceptr pointer, std::size_t bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.contexts().synchronize_all();
    driver.virtual_memory().unmap(pointer, bytes);
  });
}

CUresult cuMemSetAccess(CUdeviceptr pointer, std::size_t bytes, const CUmemAccessDesc* descriptions,
                        std::size_t count) {
  return entry([&] {
    Driver& driver = Driver::get();
    const AccessTable changes = access_table(driver, descriptions, count);
    if (driver.virtual_memory().takes_access(pointer, bytes, changes)) driver.contexts().synchronize_all();
    driver.virtual_memory().set_access(pointer, bytes, changes);
  });
}

CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(flags != nullptr && location != nullptr);
    *flags = driver.virtual_memory().access(pointer, place_of(driver, *location));
  });
}

CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(shared != nullptr && flags == 0);
    const CUmemAllocationProp properties = driver.virtual_memory().properties(handle);
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR &&
            properties.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    driver.memory().bias().forbid();
    const auto backing = driver.virtual_memory().backing(handle);
    const int descriptor = ::fcntl(backing->descriptor(), F_DUPFD_CLOEXEC, 0);
    require(descriptor >= 0, CUDA_ERROR_OPERATING_SYSTEM);
    *static_cast<int*>(shared) = descriptor;
  });
}

/// The descriptor stays the caller's, as with libcuda.
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* shared,
                                        CUmemAllocationHandleType type) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(handle != nullptr);
    require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, CUDA_ERROR_NOT_SUPPORTED);
    driver.memory().bias().forbid();
    const int descriptor =
        ::fcntl(static_cast<int>(reinterpret_cast<std::intptr_t>(shared)), F_DUPFD_CLOEXEC, 0);
    require(descriptor >= 0, CUDA_ERROR_UNKNOWN);
    auto backing = Backing::adopt(descriptor);
    require(backing != nullptr, CUDA_ERROR_UNKNOWN);
    const CUmemAllocationProp properties = imported_properties(driver, *backing);
    *handle = driver.virtual_memory().create(properties, std::move(backing));
    note_object();
  });
}
