// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include "machine.hpp"

namespace quern::fuzz {

void Machine::call_memory() {
  CUdeviceptr pointer = 0;
  void* at = nullptr;
  CUcontext current = nullptr;
  std::size_t pitch = 0;
  switch (input_.below(11)) {
    case 0:
    case 1:
      return pointers_.add_if(cuMemAlloc_v2(&pointer, bytes()), pointer);
    case 2: {
      const std::size_t width = bytes();
      const std::size_t height = bytes();
      return pointers_.add_if(cuMemAllocPitch_v2(&pointer, &pitch, width, height, input_.byte()), pointer);
    }
    case 3: {
      const std::size_t size = bytes();
      return pointers_.add_if(cuMemAllocManaged(&pointer, size, static_cast<unsigned>(input_.below(5))),
                              pointer);
    }
    case 4:
    case 5:
      cuMemFree_v2(any(pointers_));
      return;
    case 6:
      // Destroying another context would free it while it is used here.
      if (pinned_.full(4) || cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context_) return;
      if (cuMemHostAlloc(&at, kHostBytes, static_cast<unsigned>(input_.below(8))) != CUDA_SUCCESS) return;
      return pinned_.add(reinterpret_cast<CUdeviceptr>(at));
    case 7: {
      std::byte* const from = host(kBytes);
      cuMemHostRegister_v2(from, few_bytes(), static_cast<unsigned>(input_.below(16)));
      return;
    }
    case 8:
      cuMemHostUnregister(host(kBytes));
      return;
    case 9:
      cuMemHostGetDevicePointer_v2(&pointer, host(kBytes), static_cast<unsigned>(input_.below(2)));
      return;
    default:
      cuMemFreeHost(reinterpret_cast<void*>(address()));
  }
}

void Machine::copy_memory() {
  const CUstream on = stream();
  const CUdeviceptr to = address();
  const CUdeviceptr from = address();
  std::byte* const memory = host(kBytes);
  const auto value = static_cast<unsigned char>(input_.byte() & 0x7f);
  switch (input_.below(13)) {
    case 0:
      cuMemcpyHtoD_v2(to, memory, few_bytes());
      return;
    case 1:
      cuMemcpyDtoH_v2(memory, from, few_bytes());
      return;
    case 2:
      cuMemcpyDtoD_v2(to, from, bytes());
      return;
    case 3:
      cuMemcpyHtoDAsync_v2(to, memory, few_bytes(), on);
      return;
    case 4:
      cuMemcpyDtoHAsync_v2(memory, from, few_bytes(), on);
      return;
    case 5:
      cuMemcpy(memory_ + value, reinterpret_cast<CUdeviceptr>(memory), few_bytes() / 2);
      return;
    case 6: {
      const CUDA_MEMCPY3D made = box();
      cuMemcpy3DAsync_v2(&made, on);
      return;
    }
    case 7: {
      CUDA_MEMCPY2D made{};
      made.srcMemoryType = made.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      made.srcDevice = from;
      made.dstDevice = to;
      made.srcPitch = bytes();
      made.dstPitch = bytes();
      made.srcXInBytes = bytes();
      made.dstY = input_.below(3);
      made.WidthInBytes = bytes();
      made.Height = bytes();
      cuMemcpy2D_v2(&made);
      return;
    }
    case 8:
      cuMemsetD8_v2(to, value, bytes());
      return;
    case 9:
      cuMemsetD32Async(to, value, bytes(), on);
      return;
    case 10: {
      const std::size_t pitch = bytes();
      const std::size_t width = bytes();
      cuMemsetD2D16Async(to, pitch, value, width, bytes(), on);
      return;
    }
    case 11: {
      const CUcontext target = input_.below(2) == 0 ? context_ : any(contexts_);
      cuMemcpyPeerAsync(to, target, from, context_, bytes(), on);
      return;
    }
    default: {
      CUdeviceptr targets[2] = {to, address()};
      CUdeviceptr sources[2] = {from, memory_};
      std::size_t sizes[2] = {bytes(), 8};
      std::size_t index = 0;
      CUmemcpyAttributes attributes{};
      attributes.srcAccessOrder = static_cast<CUmemcpySrcAccessOrder>(input_.below(5));
      if (from < memory_ || from >= memory_ + kBytes) sizes[0] = 0;  // it would be followed on the host
      if (to < memory_ || to >= memory_ + kBytes) sizes[0] = 0;
      if (targets[1] < memory_ || targets[1] >= memory_ + kBytes) targets[1] = memory_;
      cuMemcpyBatchAsync_v2(targets, sources, sizes, 1 + input_.below(2), &attributes, &index,
                            input_.below(2), on);
    }
  }
}

void Machine::ask_memory() {
  const CUdeviceptr of = input_.below(4) == 0 ? reinterpret_cast<CUdeviceptr>(host(kBytes)) : address();
  CUdeviceptr base = 0;
  std::size_t size = 0;
  std::array<std::uint64_t, 16> value{};  // larger than any attribute
  switch (input_.below(9)) {
    case 0:
      cuMemGetAddressRange_v2(&base, input_.rarely() ? nullptr : &size, of);
      return;
    case 1:
      cuPointerGetAttribute(input_.rarely() ? nullptr : value.data(),
                            static_cast<CUpointer_attribute>(input_.below(32)), of);
      return;
    case 2: {
      CUpointer_attribute attributes[2] = {CU_POINTER_ATTRIBUTE_CONTEXT,
                                           static_cast<CUpointer_attribute>(input_.below(32))};
      void* data[2] = {&base, value.data()};
      cuPointerGetAttributes(static_cast<unsigned>(input_.below(3)), attributes, data, of);
      return;
    }
    case 3: {
      const auto choice = static_cast<int>(input_.below(4));
      cuPointerSetAttribute(&choice, static_cast<CUpointer_attribute>(input_.below(32)), of);
      return;
    }
    case 4: {
      const std::size_t count = bytes();
      const auto advice = static_cast<CUmem_advise>(input_.below(10));
      cuMemAdvise_v2(of, count, advice, location());
      return;
    }
    case 5: {
      const std::size_t count = bytes();
      const CUmemLocation where = location();
      cuMemPrefetchAsync_v2(of, count, where, static_cast<unsigned>(input_.below(2)), stream());
      return;
    }
    case 6: {
      const auto attribute = static_cast<CUmem_range_attribute>(input_.below(10));
      cuMemRangeGetAttribute(value.data(), input_.below(value.size() * 8), attribute, of, bytes());
      return;
    }
    case 7:
      cuMemGetInfo_v2(&size, input_.rarely() ? nullptr : &size);
      return;
    default: {
      unsigned flags = 0;
      cuMemHostGetFlags(&flags, reinterpret_cast<void*>(of));
    }
  }
}

void Machine::call_virtual_memory() {
  constexpr std::size_t kGranule = std::size_t{2} << 20;
  const std::size_t size = input_.rarely() ? bytes() : kGranule * input_.below(4);
  const CUdeviceptr at = any(ranges_) + kGranule * input_.below(3);
  CUmemAllocationProp properties{};
  properties.type =
      input_.rarely() ? static_cast<CUmemAllocationType>(input_.number()) : CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = input_.rarely() ? location() : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  properties.requestedHandleTypes = input_.rarely() ? static_cast<CUmemAllocationHandleType>(input_.byte())
                                                    : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  CUdeviceptr range = 0;
  CUmemGenericAllocationHandle handle = 0;
  switch (input_.below(12)) {
    case 0:
      if (ranges_.full(4)) return;
      return ranges_.add_if(cuMemAddressReserve(&range, size, input_.rarely() ? bytes() : 0, address(), 0),
                            range);
    case 1:
      if (physical_.full()) return;
      return physical_.add_if(cuMemCreate(&handle, size, &properties, input_.rarely() ? 1 : 0), handle);
    case 2:
    case 3:
      cuMemMap(at, size, input_.rarely() ? bytes() : 0, any(physical_), 0);
      return;
    case 4:
    case 5: {
      const CUmemAccessDesc access{properties.location, static_cast<CUmemAccess_flags>(input_.below(5))};
      cuMemSetAccess(at, size, input_.rarely() ? nullptr : &access, 1);
      return;
    }
    case 6:
      cuMemUnmap(at, size);
      return;
    case 7:
      cuMemAddressFree(at, size);
      return;
    case 8:
      cuMemRelease(any(physical_));
      return;
    case 9:
      return physical_.add_if(cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(at)), handle);
    case 10: {
      unsigned long long flags = 0;
      cuMemGetAccess(&flags, &properties.location, at);
      cuMemGetAllocationPropertiesFromHandle(&properties, any(physical_));
      std::size_t granularity = 0;
      cuMemGetAllocationGranularity(&granularity, &properties,
                                    static_cast<CUmemAllocationGranularity_flags>(input_.below(3)));
      return;
    }
    default: {
      int file = -1;
      if (cuMemExportToShareableHandle(&file, any(physical_), CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) !=
          CUDA_SUCCESS)
        return;
      physical_.add_if(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(std::intptr_t{file}),
                                                      CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
                       handle);
      ::close(file);
    }
  }
}

