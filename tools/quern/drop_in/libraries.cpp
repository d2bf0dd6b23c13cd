// SPDX-License-Identifier: Apache-2.0
#include "drop_in/libraries.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <quern/quern.hpp>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string_view>

namespace quern::cli {
namespace {

namespace fs = std::filesystem;

/// In an installation, all libraries are in one folder; in a build tree, they are where they were built.
class Libraries {
 public:
  Libraries() : program_(fs::read_symlink("/proc/self/exe").parent_path()) {
    std::error_code ignored;
    is_build_ = fs::exists(program_ / "src/cpu/device/libcuda.so.1", ignored);
  }

  std::string driver() const { return existing("src/cpu/device", "libcuda.so.1"); }
  std::string preloaded(const char* name) const { return existing("src/drop_in", name); }

 private:
  std::string existing(const char* build_folder, const char* name) const {
    const fs::path folder = program_ / (is_build_ ? build_folder : QUERN_DROP_IN_FOLDER);
    const fs::path file = folder.lexically_normal() / name;
    std::error_code ignored;
    if (fs::exists(file, ignored)) return file.string();
    throw Error(ErrorCode::not_found, fmt::format("{} is missing\nhint: build quern with its CPU device and "
                                                  "without sanitizers, and install it as a whole",
                                                  file.string()));
  }

  fs::path program_;
  bool is_build_ = false;
};

/// A list in the loader's format: the parts, then the former value of the variable.
std::string joined(std::initializer_list<std::string> first, const char* variable,
                   std::initializer_list<std::string> last = {}) {
  std::string list;
  const auto add = [&list](const std::string& part) {
    if (!part.empty()) list += (list.empty() ? "" : ":") + part;
  };
  for (const std::string& part : first) add(part);
  if (const char* const former = std::getenv(variable)) add(former);
  for (const std::string& part : last) add(part);
  return list;
}

bool loader_finds_nvrtc() {
  for (const char* const name : {"libnvrtc.so.13", "libnvrtc.so.12"})
    if (void* const library = ::dlopen(name, RTLD_LAZY | RTLD_LOCAL)) {
      ::dlclose(library);
      return true;
    }
  return false;
}

/// The folder of the NVRTC that quern uses; empty if the loader finds one itself, or there is none.
std::string nvrtc_folder() {
  const char* const hides_toolkit = std::getenv("QUERN_HIDE_TOOLKIT");  // the loader may find a hidden one
  const bool is_hidden = hides_toolkit != nullptr && std::string_view(hides_toolkit) == "1";
  if (!is_hidden && loader_finds_nvrtc()) return {};
  return fs::path(nvrtc_library()).parent_path().string();
}

}  // namespace

Variables drop_in_variables(const std::string& counts) {
  const Libraries libraries;
  const std::string driver = libraries.driver();
  // After the program's own folders, since NVRTC's folder contains other libraries too.
  Variables variables{
      {"LD_LIBRARY_PATH",
       joined({fs::path(driver).parent_path().string()}, "LD_LIBRARY_PATH", {nvrtc_folder()})},
      {"LD_PRELOAD",
       joined({counts.empty() ? std::string() : libraries.preloaded("libquern-count-calls.so"),
               libraries.preloaded("libnvJitLink-13.so"), libraries.preloaded("libnvJitLink-12.so")},
              "LD_PRELOAD")},
      {"QUERN_EXEC", "1"}};
  // Numba takes this file instead of searching for the driver.
  if (std::getenv("NUMBA_CUDA_DRIVER") != nullptr) variables.emplace_back("NUMBA_CUDA_DRIVER", driver);
  if (!counts.empty()) variables.emplace_back("QUERN_CALL_COUNTS", counts);
  return variables;
}

}  // namespace quern::cli
