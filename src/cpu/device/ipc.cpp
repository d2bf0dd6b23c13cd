// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/ipc.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "cpu/engine/backing.hpp"
#include "cpu/engine/window.hpp"

namespace quern::cpu::device {
namespace {

std::uint64_t inode_of(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

}  // namespace

ProcessId process_of(std::int32_t number) {
  // proc(5): the second field is a name in parentheses, which may contain anything; the next is the state,
  // the 20th the number of threads, the 22nd the time of the start.
  std::ifstream file(fmt::format("/proc/{}/stat", number));
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return {number, 0};
  std::istringstream fields(line.substr(name_end + 1));
  std::string state, skipped;
  std::int64_t threads = 0;
  std::uint64_t started = 0;
  fields >> state;
  for (int field = 4; field < 20; ++field) fields >> skipped;
  fields >> threads >> skipped >> started;
  // A process that nobody has waited for stays in the list. The main thread may end before others.
  const bool ended = (state == "Z" || state == "X") && threads <= 1;
  return {number, ended ? 0 : started};
}

ProcessId this_process() { return process_of(static_cast<std::int32_t>(::getpid())); }

bool is_alive(const ProcessId& process) {
  return process.started != 0 && process_of(process.number) == process;
}

SharedFile shared_file(SharedKind kind, int descriptor, std::uint64_t offset, std::uint64_t bytes) {
  const ProcessId process = this_process();
  SharedFile file;
  file.kind = kind;
  file.process = process.number;
  file.started = process.started;
  file.inode = inode_of(descriptor);
  file.offset = offset;
  file.bytes = bytes;
  file.descriptor = descriptor;
  return file;
}

int open_shared_file(const SharedFile& file) {
  const bool alive = is_alive(file.owner());
  const std::string path = fmt::format("/proc/{}/fd/{}", file.process, file.descriptor);
  const int descriptor = alive ? ::open(path.c_str(), O_RDWR | O_CLOEXEC) : -1;
  if (descriptor < 0)
    fail(CUDA_ERROR_MAP_FAILED, "the process that shares it has ended, or belongs to another user");
  if (engine::examine_memory_file(descriptor).bytes == 0 || inode_of(descriptor) != file.inode) {
    ::close(descriptor);
    fail(CUDA_ERROR_MAP_FAILED, "the process that shares it has released it");
  }
  return descriptor;
}

std::shared_ptr<engine::Allocation> import_memory(engine::Memory& memory, const SharedFile& file,
                                                  const ImportRequest& request) {
  memory.bias().forbid();
  const std::shared_ptr<engine::Backing> backing = engine::Backing::adopt(open_shared_file(file));
  require(backing != nullptr, CUDA_ERROR_MAP_FAILED);
  require(file.bytes > 0 && file.offset <= backing->bytes() && file.bytes <= backing->bytes() - file.offset,
          CUDA_ERROR_INVALID_HANDLE);
  require(backing->device() < request.device_count, CUDA_ERROR_INVALID_DEVICE);
  const std::uint64_t pages_bytes = engine::round_up(backing->bytes(), engine::kPageBytes);
  const std::uint64_t alignment =
      pages_bytes >= engine::kHugePageBytes ? engine::kHugePageBytes : engine::kPageBytes;
  const auto reservation = memory.reserve(backing->device(), pages_bytes, alignment);
  require(reservation != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  auto pages = engine::MappedPages::make(reservation, 0, pages_bytes, backing, 0, engine::Access::read_write);
  require(pages != nullptr, CUDA_ERROR_MAP_FAILED);
  return memory.enter(reservation->base() + file.offset,
                      {file.bytes, request.kind, backing->device(), request.owner, 0}, std::move(pages),
                      engine::Access::read_write);
}

void OpenedMemory::forget_ended() {
  std::erase_if(entries_, [](const Entry& entry) { return entry.allocation.expired(); });
}

CUdeviceptr OpenedMemory::open(engine::Memory& memory, const SharedFile& file, const ImportRequest& request) {
  const auto key = std::make_tuple(file.process, file.started, file.inode, file.offset, request.owner);
  const base::LockGuard lock(mutex_);
  forget_ended();
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.key == key; });
  std::shared_ptr<engine::Allocation> allocation;
  if (found != entries_.end()) allocation = found->allocation.lock();
  if (allocation != nullptr) {
    ++found->uses;
  } else {
    allocation = import_memory(memory, file, request);
    entries_.push_back({key, allocation, 1});
  }
  return reinterpret_cast<CUdeviceptr>(allocation->base);
}

std::shared_ptr<engine::Allocation> OpenedMemory::close(CUdeviceptr address) {
  const base::LockGuard lock(mutex_);
  forget_ended();
  for (auto entry = entries_.begin(); entry != entries_.end(); ++entry) {
    std::shared_ptr<engine::Allocation> allocation = entry->allocation.lock();
    if (allocation == nullptr || reinterpret_cast<CUdeviceptr>(allocation->base) != address) continue;
    if (--entry->uses > 0) return nullptr;
    entries_.erase(entry);
    return allocation;
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

}  // namespace quern::cpu::device
