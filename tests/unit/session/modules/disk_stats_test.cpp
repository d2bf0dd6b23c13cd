// SPDX-License-Identifier: Apache-2.0
// Counts of the disk cache. The test's environment selects its folder.
#include <doctest/doctest.h>
#include <quern/quern.h>
#include <quern/quern.hpp>

#include <cstdlib>
#include <filesystem>
#include <string>

using namespace quern;

namespace {

/// Called before anything uses the store, which the first request opens.
const std::string& folder() {
  static const std::string made = [] {
    std::string name = (std::filesystem::temp_directory_path() / "quern-stats-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    ::setenv("QUERN_CACHE", "1", 1);
    ::setenv("QUERN_CACHE_DIR", name.c_str(), 1);
    return name;
  }();
  return made;
}

struct Cleanup {
  ~Cleanup() { std::filesystem::remove_all(folder()); }
};

}  // namespace

TEST_CASE("hits and writes on disk are counted for the process and for its requests") {
  const std::string directory = folder();
  const Cleanup cleanup;
  CompileRequest request;
  request.source = "extern \"C\" __global__ void counted(int* x) { *x = 11; }";
  if (!try_compile_source(request).has_value()) {
    MESSAGE("SKIPPED: no NVRTC on this machine");
    return;
  }
  const CompileCacheStats first = compile_cache_stats();
  REQUIRE(first.disk.has_value());
  CHECK(first.disk->directory.find(directory) == 0);
  CHECK_FALSE(first.disk->read_only);
  CHECK(first.disk->max_bytes == std::uint64_t{1} << 30);
  CHECK(first.disk->writes >= 1);
  CHECK(first.compiles.nvrtc_runs == 1);
  CHECK(first.compiles.disk_hits == 0);
  clear_compile_cache();
  CHECK(try_compile_source(request).has_value());
  const CompileCacheStats second = compile_cache_stats();
  CHECK(second.compiles.nvrtc_runs == 1);
  CHECK(second.compiles.disk_hits == 1);
  CHECK(second.disk->hits > first.disk->hits);
  QuernCacheStats in_c{};
  in_c.struct_bytes = sizeof in_c;
  REQUIRE(quern_compile_cache_stats(QUERN_CACHE_DISK, &in_c) == QUERN_OK);
  CHECK(in_c.hits == second.disk->hits);
  CHECK(in_c.misses == second.disk->misses);
  CHECK(in_c.writes == second.disk->writes);
  CHECK(in_c.max_bytes == second.disk->max_bytes);
  QuernCompileStats process{};
  process.struct_bytes = sizeof process;
  REQUIRE(quern_compile_stats(&process) == QUERN_OK);
  CHECK(process.disk_hits == 1);
}
