// SPDX-License-Identifier: Apache-2.0
#include "driver/function_facts.hpp"

#include <cudaTypedefs.h>
#include <doctest/doctest.h>

#include <string>
#include <type_traits>

#include "per_thread_names.hpp"

using namespace quern::driver;

namespace {

// NVIDIA's table of versions is the witness: a type of this name and version is that of the slot.
#define QUERN_DRIVER_FUNCTION(symbol, name, since, ...) \
  static_assert(std::is_same_v<PFN_##name##_v##since, decltype(&::symbol)>, #symbol);
#include "driver/functions.def"

bool any_function(DriverObject FunctionFacts::* column, DriverObject object) {
  for (const FunctionFacts& function : kFunctions)
    if (function.*column == object) return true;
  return false;
}

}  // namespace

TEST_CASE("a symbol is its name with a version or without, and each name has one row") {
  for (const FunctionFacts& function : kFunctions) {
    CAPTURE(function.symbol);
    REQUIRE(function.symbol.starts_with(function.name));
    const std::string_view version = function.symbol.substr(function.name.size());
    CHECK((version.empty() || (version.size() == 3 && version.starts_with("_v"))));
    int rows = 0;
    for (const FunctionFacts& other : kFunctions) rows += other.name == function.name;
    CHECK(rows == 1);
    CHECK(find_function(function.symbol) == &function);
  }
  CHECK(find_function("cuNoSuchFunction") == nullptr);
  CHECK(facts_of(FunctionRow::cuStreamDestroy_v2).symbol == "cuStreamDestroy_v2");
}

TEST_CASE("the per-thread variants are those that cuda.h chooses for the per-thread default stream") {
  for (const FunctionFacts& function : kFunctions) {
    if (function.name == "cuGetProcAddress")
      continue;  // cuda.h wraps it to set the flag, in a function of its own
    std::string expected(function.symbol);
    if (function.per_thread == PerThread::ptds) expected += "_ptds";
    if (function.per_thread == PerThread::ptsz) expected += "_ptsz";
    CHECK(quern::test::per_thread_name(function.name) == expected);
  }
}

TEST_CASE("each kind of object that a function creates has a function that releases it, and the reverse") {
  for (int kind = 1; kind <= static_cast<int>(DriverObject::current); ++kind) {
    const auto object = static_cast<DriverObject>(kind);
    CAPTURE(to_string(object));
    CHECK(any_function(&FunctionFacts::creates, object));
    CHECK(any_function(&FunctionFacts::releases, object));
  }
  for (const FunctionFacts& function : kFunctions) {
    CAPTURE(function.symbol);
    CHECK((function.creates == DriverObject::none || function.releases == DriverObject::none));
    // A function that cuda.h names after creating or releasing says so in its row.
    const bool creates = function.name.find("Create") != std::string_view::npos ||
                         function.name.find("Alloc") != std::string_view::npos;
    const bool releases = function.name.find("Destroy") != std::string_view::npos ||
                          function.name.find("Free") != std::string_view::npos ||
                          function.name.find("Unload") != std::string_view::npos;
    if (creates) CHECK(function.creates != DriverObject::none);
    if (releases) CHECK(function.releases != DriverObject::none);
  }
}
