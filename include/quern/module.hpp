// SPDX-License-Identifier: Apache-2.0
// room: session
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/constant.hpp"
#include "quern/diagnostic.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"
#include "quern/kernel.hpp"

namespace quern {

namespace session {
class ModuleState;
}

/// How source is compiled. Include directories are searched in order, before the toolkit's own headers, which
/// are always found; so is <quern/device.cuh>.
struct LoadOptions {
  std::vector<std::string> defines;  ///< "N=4" or "DEBUG"
  std::vector<std::string> include_dirs;
  std::vector<std::string> options;  ///< NVRTC's own: "--fmad=false", "--maxrregcount=32"
  std::vector<std::string>
      name_expressions;   ///< "scale<float>": instantiated at once; kernel() asks for others by itself
  bool fastmath = false;  ///< --use_fast_math
  std::string file_name;  ///< what messages call a source that is a string
  std::vector<Constant> constants;  ///< of Kernel Python: see Module::bind
};

/// Compiled and loaded source (Session::load_*). Copies share it; kernels keep it alive. Thread-safe.
class QUERN_API Module {
 public:
  explicit Module(std::shared_ptr<session::ModuleState> state) : state_(std::move(state)) {}

  /// The kernel of that name: "saxpy", "ns::saxpy", or a template's instance "scale<float>", which is
  /// compiled on its first use (as a module of its own: it has its own copy of __device__ variables). Throws
  /// Error(not_found) with the names there are, CompileError where the instance does not compile.
  Kernel kernel(std::string_view name) const;
  Expected<Kernel> try_kernel(std::string_view name) const;
  /// The module's only kernel. Throws Error(usage) where it has several, or none.
  Kernel kernel() const;

  /// The same Kernel Python file with a module-level name that means `value`, whatever the file says: a
  /// number, or an array, which kernels read from constant memory (cuda.const.array_like) and which may have
  /// any shape. Its kernels are compiled anew where the value reaches them. Throws Error(usage) for names
  /// that the file does not use and for types that constants do not have.
  Module bind(std::string name, const NDArray& value) const { return bind(Constant(std::move(name), value)); }
  template <class T>
    requires std::is_arithmetic_v<T>
  Module bind(std::string name, T value) const {
    return bind(Constant(std::move(name), value));
  }
  Module bind(Constant constant) const;

  /// Names of the kernels that are compiled.
  std::vector<std::string> kernel_names() const;
  /// Empty for Kernel Python, whose kernels are compiled one by one (Kernel::info).
  const std::string& ptx() const noexcept;
  /// CUmodule, as void*; null for Kernel Python, whose kernels are modules of their own
  /// (Kernel::module_handle). A template's instance is in another one.
  void* handle() const noexcept;
  /// The compiler's warnings.
  const Diagnostics& log() const noexcept;
  /// NVRTC's time in milliseconds; 0 where the result was cached.
  double compile_ms() const noexcept;

 private:
  std::shared_ptr<session::ModuleState> state_;
};

}  // namespace quern
