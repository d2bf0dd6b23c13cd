// SPDX-License-Identifier: Apache-2.0
// Memory of other processes: the 64-byte handles that name it, and what this process has opened. See
// docs/decisions/0037-virtual-memory.md.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::device {

/// A process, distinguished from an earlier one of the same number.
struct ProcessId {
  std::int32_t number = 0;
  std::uint64_t started = 0;  ///< in ticks since the machine was started; 0: there is no such process
  bool operator==(const ProcessId&) const = default;
};
ProcessId this_process();
/// The process that has that number now.
ProcessId process_of(std::int32_t number);
/// True while it runs.
bool is_alive(const ProcessId& process);

enum class SharedKind : std::uint32_t { memory = 0x716d656d, event = 0x71657674, pooled = 0x71706f6c };

/// A memory file (see engine::make_memory_file()) that a process has open, and a part of it. It is the
/// contents of the handles that programs pass on.
struct SharedFile {
  SharedKind kind{};
  std::int32_t process = 0;
  std::uint64_t started = 0;
  std::uint64_t inode = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t pool = 0;  ///< of pooled memory: the pool's handle in its process
  std::int32_t descriptor = -1;
  std::uint32_t version = 1;

  ProcessId owner() const noexcept { return {process, started}; }
};
static_assert(sizeof(SharedFile) <= CU_IPC_HANDLE_SIZE && std::is_trivially_copyable_v<SharedFile>);

/// `descriptor` of this process.
SharedFile shared_file(SharedKind kind, int descriptor, std::uint64_t offset, std::uint64_t bytes);

template <class Handle>
Handle to_handle(const SharedFile& file) {
  Handle handle{};
  static_assert(sizeof handle == CU_IPC_HANDLE_SIZE);
  std::memcpy(&handle, &file, sizeof file);
  return handle;
}
/// Throws Failure(otherwise) unless it is one of ours, of that kind.
template <class Handle>
SharedFile from_handle(const Handle& handle, SharedKind kind, CUresult otherwise) {
  static_assert(sizeof handle == CU_IPC_HANDLE_SIZE);
  SharedFile file;
  std::memcpy(static_cast<void*>(&file), &handle, sizeof file);
  require(file.kind == kind && file.version == SharedFile{}.version, otherwise);
  return file;
}

/// A descriptor of the file for this process. Throws Failure(CUDA_ERROR_MAP_FAILED) if the owner has ended,
/// has closed it, or belongs to another user.
int open_shared_file(const SharedFile& file);

/// Maps the part of the file that the handle names into the window. Throws Failure.
struct ImportRequest {
  engine::AllocationKind kind = engine::AllocationKind::imported;
  std::uint64_t owner = 0;
  std::uint32_t device_count = 1;
};
std::shared_ptr<engine::Allocation> import_memory(engine::Memory& memory, const SharedFile& file,
                                                  const ImportRequest& request);

/// What contexts have opened by cuIpcOpenMemHandle, and how often. Thread-safe.
class OpenedMemory {
 public:
  /// Opens it for a context, or counts a further use. Throws Failure.
  CUdeviceptr open(engine::Memory& memory, const SharedFile& file, const ImportRequest& request)
      QUERN_EXCLUDES(mutex_);
  /// The allocation if that was its last use, otherwise null. Throws Failure(CUDA_ERROR_INVALID_VALUE) if
  /// nothing was opened at that address.
  std::shared_ptr<engine::Allocation> close(CUdeviceptr address) QUERN_EXCLUDES(mutex_);

 private:
  struct Entry {
    std::tuple<std::int32_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t> key;
    std::weak_ptr<engine::Allocation> allocation;  ///< expires with its context
    std::uint64_t uses = 0;
  };
  void forget_ended() QUERN_REQUIRES(mutex_);

  base::Mutex mutex_;
  std::vector<Entry> entries_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
