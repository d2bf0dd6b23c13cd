// SPDX-License-Identifier: Apache-2.0
#include "base/dynamic_library.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <cerrno>

namespace quern::base {
namespace {

/// True if the process or the system has no file descriptor left. The loader reports that only as text.
bool has_no_descriptor() noexcept {
  const int file = ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno == EMFILE || errno == ENFILE;
  ::close(file);
  return false;
}

Diagnostic failure(const std::string& path, const char* reason) {
  Diagnostic diagnostic;
  diagnostic.message = "cannot load " + path + ": " + (reason != nullptr ? reason : "unknown reason");
  if (has_no_descriptor()) {
    diagnostic.code = kTooManyFiles;
    diagnostic.message += "; the process can open no more files";
    diagnostic.hint = "close files that are not needed, or raise the limit (ulimit -n, RLIMIT_NOFILE)";
  } else {
    diagnostic.code = "library-not-loaded";
  }
  return diagnostic;
}

}  // namespace

void DynamicLibrary::Traits::release(type handle) noexcept { dlclose(handle); }

Expected<DynamicLibrary> DynamicLibrary::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return failure(path, dlerror());
  std::string file = path;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr &&
      *map->l_name != '\0')
    file = map->l_name;
  return DynamicLibrary(handle, std::move(file));
}

void* DynamicLibrary::symbol(const char* name) const noexcept { return dlsym(handle_.get(), name); }

}  // namespace quern::base
