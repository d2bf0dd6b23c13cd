// SPDX-License-Identifier: Apache-2.0
// Loads driver tables: the system's libcuda.so.1, or the CPU device plug-in. Opened, never linked.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/dynamic_library.hpp"
#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "quern/expected.hpp"

namespace quern::driver {

/// A driver library and the table of its functions. The table's pointers live as long as the library stays
/// open. Move-only.
struct LoadedDriver {
  base::DynamicLibrary library;
  DriverTable table;
};

inline constexpr const char* kSystemDriver = "libcuda.so.1";

/// The system's driver, searched by the loader, or the file that QUERN_LIBCUDA names. Missing functions
/// return CUDA_ERROR_NOT_SUPPORTED. Errors: "library-not-loaded", "too-many-files" (no file descriptor is
/// left), "driver-incomplete" (not a driver), "driver-is-quern" (our own stand-alone libcuda.so.1, which
/// would be taken for a GPU; QUERN_LIBCUDA may name it).
Expected<LoadedDriver> load_libcuda(const std::string& name = kSystemDriver);

/// The embedded CPU device: its struct (owned by the library) and its table.
struct LoadedPlugin {
  base::DynamicLibrary library;
  const QuernCpuPlugin* plugin = nullptr;
  DriverTable table;
};

/// Opens the plug-in at `path`, or, without one, at a location of cpu_plugin_candidates(). Errors:
/// "plugin-not-found" (names every location), "library-not-loaded", "too-many-files", "plugin-mismatch"
/// (another version).
Expected<LoadedPlugin> load_cpu_plugin(const std::filesystem::path& path = {});

/// The locations where the plug-in is searched, in this order: the file that QUERN_CPU_PLUGIN names (then
/// nowhere else); beside the library or program that this code is part of, in its quern/ folder and as
/// installed (bin -> lib); the build folder above it, for uninstalled use.
std::vector<std::filesystem::path> cpu_plugin_candidates();

}  // namespace quern::driver
