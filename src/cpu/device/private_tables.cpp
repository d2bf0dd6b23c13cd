// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/private_tables.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "base/env.hpp"
#include "base/thread_annotations.hpp"
#include "cpu/engine/output.hpp"

namespace quern::cpu::device {
namespace {

struct Reported {
  base::Mutex mutex;
  std::vector<std::string> libraries QUERN_GUARDED_BY(mutex);
};

/// NVRTC asks for tables, too, and works without them.
bool works_without_tables(std::string_view library) noexcept {
  return library.substr(library.rfind('/') + 1).starts_with("libnvrtc");
}

/// True the first time.
bool note(const std::string& library) {
  static auto* const reported = new Reported;  // asked for until the process ends
  const base::LockGuard lock(reported->mutex);
  const bool is_new = std::ranges::find(reported->libraries, library) == reported->libraries.end();
  if (is_new) reported->libraries.push_back(library);
  return is_new;
}

}  // namespace

void report_private_table(const void* caller) noexcept try {
  if (!base::env("QUERN_EXEC")) return;
  Dl_info info{};
  const bool is_known = ::dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const std::string library = is_known ? info.dli_fname : "code that belongs to no library";
  if (!works_without_tables(library) && note(library))
    engine::report(
        LogLevel::warning,
        fmt::format("{} asks for private tables of NVIDIA's driver (cuGetExportTable), as the CUDA "
                    "runtime library does, and the CPU device has only the documented driver API: "
                    "what needs that library cannot run on it",
                    library));
} catch (const std::exception&) {  // no memory for a message
}

}  // namespace quern::cpu::device
