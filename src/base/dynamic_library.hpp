// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/unique_handle.hpp"
#include "quern/expected.hpp"

namespace quern::base {

/// The code of the diagnostic if no file descriptor is left; else it is "library-not-loaded".
inline constexpr const char* kTooManyFiles = "too-many-files";

/// A shared library opened with RTLD_NOW | RTLD_LOCAL. Move-only; the destructor closes it. Thread-safe
/// to read.
class DynamicLibrary {
 public:
  /// Opens `path` (a bare name searches the loader's path). The diagnostic carries dlerror's text.
  static Expected<DynamicLibrary> open(const std::string& path);

  /// The symbol's address, or null.
  void* symbol(const char* name) const noexcept;
  template <class F>
  F function(const char* name) const noexcept {
    return reinterpret_cast<F>(symbol(name));
  }
  /// The file that the loader mapped, or `path` if the loader does not tell.
  const std::string& path() const noexcept { return path_; }

 private:
  struct Traits {
    using type = void*;
    static type null() noexcept { return nullptr; }
    static void release(type handle) noexcept;
  };
  DynamicLibrary(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  UniqueHandle<Traits> handle_;
  std::string path_;
};

}  // namespace quern::base