void Machine::call_pool() {
  CUmemoryPool pool = any(pools_);
  const CUstream on = stream();
  CUdeviceptr pointer = 0;
  std::uint64_t value = 0;
  switch (input_.below(10)) {
    case 0: {
      if (pools_.full(4)) return;
      CUmemPoolProps properties{};
      properties.allocType = input_.rarely() ? CU_MEM_ALLOCATION_TYPE_INVALID : CU_MEM_ALLOCATION_TYPE_PINNED;
      properties.location = input_.below(4) == 0 ? location() : CUmemLocation{CU_MEM_LOCATION_TYPE_DEVICE, 0};
      properties.maxSize = input_.rarely() ? bytes() : 0;
      return pools_.add_if(cuMemPoolCreate(&pool, &properties), pool);
    }
    case 1:
      cuMemPoolDestroy(pool);
      return;
    case 2:
    case 3:
      return pointers_.add_if(cuMemAllocFromPoolAsync(&pointer, bytes(), pool, on), pointer);
    case 4:
      cuMemPoolTrimTo(pool, bytes());
      return;
    case 5:
      value = input_.word();
      cuMemPoolSetAttribute(pool, static_cast<CUmemPool_attribute>(input_.below(12)), &value);
      return;
    case 6:
      cuMemPoolGetAttribute(pool, static_cast<CUmemPool_attribute>(input_.below(12)),
                            input_.rarely() ? nullptr : &value);
      return;
    case 7: {
      const CUmemAccessDesc access{location(), static_cast<CUmemAccess_flags>(input_.below(5))};
      cuMemPoolSetAccess(pool, &access, 1);
      CUmemAccess_flags flags{};
      CUmemLocation where = location();
      cuMemPoolGetAccess(&flags, pool, &where);
      return;
    }
    case 8:
      cuDeviceSetMemPool(0, pool);
      return;
    default:
      if (cuDeviceGetMemPool(&pool, 0) != CUDA_SUCCESS) return;
      pointers_.add_if(cuMemAllocFromPoolAsync(&pointer, bytes(), pool, on), pointer);
      cuMemFreeAsync(any(pointers_), on);
  }
}

void Machine::call_ipc() {
  switch (input_.below(7)) {
    case 0:
      cuIpcGetMemHandle(&memory_handle_, address());
      return;
    case 1: {
      CUdeviceptr opened = 0;
      const unsigned flags = input_.rarely() ? 0 : CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS;
      return pointers_.add_if(cuIpcOpenMemHandle_v2(&opened, memory_handle_, flags), opened);
    }
    case 2:
      cuIpcCloseMemHandle(any(pointers_));
      return;
    case 3:
      cuIpcGetEventHandle(&event_handle_, any(events_));
      return;
    case 4: {
      CUevent opened = nullptr;
      return events_.add_if(cuIpcOpenEventHandle(&opened, event_handle_), opened);
    }
    case 5:
      for (char& each : memory_handle_.reserved) each = static_cast<char>(input_.byte());
      return;
    default:
      event_handle_.reserved[input_.below(sizeof event_handle_.reserved)] = static_cast<char>(input_.byte());
  }
}

}  // namespace quern::fuzz
