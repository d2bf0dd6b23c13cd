// SPDX-License-Identifier: Apache-2.0
// Random calls of the driver, with handles that are valid, stale or of another kind, null pointers and
// limits. Addresses that a function follows on the host are of memory that the machine owns. Calls that may
// wait for ever by their definition (values that nobody writes, loops) are left out.
#pragma once

#include "driver/all_versions.hpp"
// The above declares every version, for what follows.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace quern::fuzz {

/// For calls without which nothing can be tried.
void must(CUresult result);

/// The input, byte by byte; zeros after its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  bool at_end() const { return at_ == bytes_.size(); }
  std::uint8_t byte() { return at_end() ? std::uint8_t{0} : bytes_[at_++]; }
  std::size_t below(std::size_t end) { return byte() % end; }
  bool rarely() { return below(16) == 0; }
  std::uint32_t word() {
    std::uint32_t value = 0;
    for (int i = 0; i < 4; ++i) value = value << 8 | byte();
    return value;
  }
  /// Small, negative, or a limit.
  int number() {
    const std::uint8_t choice = byte();
    return choice < 0xf0 ? static_cast<std::int8_t>(choice) : static_cast<int>(word());
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

/// The handles of one kind that were made, whether or not they still live.
template <class Handle>
struct Handles {
  std::vector<Handle> made;
  void add(Handle handle) {
    if (handle != Handle{}) made.push_back(handle);
  }
  /// For the place where a function writes a handle.
  void add_if(CUresult result, Handle handle) {
    if (result == CUDA_SUCCESS) add(handle);
  }
  bool full(std::size_t most = 8) const { return made.size() >= most; }
};

/// Makes the calls of one input, mostly in a context of its own.
class Machine {
 public:
  explicit Machine(std::span<const std::uint8_t> bytes);
  /// Destroys what there may still be.
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  void run();

 private:
  static constexpr std::size_t kBytes = 4096;
  static constexpr std::size_t kHostBytes = 16384;

  void call();
  void call_context();
  void call_stream();
  void call_capture();
  void add_to_graph();
  void add_conditional(CUgraph graph, const CUgraphNode* list, std::size_t count);
  void change_graph();
  void call_exec();
  void ask_graph();
  void call_object();
  void call_memory();
  void copy_memory();
  void ask_memory();
  void call_virtual_memory();
  void call_pool();
  void call_module();
  void call_library();
  void call_link();
  void call_ipc();

  /// Mostly one that was made; also null, one of another kind, and one that nobody made.
  template <class Handle>
  Handle any(const Handles<Handle>& handles) {
    const std::uint8_t choice = input_.byte();
    if (choice < 0xf8 && !handles.made.empty()) return handles.made[choice % handles.made.size()];
    const std::uintptr_t invented = choice % 4 == 0   ? 0
                                    : choice % 4 == 1 ? reinterpret_cast<std::uintptr_t>(module_)
                                    : choice % 4 == 2 ? reinterpret_cast<std::uintptr_t>(fill_)
                                                      : std::uintptr_t{input_.word()};
    if constexpr (std::is_pointer_v<Handle>)
      return reinterpret_cast<Handle>(invented);
    else
      return static_cast<Handle>(invented);
  }
  CUstream stream();
  std::vector<CUgraphNode> nodes();
  CUfunction function();
  /// Mostly within the device's memory.
  CUdeviceptr address();
  /// Memory of the host's of at least `bytes`, at most 4096: the machine's own, or pinned.
  std::byte* host(std::size_t bytes);
  /// Any, also more than there is.
  std::size_t bytes();
  /// For memory of the host's.
  std::size_t few_bytes() { return input_.byte() * std::size_t{8}; }
  CUstreamCaptureMode mode() { return static_cast<CUstreamCaptureMode>(input_.below(4)); }
  CUmemLocation location();
  CUDA_KERNEL_NODE_PARAMS kernel();
  CUDA_MEMCPY3D box();
  CUDA_MEMSET_NODE_PARAMS_v1 filling();
  std::string text();
  static CUstream new_stream();

  Input input_;
  CUcontext context_ = nullptr;
  CUmodule module_ = nullptr;
  CUfunction fill_ = nullptr;
  CUdeviceptr memory_ = 0;
  CUdeviceptr pointer_ = 0;
  unsigned value_ = 0;
  std::array<void*, 2> parameters_{&pointer_, &value_};
  int children_ = 0;
  Handles<CUcontext> contexts_;  ///< all but context_
  Handles<CUstream> streams_;
  Handles<CUevent> events_;
  Handles<CUgraph> graphs_;
  Handles<CUgraphNode> nodes_;
  Handles<CUgraphExec> execs_;
  Handles<CUuserObject> objects_;
  Handles<CUdeviceptr> pointers_;
  Handles<CUdeviceptr> pinned_;  ///< that the driver allocated; not freed before the end
  Handles<CUdeviceptr> ranges_;
  Handles<CUmemGenericAllocationHandle> physical_;
  Handles<CUmemoryPool> pools_;
  Handles<CUmodule> modules_;
  Handles<CUfunction> functions_;
  Handles<CUlibrary> libraries_;
  Handles<CUkernel> kernels_;
  Handles<CUlinkState> links_;
  CUipcMemHandle memory_handle_{};
  CUipcEventHandle event_handle_{};
};

}  // namespace quern::fuzz
