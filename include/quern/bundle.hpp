// SPDX-License-Identifier: Apache-2.0
// component: session
// Bundles: files that hold the compiled kernels of a program, so that it starts without compiling.
// docs/caching.md describes them for users. A process reads the bundles that QUERN_CACHE_BUNDLES names when
// it first compiles something. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "quern/diagnostic.hpp"
#include "quern/disk_cache.hpp"
#include "quern/export.hpp"
#include "quern/launch_config.hpp"
#include "quern/module.hpp"

namespace quern {

/// The argument types of a Kernel Python kernel whose decorator gives none.
struct BundleSignature {
  std::string kernel;  ///< "saxpy", or "basics/saxpy.py::saxpy"
  std::string types;   ///< "float32, float32[::1]"
};

struct BundleOptions {
  /// "cpu" (every instruction set), "cpu:baseline", "cpu:avx2", "cpu:avx512"; "compute_89" for PTX, "sm_90"
  /// for machine code of a GPU, with PTX beside it.
  std::vector<std::string> targets = {"cpu"};
  /// The block shapes of the CPU device's machine code, for kernels that do not fix theirs.
  std::vector<Dim3> blocks = {};
  std::vector<BundleSignature> signatures = {};
  /// Options of all sources, as a program gives them when it loads the sources.
  LoadOptions load = {};
  /// The file of keys, whose first signs the bundle; empty: it is not signed.
  std::filesystem::path key_file = {};
  /// Threads that compile; 0: one per processor.
  unsigned thread_count = 0;
};

/// A source, or one of its kernels, that is missing from a bundle or incomplete in it.
struct BundleProblem {
  std::string file;    ///< below the folder; of warm_disk_cache() with its path
  std::string kernel;  ///< may be empty: all
  std::string reason;
  Diagnostics messages;  ///< the compiler's, where it does not compile
};

struct BundleReport {
  std::size_t file_count = 0;          ///< .cu and .py files below the folder
  std::size_t compiled_count = 0;      ///< modules that were compiled: one per file, kernel and architecture
  std::vector<BundleProblem> failed;   ///< sources with errors, targets that cannot be compiled for
  std::vector<BundleProblem> skipped;  ///< kernels that need more options, sources that no bundle can hold
  std::size_t entry_count = 0;
  std::uint64_t size_bytes = 0;
};

/// Compiles the `.cu` and `.py` files below `folder` and writes the bundle `file`, as a whole or not at all;
/// only its owner may write to it. No device is needed. The bundle has the other files if some fail or are
/// skipped. Equal sources, options, toolkit and quern give equal bytes. Throws Error(io, usage, not_found),
/// and writes nothing, for a folder or a key file that cannot be read, without NVRTC, and for an unknown
/// target.
QUERN_API BundleReport make_bundle(const std::filesystem::path& folder, const std::filesystem::path& file,
                                   const BundleOptions& options = {});

/// Compiles the same files for the same architectures into the compile cache on disk, under their paths; it
/// makes no machine code of the CPU device. If that cache is off, the results are lost. Throws as
/// make_bundle() does.
QUERN_API BundleReport warm_disk_cache(const std::filesystem::path& folder,
                                       const BundleOptions& options = {});

struct BundleInfo {
  bool is_signed = false;
  std::uint64_t entry_count = 0;
  std::uint64_t size_bytes = 0;
};

/// These functions read a bundle as a program does. `key_file` may be empty. They throw Error(io) for files
/// that are refused.
QUERN_API BundleInfo bundle_info(const std::filesystem::path& file,
                                 const std::filesystem::path& key_file = {});
/// Ordered by kind and key; times are 0.
QUERN_API std::vector<CacheEntry> bundle_entries(const std::filesystem::path& file,
                                                 const std::filesystem::path& key_file = {});
struct BundleVerification {
  std::size_t checked_count = 0;
  std::vector<std::string> damaged;  ///< kinds and keys
};
/// Reads every entry.
QUERN_API BundleVerification verify_bundle(const std::filesystem::path& file,
                                           const std::filesystem::path& key_file = {});

/// A bundle of QUERN_CACHE_BUNDLES.
struct NamedBundle {
  std::string file;
  std::string refusal;  ///< why it is not used; empty if it is used
  BundleInfo info;
};
/// The bundles that the environment names now.
QUERN_API std::vector<NamedBundle> named_bundles();

/// A bundle of QUERN_CACHE_BUNDLES that is used, and a kernel file in it.
struct BundleExplanation {
  std::string bundle;
  bool is_held = false;          ///< it answers the request
  CacheExplanation explanation;  ///< `uncached_reason`: why no bundle can hold the source
};
/// As explain_compile(), for PTX in each bundle. Throws CompileError.
QUERN_API std::vector<BundleExplanation> explain_bundles(const std::filesystem::path& file,
                                                         const StageOptions& options = {});

}  // namespace quern
