// SPDX-License-Identifier: Apache-2.0
// component: session
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "quern/constant.hpp"
#include "quern/diagnostic.hpp"
#include "quern/expected.hpp"
#include "quern/export.hpp"
#include "quern/global.hpp"
#include "quern/kernel.hpp"

namespace quern {

namespace session {
class ModuleState;
}

/// A text that sources include by this name as if it were a file: "kernels/tile.cuh". Its own #include "..."
/// lines look for headers beside it first ("size.cuh" is then "kernels/size.cuh"), then as those of any file.
struct Header {
  std::string name;
  std::string text;
};

/// Options of a compilation. An #include finds, in this order: `headers`; for a standard header that libcu++
/// has (<type_traits>, <cstdint>, <tuple>, ...: docs/cuda.md lists them) a file of that name in
/// `include_dirs`, else libcu++'s, with its names in namespace std; files in `include_dirs`, in order, and
/// beside the source; the toolkit's own headers, which are always found. <quern/device.cuh> and the headers
/// that it includes are always quern's.
struct LoadOptions {
  std::vector<std::string> defines = {};  ///< "N=4" or "DEBUG"
  std::vector<std::string> include_dirs = {};
  std::vector<std::string> options = {};  ///< NVRTC's own: "--fmad=false", "--maxrregcount=32"
  std::vector<std::string> name_expressions =
      {};                 ///< "scale<float>": instantiated at once; kernel() asks for others by itself.
                          ///< "&ns::counter": a variable that is kept though no kernel uses it, see global()
  bool fastmath = false;  ///< --use_fast_math
  std::string file_name = {};            ///< the name in messages of a source that is a string
  std::vector<Constant> constants = {};  ///< of Kernel Python: see Module::bind
  std::vector<Header> headers = {};      ///< names are compared as they are written; each is given once
};

enum class SourceLanguage : std::uint8_t { cuda, ptx, python };

/// One of several sources that Session::link() links into one module.
struct LinkSource {
  std::string text = {};
  LoadOptions options = {};  ///< of this source: its file_name, its name_expressions, ...
  SourceLanguage language = SourceLanguage::cuda;  ///< Kernel Python cannot be linked
};

/// Compiled and loaded source (Session::load_*). Copies share it; kernels keep it alive. Thread-safe.
class QUERN_API Module {
 public:
  explicit Module(std::shared_ptr<session::ModuleState> state) : state_(std::move(state)) {}

  /// The kernel of that name: "saxpy", "ns::saxpy", or a template's instance "scale<float>", which is
  /// compiled on its first use AS A MODULE OF ITS OWN: IT DOES NOT SHARE VARIABLES with the module's other
  /// kernels. Name instances in LoadOptions::name_expressions if they must share variables. Throws
  /// Error(not_found) that lists the names, CompileError if the instance does not compile, Error(usage) for
  /// an instance with its own copy of a variable that global() returned.
  Kernel kernel(std::string_view name) const;
  Expected<Kernel> try_kernel(std::string_view name) const;
  /// The module's only kernel. Throws Error(usage) if it has several, or none.
  Kernel kernel() const;

  /// The same Kernel Python file with a module-level name bound to `value`, which overrides the file: a
  /// number, or an array, which kernels read from constant memory (cuda.const.array_like) and which may have
  /// any shape. Its kernels are compiled again if they use the value. Throws Error(usage) for names that the
  /// file does not use and for types that constants do not have.
  Module bind(std::string name, const NDArray& value) const { return bind(Constant(std::move(name), value)); }
  template <class T>
    requires std::is_arithmetic_v<T>
  Module bind(std::string name, T value) const {
    return bind(Constant(std::move(name), value));
  }
  Module bind(Constant constant) const;

  /// A __device__, __constant__ or __managed__ variable: "gain", "ns::table", or its name in the PTX. A
  /// static one, a template's and one that no kernel uses is dropped by the compiler unless
  /// LoadOptions::name_expressions has "&name". Throws Error(not_found) that lists the names, Error(usage) if
  /// a template's instance that was compiled on its own has a copy of the variable (Kernel::global() selects
  /// one), Error(unsupported) for Kernel Python, which has no such variables.
  ///
  ///     module.global<float>("gain").set(2.5f);
  ///     module.global<float[]>("table").copy_from_host(values, stream);
  GlobalVariable global(std::string_view name) const;
  Expected<GlobalVariable> try_global(std::string_view name) const;
  /// Throws Error(usage) also if T does not have the variable's size; see Global.
  template <class T>
  Global<T> global(std::string_view name) const {
    return Global<T>(global(name));
  }
  /// Names of the variables that global() finds.
  std::vector<std::string> global_names() const;

  /// Writes the compiled module as one file, which Session::load_saved() loads without NVRTC and without the
  /// source; docs/saved-modules.md describes its content. Of Kernel Python it holds the argument types that
  /// were compiled so far, and those that decorators give, which are compiled now if they were not yet. The
  /// file is written completely or not at all. Throws Error(io), CompileError, Error(usage) for Kernel Python
  /// without a compiled kernel.
  void save(const std::filesystem::path& path) const;
  /// The bytes of that file.
  std::vector<std::byte> saved() const;

  /// Names of the kernels that are compiled.
  std::vector<std::string> kernel_names() const;
  /// Empty for Kernel Python, whose kernels are compiled one by one (Kernel::info).
  const std::string& ptx() const noexcept;
  /// CUmodule, as void*; null for Kernel Python, whose kernels are modules of their own
  /// (Kernel::module_handle). A template's instance is in another module.
  void* handle() const noexcept;
  /// The compiler's warnings.
  const Diagnostics& log() const noexcept;
  /// NVRTC's time in milliseconds; 0 if the result was cached. KernelInfo has what the device adds to it.
  double compile_ms() const noexcept;

 private:
  std::shared_ptr<session::ModuleState> state_;
};

/// A module that Session::load_async() loads on a thread of quern's; see Pending.
class QUERN_API PendingModule : public Pending {
 public:
  /// Waits. Throws what the loading threw: CompileError and so on; Error(cancelled).
  Module get() const;
  Expected<Module> try_get() const;

 private:
  friend class Session;
  PendingModule(std::shared_ptr<base::Task> task, std::shared_ptr<const Expected<Module>> result)
      : Pending(std::move(task)), result_(std::move(result)) {}
  std::shared_ptr<const Expected<Module>> result_;
};

}  // namespace quern
