// SPDX-License-Identifier: Apache-2.0
#include "base/dynamic_library.hpp"

#include <dlfcn.h>
#include <link.h>

namespace quern::base {

void DynamicLibrary::Traits::release(type handle) noexcept { dlclose(handle); }

Expected<DynamicLibrary> DynamicLibrary::open(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* reason = dlerror();
    Diagnostic diagnostic;
    diagnostic.code = "library-not-loaded";
    diagnostic.message = "cannot load " + path + ": " + (reason != nullptr ? reason : "unknown reason");
    return diagnostic;
  }
  std::string file = path;
  link_map* map = nullptr;
  if (dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr &&
      *map->l_name != '\0')
    file = map->l_name;
  return DynamicLibrary(handle, std::move(file));
}

void* DynamicLibrary::symbol(const char* name) const noexcept { return dlsym(handle_.get(), name); }

}  // namespace quern::base
