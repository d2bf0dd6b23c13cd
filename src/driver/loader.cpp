// SPDX-License-Identifier: Apache-2.0
#include "driver/loader.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <string_view>

#include "base/env.hpp"
#include "driver/output.hpp"

namespace quern::driver {
namespace {

constexpr const char* kPluginFile = "libquern-cpu.so";
constexpr const char* kPluginExport = "quern_cpu_device";
/// The largest depth below the build folder at which a program of ours may be.
constexpr int kBuildDepth = 5;

Diagnostic diagnostic(std::string code, std::string message, std::string hint) {
  Diagnostic result;
  result.code = std::move(code);
  result.message = std::move(message);
  result.hint = std::move(hint);
  return result;
}

/// "cuMemAlloc_v2" -> "cuMemAlloc": the name under which cuGetProcAddress knows the function.
std::string_view unversioned(std::string_view name) noexcept {
  const std::size_t at = name.rfind("_v");
  return at == std::string_view::npos ? name : name.substr(0, at);
}

/// The symbol of exactly that version. cuGetProcAddress is not used: for a name without its version it may
/// return a function of another type than the slot's, and libcuda exports every version under its own name.
template <class F>
void fill(F& slot, const base::DynamicLibrary& library, const char* name) {
  if (F function = library.function<F>(name); function != nullptr) slot = function;
}

/// The file this code was loaded from: libquern.so, or the program it is linked into.
std::filesystem::path own_file() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&unversioned), &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code ignored;
  // For the program itself dladdr may give argv[0], which need not be a path.
  std::filesystem::path file = std::filesystem::weakly_canonical(info.dli_fname, ignored);
  if (!std::filesystem::exists(file, ignored))
    file = std::filesystem::read_symlink("/proc/self/exe", ignored);
  return file;
}

Expected<LoadedPlugin> open_plugin(const std::filesystem::path& path) {
  Expected<base::DynamicLibrary> library = base::DynamicLibrary::open(path.string());
  if (!library) {
    Diagnostics errors = std::move(library).errors();
    if (errors.front().code == base::kTooManyFiles) return errors;
    errors.front().hint = path == base::env("QUERN_CPU_PLUGIN").value_or("")
                              ? "QUERN_CPU_PLUGIN names this file: correct it, or unset it"
                              : "build or install quern anew; this file is its CPU device";
    return errors;
  }
  const auto get = library->function<decltype(&quern_cpu_device)>(kPluginExport);
  const QuernCpuPlugin* plugin = get != nullptr ? get() : nullptr;
  DriverTable table = unsupported_table();
  if (plugin == nullptr || plugin->version < QUERN_CPU_PLUGIN_VERSION ||
      plugin->struct_bytes < sizeof(QuernCpuPlugin) || plugin->driver_table(&table, sizeof table) != 0)
    return diagnostic("plugin-mismatch",
                      fmt::format("{} is not the CPU device of this version of quern (version {} is needed)",
                                  path.string(), QUERN_CPU_PLUGIN_VERSION),
                      "install libquern and libquern-cpu from the same build");
  take_output(*plugin);
  return LoadedPlugin{std::move(*library), plugin, table};
}

}  // namespace

Expected<LoadedDriver> load_libcuda(const std::string& name) {
  // A file named by the user is accepted, even if it is ours.
  const std::optional<std::string> named =
      name == kSystemDriver ? base::env("QUERN_LIBCUDA") : std::optional<std::string>();
  Expected<base::DynamicLibrary> library = base::DynamicLibrary::open(named.value_or(name));
  if (!library) {
    Diagnostics errors = std::move(library).errors();
    if (errors.front().code == base::kTooManyFiles) return errors;
    errors.front().hint = named ? "QUERN_LIBCUDA names this file: correct it, or unset it"
                                : "install the NVIDIA driver, or use the CPU device";
    return errors;
  }
  if (!named && library->symbol(kPluginExport) != nullptr)
    return diagnostic("driver-is-quern",
                      fmt::format("{} is quern's own CPU device, not a GPU driver", library->path()),
                      "take quern's folder out of LD_LIBRARY_PATH, or choose the CPU device by its name");
  LoadedDriver driver{std::move(*library), unsupported_table()};
  if (driver.library.symbol("cuInit") == nullptr)
    return diagnostic("driver-incomplete",
                      fmt::format("{} does not export cuInit: it is no CUDA driver", driver.library.path()),
                      "install the NVIDIA driver, or use the CPU device");
#define QUERN_DRIVER_FUNCTION(function, ...) fill(driver.table.function, driver.library, #function);
#include "driver/functions.def"
  return driver;
}

std::vector<std::filesystem::path> cpu_plugin_candidates() {
  if (const std::optional<std::string> named = base::env("QUERN_CPU_PLUGIN")) return {*named};
  std::vector<std::filesystem::path> places;
  const std::filesystem::path folder = own_file().parent_path();
  if (!folder.empty()) {
    places.push_back(folder / "quern" / kPluginFile);
    places.push_back(folder / kPluginFile);
    places.push_back(folder.parent_path() / QUERN_LIBDIR / "quern" / kPluginFile);
    // Uninstalled: a program or library somewhere below the build folder.
    std::filesystem::path above = folder;
    for (int level = 0; level < kBuildDepth && above.has_relative_path();
         ++level, above = above.parent_path())
      places.push_back(above / "src/cpu/device" / kPluginFile);
  }
  return places;
}

Expected<LoadedPlugin> load_cpu_plugin(const std::filesystem::path& path) {
  if (!path.empty()) return open_plugin(path);
  std::string tried;
  for (const std::filesystem::path& candidate : cpu_plugin_candidates()) {
    std::error_code ignored;
    if (std::filesystem::exists(candidate, ignored)) return open_plugin(candidate);
    tried += fmt::format("{}{}", tried.empty() ? "" : ", ", candidate.string());
  }
  return diagnostic("plugin-not-found",
                    fmt::format("the CPU device ({}) was not found; tried {}", kPluginFile, tried),
                    "build with -Dcpu_device=true, or point QUERN_CPU_PLUGIN at the file");
}

}  // namespace quern::driver
