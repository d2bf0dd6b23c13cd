// SPDX-License-Identifier: Apache-2.0
#include "driver/all_versions.hpp"
// The above declares every version, for what follows.
#if __has_include(<cudaProfilerTypedefs.h>)
#include <cudaProfilerTypedefs.h>
#else
using PFN_cuProfilerInitialize_v4000 = CUresult (*)(const char*, const char*, CUoutput_mode);
using PFN_cuProfilerStart_v4000 = CUresult (*)();
using PFN_cuProfilerStop_v4000 = CUresult (*)();
#endif
#include <cudaTypedefs.h>
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <type_traits>

#include "driver/function_facts.hpp"
#include "per_thread_names.hpp"

using namespace quern::driver;

namespace {

// NVIDIA's table of versions is the reference: the type with this name and version is the type of the slot.
#define QUERN_SAME_TYPE(symbol, name, since) \
  static_assert(std::is_same_v<PFN_##name##_v##since, decltype(&::symbol)>, #symbol);
// If a row has a variant for the per-thread default stream, it is declared with the same type.
#define QUERN_VARIANT_none(symbol)
#define QUERN_VARIANT_ptds(symbol) \
  static_assert(std::is_same_v<decltype(&::symbol##_ptds), decltype(&::symbol)>);
#define QUERN_VARIANT_ptsz(symbol) \
  static_assert(std::is_same_v<decltype(&::symbol##_ptsz), decltype(&::symbol)>);
#define QUERN_DRIVER_FUNCTION(symbol, name, since, per_thread, ...) \
  QUERN_SAME_TYPE(symbol, name, since) QUERN_VARIANT_##per_thread(symbol)
#define QUERN_DRIVER_CLIENT_FUNCTION(symbol, name, since, per_thread, ...) \
  QUERN_SAME_TYPE(symbol, name, since) QUERN_VARIANT_##per_thread(symbol)
#define QUERN_DRIVER_UNSUPPORTED(symbol, name, since, per_thread) \
  QUERN_SAME_TYPE(symbol, name, since) QUERN_VARIANT_##per_thread(symbol)
#include "driver/functions.def"

/// Nodes and conditions are destroyed with their graph.
bool is_of_graph(std::string_view name) {
  return name.starts_with("cuGraph") &&
         (name.find("Node") != std::string_view::npos || name.find("Handle") != std::string_view::npos);
}

/// cuMemAlloc..., but not cuMemGetAllocation..., in which it is part of a noun.
bool allocates(std::string_view name) {
  const std::size_t at = name.find("Alloc");
  return at != std::string_view::npos && !name.substr(at).starts_with("Allocation");
}

bool any_function(DriverObject FunctionFacts::* column, DriverObject object) {
  for (const FunctionFacts& function : kSurface)
    if (function.*column == object) return true;
  return false;
}

}  // namespace

TEST_CASE("a symbol is its name with a version or without, and has one row") {
  std::set<std::string_view> symbols;
  for (const FunctionFacts& function : kSurface) {
    CAPTURE(function.symbol);
    REQUIRE(function.symbol.starts_with(function.name));
    const std::string_view version = function.symbol.substr(function.name.size());
    CHECK((version.empty() || (version.size() == 3 && version.starts_with("_v"))));
    CHECK(symbols.insert(function.symbol).second);
  }
  for (const FunctionFacts& function : kFunctions) CHECK(find_function(function.symbol) == &function);
  CHECK(find_function("cuNoSuchFunction") == nullptr);
  CHECK(facts_of(FunctionRow::cuStreamDestroy_v2).symbol == "cuStreamDestroy_v2");
}

TEST_CASE("a client gets the latest version of a function that is not later than the client") {
  const auto symbol_of = [](std::string_view name, int version) {
    const FunctionFacts* const found = find_version(name, version).function;
    return found != nullptr ? found->symbol : std::string_view();
  };
  CHECK(symbol_of("cuCtxCreate", 2000) == "cuCtxCreate");
  CHECK(symbol_of("cuCtxCreate", 11030) == "cuCtxCreate_v2");
  CHECK(symbol_of("cuCtxCreate", 12040) == "cuCtxCreate_v3");
  CHECK(symbol_of("cuCtxCreate", 13050) == "cuCtxCreate_v4");
  CHECK(symbol_of("cuCtxGetDevice", 12080) == "cuCtxGetDevice");
  CHECK(symbol_of("cuCtxGetDevice", 13000) == "cuCtxGetDevice_v2");
  CHECK(symbol_of("cuMemAlloc_v2", 2000) == "cuMemAlloc_v2");
  CHECK(symbol_of("cuLibraryLoadData", 11080).empty());
  CHECK(find_version("cuLibraryLoadData", 11080).name_known);
  CHECK_FALSE(find_version("cuNoSuchFunction", 13000).name_known);
}

TEST_CASE("the per-thread variants are those that cuda.h chooses for the per-thread default stream") {
  int compared = 0;
  for (const FunctionFacts& function : kSurface) {
    if (function.name == "cuGetProcAddress")
      continue;  // cuda.h wraps it in a separate function that sets the flag
    const std::string_view chosen = quern::test::per_thread_name(function.name);
    const bool has_suffix = chosen.ends_with("_ptds") || chosen.ends_with("_ptsz");
    const std::string_view symbol = has_suffix ? chosen.substr(0, chosen.size() - 5) : chosen;
    if (symbol != function.symbol) continue;  // an older version, which cuda.h does not declare
    ++compared;
    CAPTURE(function.symbol);
    std::string expected(function.symbol);
    if (function.per_thread == PerThread::ptds) expected += "_ptds";
    if (function.per_thread == PerThread::ptsz) expected += "_ptsz";
    CHECK(chosen == expected);
  }
  CHECK(compared > 400);
}

TEST_CASE("each kind of object that a function creates has a function that releases it, and the reverse") {
  for (int kind = 1; kind <= static_cast<int>(DriverObject::current); ++kind) {
    const auto object = static_cast<DriverObject>(kind);
    CAPTURE(to_string(object));
    CHECK(any_function(&FunctionFacts::creates, object));
    CHECK(any_function(&FunctionFacts::releases, object));
  }
  for (const FunctionFacts& function : kSurface) {
    if (function.support == Support::none) continue;
    CAPTURE(function.symbol);
    CHECK((function.creates == DriverObject::none || function.releases == DriverObject::none));
    // A function whose name in cuda.h says that it creates or releases has that in its row.
    const bool creates = function.name.find("Create") != std::string_view::npos || allocates(function.name);
    const bool releases = function.name.find("Destroy") != std::string_view::npos ||
                          function.name.find("Free") != std::string_view::npos ||
                          function.name.find("Unload") != std::string_view::npos;
    if (is_of_graph(function.name)) continue;
    if (creates) CHECK(function.creates != DriverObject::none);
    if (releases) CHECK(function.releases != DriverObject::none);
  }
}
