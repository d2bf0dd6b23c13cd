// SPDX-License-Identifier: Apache-2.0
// The component's interface: KernelRequest -> PtxImage.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/progress.hpp"
#include "cache/bundle.hpp"
#include "cache/disk_store.hpp"
#include "cache/memory_cache.hpp"
#include "compile/precompiled.hpp"
#include "compile/remote_compiler.hpp"
#include "compile/toolkit/search_locations.hpp"
#include "quern/compile_stats.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The result of the search for NVRTC and the toolkit's headers; for `quern doctor` and `quern devices`.
struct ToolkitReport {
  bool found = false;  ///< an NVRTC is open
  std::string nvrtc_path;
  std::string nvrtc_version;                     ///< "13.0"
  std::vector<std::uint32_t> architectures;      ///< virtual architectures it compiles for, ascending
  std::vector<std::string> include_directories;  ///< the toolkit's; empty if none were found
  std::string headers_version;                   ///< "13.0"; empty if not known
  std::vector<Candidate> nvrtc_candidates;       ///< every location that was searched, in order
  std::vector<Candidate> header_candidates;
  Diagnostic missing;  ///< where !found: what to tell the user
};

using ImageCache = cache::MemoryCache<abi::PtxImage>;
constexpr std::uint64_t kDefaultCacheBytes = std::uint64_t{256} << 20;
std::shared_ptr<ImageCache> make_image_cache(std::uint64_t max_bytes = kDefaultCacheBytes);

struct CompilerOptions {
  SearchEnvironment environment = search_environment();
  std::optional<SearchInputs> around;  ///< if absent, surroundings(environment) when NVRTC is searched for
  /// Keeps compilations for later processes; null if they are not kept. Must outlive the compiler.
  cache::DiskStore* store = cache::process_store();
  std::shared_ptr<ImageCache> images = make_image_cache();  ///< may serve several compilers
  /// Are asked before the store; must outlive the compiler.
  std::span<cache::Bundle* const> bundles = cache::process_bundles();
  /// Bundles of another toolkit than the one here count too (QUERN_CACHE_BUNDLE_TOOLKIT=any).
  bool any_bundle_toolkit = cache::takes_any_bundle_toolkit();
  /// Is asked before NVRTC if the image is neither in memory nor on disk. May be null.
  std::shared_ptr<RemoteCompiler> remote = nullptr;
  /// Precompiled headers that NVRTC may use; null if there is none.
  std::shared_ptr<PrecompiledHeaders> precompiled = nullptr;
};

/// Counts the requests of one user of a compiler. Thread-safe.
class CompileCounters {
 public:
  CompileStats read() const noexcept {
    return {translations, nvrtc_runs, cache_hits, disk_hits, remote_compiles, bundle_hits};
  }

  std::atomic<std::uint64_t> translations{0};
  std::atomic<std::uint64_t> nvrtc_runs{0};
  std::atomic<std::uint64_t> cache_hits{0};
  std::atomic<std::uint64_t> disk_hits{0};
  std::atomic<std::uint64_t> remote_compiles{0};
  std::atomic<std::uint64_t> bundle_hits{0};
};

/// The one that asks for a compilation: it receives the progress and the counts. Either may be null.
struct Requester {
  base::ProgressSlot* progress = nullptr;
  CompileCounters* counters = nullptr;
};

/// Calls `work` unless this process is exiting, or is a child that was forked while another thread compiled:
/// the caches' locks may be held by threads that are gone. The diagnostic says then that what was
/// `attempted`, "save x.cu", cannot be done.
Expected<void> within_gate(const std::string& attempted, const std::function<void()>& work);

/// The disk tier's view of a request.
struct RequestKey {
  std::string unsure;  ///< the reason why it is compiled each time, without a key; empty if it has a key
  std::string key;     ///< in hexadecimal digits
  std::vector<std::pair<std::string, std::string>> components;
};

/// The parts of a request that a bundle is to hold.
struct BundledImage {
  std::shared_ptr<const abi::PtxImage> image;
  cache::BundleEntry entry;
};

/// Compiles kernel source to PTX. NVRTC is searched for and opened by the first request that needs it. Equal
/// requests are compiled once (memory cache, single flight). Thread-safe; holds no lock while NVRTC runs.
class Compiler {
 public:
  using Image = std::shared_ptr<const abi::PtxImage>;

  explicit Compiler(CompilerOptions options = {});
  ~Compiler();
  Compiler(const Compiler&) = delete;
  Compiler& operator=(const Compiler&) = delete;

  /// Compiles CUDA C++ with NVRTC; passes PTX through; translates Kernel Python to CUDA C++ first. Errors are
  /// NVRTC's own, with the author's file, line and column; warnings are returned with the image. If
  /// `request.target.sm` is set and NVRTC knows that architecture, the image also holds machine code;
  /// otherwise a warning in the log says so and the image holds only PTX. `requester` is told of the work and
  /// may cancel it: diagnostic "cancelled". Another thread that waited for the same source then compiles it.
  Expected<Image> compile(const abi::KernelRequest& request, const Requester& requester = {});

  /// The key of what compile() would give to NVRTC. PTX has none.
  Expected<RequestKey> key_of(const abi::KernelRequest& request);

  /// Has NVRTC write the precompiled header of a source of #include lines to `file`, which this process and
  /// its children may add to CompilerOptions::precompiled under the key that is returned.
  Expected<base::Digest> precompile(const abi::KernelRequest& request, const std::string& file);
  /// Compiles a request for a bundle (compile/bundle_image.hpp); `name` stands for the source's file in it.
  /// Errors: the compiler's; code "not-remote" for sources that bundles cannot hold.
  Expected<BundledImage> compile_for_bundle(abi::KernelRequest request, const std::string& name);
  /// The key under which that bundle would have the request's PTX. With an NVRTC here whose code bundles must
  /// have, the key is of its toolkit. Fails if the bundle is refused.
  Expected<RequestKey> key_in_bundle(abi::KernelRequest request, cache::Bundle& bundle);
  /// The toolkit here; reads its headers. Errors: there is no NVRTC, or it is not identified.
  Expected<ToolkitContents> toolkit_contents();

  ToolkitReport toolkit();
  /// True if NVRTC was searched for and not found. It is not searched for again.
  bool lacks_nvrtc() const noexcept;
  cache::CacheStats cache_stats() const;
  CompileStats stats() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::compile
