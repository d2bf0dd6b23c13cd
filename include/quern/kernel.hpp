// SPDX-License-Identifier: Apache-2.0
// component: launch
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/argument.hpp"
#include "quern/export.hpp"
#include "quern/global.hpp"
#include "quern/launch_config.hpp"
#include "quern/pending.hpp"

namespace quern {

namespace launch {
class KernelState;
}

/// A kernel parameter. `name` and `type` are the author's ("x", "const float*") where the source gives them,
/// else empty; sizes and offsets in the parameter buffer are bytes.
struct Parameter {
  std::string name;
  std::string type;
  std::size_t offset = 0;
  std::size_t size = 0;
  std::size_t align = 1;
  bool pointer = false;
};

/// Properties of a kernel on its device.
struct KernelInfo {
  std::string name;          ///< "scale<float>"
  std::string lowered_name;  ///< in the PTX
  std::string signature;     ///< "saxpy(int n, float a, const float* x, float* y)"
  std::vector<Parameter> parameters;
  std::string ptx;                 ///< of its module
  std::string cuda_source;         ///< the input of NVRTC; empty for PTX and for saved modules
  int registers = 0;               ///< per thread
  std::size_t shared_bytes = 0;    ///< static, per block
  std::size_t local_bytes = 0;     ///< per thread
  std::size_t constant_bytes = 0;  ///< of the module
  std::uint32_t max_threads_per_block = 0;
  /// The time for which the kernel was compiled so far: the sum of the three below, each of which is 0 for
  /// results of a cache. It grows at the first launch with each block shape, or at prepare().
  double compile_ms = 0;
  double nvrtc_ms = 0;  ///< CUDA C++ to PTX
  /// The CPU device: reading the PTX of the module; a GPU: loading the module, compiled now or not.
  double load_ms = 0;
  double machine_code_ms = 0;  ///< the CPU device: machine code of this kernel, all block shapes together
};

class BoundKernel;

/// A kernel ready to launch: a view of its module's code, which it keeps alive. Immutable, copied freely,
/// thread-safe.
class QUERN_API Kernel {
 public:
  explicit Kernel(std::shared_ptr<const launch::KernelState> state) : state_(std::move(state)) {}

  /// The author's name for it.
  const std::string& name() const noexcept;
  /// "saxpy(int n, float a, const float* x, float* y)".
  const std::string& signature() const noexcept;
  const std::vector<Parameter>& parameters() const noexcept;
  /// For a Kernel Python kernel without argument types, only its name and its parameters' names are set.
  KernelInfo info() const;
  /// Returns the Kernel Python kernel that is compiled for the types of these arguments; launches do that by
  /// themselves. Any other kernel returns itself. Throws CompileError.
  Kernel specialise(std::span<const Argument> arguments) const;
  /// The same for types in Numba's notation: "float32, float32[::1]", "(int64, float64[:, :])". Scalars are
  /// then converted to these. Throws CompileError, Error(unsupported) for kernels whose source gives the
  /// types.
  Kernel specialise(std::string_view signature) const;
  Kernel specialise(const char* signature) const { return specialise(std::string_view(signature)); }
  /// The argument types that a Kernel Python kernel is compiled for so far, "float32, float32[::1]" each.
  std::vector<std::string> specialisations() const;

  /// Does what the first launch with blocks of that shape would do before the kernel runs: Kernel Python is
  /// compiled for the types, and the CPU device generates machine code, for grids of less than 2^31 threads
  /// along each axis. On a GPU the module is loaded. Launches that follow do none of this. Throws
  /// CompileError, Error(usage) for a Kernel Python kernel without argument types, Error(unsupported) for
  /// blocks that the device does not run and for a signature if the source gives the types, DriverError.
  void prepare(const Dim3& block) const;
  void prepare(const Dim3& block, std::string_view signature) const;
  void prepare(const Dim3& block, const char* signature) const {
    prepare(block, std::string_view(signature));
  }
  void prepare(const Dim3& block, std::span<const Argument> arguments) const;
  /// The same on a thread of quern's; the handle's get() throws what prepare() would. A launch meanwhile
  /// waits for that code instead of generating it again.
  [[nodiscard]] Preparation prepare_async(const Dim3& block) const;
  [[nodiscard]] Preparation prepare_async(const Dim3& block, std::string_view signature) const;

