// SPDX-License-Identifier: Apache-2.0
// Memory, pools and events of several processes.
#include "cpu/device/cuda_api.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "base/held_signal.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/ipc.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/shared_event.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;
using engine::AllocationKind;

namespace {

/// The allocation moved into a file, named for other processes. Nothing runs meanwhile that was queued before
/// the call; a kernel that the program launches at the same time may lose what it writes.
SharedFile share(Driver& driver, const engine::Allocation& allocation, SharedKind kind) {
  driver.contexts().synchronize_all();
  const engine::Arena::FilePlace place = driver.memory().share(allocation);
  require(place.descriptor >= 0, CUDA_ERROR_OUT_OF_MEMORY);
  return shared_file(kind, place.descriptor, place.offset, allocation.bytes);
}

CUresult open_memory(CUdeviceptr* pointer, const CUipcMemHandle& handle, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(pointer != nullptr && flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    const SharedFile file = from_handle(handle, SharedKind::memory, CUDA_ERROR_INVALID_VALUE);
    // As with libcuda, a process does not open its own.
    require(file.owner() != this_process(), CUDA_ERROR_INVALID_CONTEXT);
    *pointer = driver.opened_memory().open(driver.memory(), file,
                                           {AllocationKind::imported, context->id, driver.device_count()});
    note_object();
  });
}

std::shared_ptr<MemPoolObject> find_pool(Driver& driver, CUmemoryPool handle) {
  try {
    return driver.find(handle);
  } catch (const Failure&) {
    fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void require_descriptor(CUmemAllocationHandleType type, unsigned long long flags) {
  require(flags == 0);
  require(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

}  // namespace

CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    require(handle != nullptr);
    const auto allocation = driver.memory().find(reinterpret_cast<const void*>(pointer));
    require(allocation != nullptr && allocation->kind == AllocationKind::device);
    *handle = to_handle<CUipcMemHandle>(share(driver, *allocation, SharedKind::memory));
  });
}

CUresult cuIpcOpenMemHandle(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  return open_memory(pointer, handle, flags);
}
CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* pointer, CUipcMemHandle handle, unsigned flags) {
  return open_memory(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto allocation = driver.opened_memory().close(pointer);
    if (allocation == nullptr) return;
    driver.contexts().synchronize(allocation->owner);
    driver.memory().remove(*allocation);
  });
}

CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(event != nullptr);
    const auto object = driver.find(event);
    require(handle != nullptr);
    require((object->flags & CU_EVENT_INTERPROCESS) != 0, CUDA_ERROR_INVALID_HANDLE);
    *handle = to_handle<CUipcEventHandle>(object->shared->file());
  });
}

CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(event != nullptr);
    const SharedFile file = from_handle(handle, SharedKind::event, CUDA_ERROR_MAP_FAILED);
    // As with libcuda, a process does not open its own.
    require(file.owner() != this_process(), CUDA_ERROR_INVALID_CONTEXT);
    auto object = std::make_shared<EventObject>();
    object->context = context;
    object->flags = CU_EVENT_DISABLE_TIMING;
    object->shared = SharedEvent::open(file);
    *event = driver.add(std::move(object));
  });
}

CUresult cuMemPoolExportToShareableHandle(void* handle, CUmemoryPool pool, CUmemAllocationHandleType type,
                                          unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = find_pool(driver, pool);
    require(handle != nullptr);
    require_descriptor(type, flags);
    require(object->is_shared() && !object->origin());
    // The file says which pool of which process it stands for.
    const int descriptor =
        engine::make_memory_file(sizeof(SharedFile), static_cast<std::uint32_t>(object->place()));
    require(descriptor >= 0, CUDA_ERROR_OUT_OF_MEMORY);
    SharedFile content = shared_file(SharedKind::pooled, descriptor, 0, 0);
    content.pool = reinterpret_cast<std::uint64_t>(pool);
    const quern::base::HeldSignal quiet(SIGXFSZ);
    if (::pwrite(descriptor, &content, sizeof content, 0) != sizeof content) {
      ::close(descriptor);
      fail(CUDA_ERROR_OUT_OF_MEMORY);
    }
    *static_cast<int*>(handle) = descriptor;
  });
}

/// The descriptor stays the caller's.
CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* handle, CUmemAllocationHandleType type,
                                            unsigned long long flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pool != nullptr);
    require_descriptor(type, flags);
    const int descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(handle));
    const engine::MemoryFile file = engine::examine_memory_file(descriptor);
    SharedFile content;
    require(file.bytes == sizeof content &&
            ::pread(descriptor, &content, sizeof content, 0) == sizeof content &&
            content.kind == SharedKind::pooled && content.version == SharedFile{}.version);
    require(file.device < driver.device_count(), CUDA_ERROR_INVALID_DEVICE);
    *pool = driver.add(std::make_shared<MemPoolObject>(static_cast<PoolPlace>(file.device), content));
  });
}

CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr pointer) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(data != nullptr);
    const auto allocation = driver.memory().find(reinterpret_cast<const void*>(pointer));
    require(allocation != nullptr && allocation->kind == AllocationKind::pooled);
    const auto* const charge = static_cast<const PoolCharge*>(allocation->charge.get());
    require(charge != nullptr && charge->pool().is_shared() && !charge->pool().origin());
    SharedFile file = share(driver, *allocation, SharedKind::pooled);
    file.pool = reinterpret_cast<std::uint64_t>(charge->handle());
    *data = to_handle<CUmemPoolPtrExportData>(file);
  });
}

CUresult cuMemPoolImportPointer(CUdeviceptr* pointer, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    const auto object = find_pool(driver, pool);
    require(pointer != nullptr && data != nullptr && object->origin().has_value());
    const SharedFile file = from_handle(*data, SharedKind::pooled, CUDA_ERROR_INVALID_VALUE);
    require(file.owner() == object->origin()->owner() && file.pool == object->origin()->pool);
    const auto allocation =
        import_memory(driver.memory(), file, {AllocationKind::pooled, context->id, driver.device_count()});
    *pointer = reinterpret_cast<CUdeviceptr>(allocation->base);
    note_object();
  });
}