  /// `kernel({.grid = 4, .block = 256})(arguments...)` queues one launch on the config's stream.
  BoundKernel operator()(const LaunchConfig& config) const;

  /// Numba's forall(): one thread per task, in blocks of the size with the highest occupancy (or of
  /// `config.block`, if it is not 1); `config.grid` is computed. The kernel checks its index against the
  /// number of tasks. A Kernel Python kernel is compiled for the arguments first.
  BoundKernel for_all(std::uint64_t task_count, LaunchConfig config = {}) const;
  /// The number of threads per block, at most `limit` (0: the kernel's own), with which the most threads are
  /// resident on a multiprocessor at once, from the driver's occupancy calculator. Throws Error(unsupported)
  /// if no block can have `shared_bytes` of dynamic shared memory.
  std::uint32_t suggested_block(std::size_t shared_bytes = 0, std::uint32_t limit = 0) const;
  /// The number of blocks of that size that a multiprocessor holds at once.
  std::uint32_t active_blocks(std::uint32_t block, std::size_t shared_bytes = 0) const;
  /// The largest number of blocks of a cooperative launch: the number that the whole device holds at once.
  std::uint64_t max_cooperative_blocks(std::uint32_t block, std::size_t shared_bytes = 0) const;

  /// CUfunction, as void*, and its CUmodule. Null for a Kernel Python kernel without argument types: call
  /// these on the result of specialise().
  void* handle() const noexcept;
  void* module_handle() const noexcept;

  /// The same with arguments whose types are only known at run time. Throws Error(usage) if the arguments do
  /// not fit the signature, Error(unsupported) if grid, block or shared memory exceed a limit (nothing was
  /// launched then), DriverError if the launch itself fails.
  void launch(const LaunchConfig& config, std::span<const Argument> arguments) const;
  void launch_for_all(std::uint64_t task_count, LaunchConfig config,
                      std::span<const Argument> arguments) const;

  /// A variable of this kernel's own module, which for a template's instance is a separate module; see
  /// Module::global(). Throws Error(usage) for a Kernel Python kernel without argument types.
  GlobalVariable global(std::string_view name) const;
  template <class T>
  Global<T> global(std::string_view name) const {
    return Global<T>(global(name));
  }

 private:
  std::shared_ptr<const launch::KernelState> state_;
};

/// A kernel with its configuration, to be called with arguments.
class BoundKernel {
 public:
  BoundKernel(Kernel kernel, const LaunchConfig& config) : kernel_(std::move(kernel)), config_(config) {}
  BoundKernel(Kernel kernel, const LaunchConfig& config, std::uint64_t task_count)
      : kernel_(std::move(kernel)), config_(config), task_count_(task_count) {}

  template <class... Args>
  void operator()(Args&&... arguments) const {
    if constexpr (sizeof...(Args) == 0) {
      launch({});
    } else {
      const Argument packed[] = {detail::argument_of(std::forward<Args>(arguments))...};
      launch(packed);
    }
  }
  /// The same with arguments whose types are only known at run time.
  void launch(std::span<const Argument> arguments) const {
    if (task_count_)
      kernel_.launch_for_all(*task_count_, config_, arguments);
    else
      kernel_.launch(config_, arguments);
  }

 private:
  Kernel kernel_;
  LaunchConfig config_;
  std::optional<std::uint64_t> task_count_;  ///< nothing: the config's grid
};

inline BoundKernel Kernel::operator()(const LaunchConfig& config) const { return BoundKernel(*this, config); }
inline BoundKernel Kernel::for_all(std::uint64_t task_count, LaunchConfig config) const {
  return BoundKernel(*this, config, task_count);
}

}  // namespace quern
