// SPDX-License-Identifier: Apache-2.0
#include "compile/shared_compiler.hpp"

#include <doctest/doctest.h>

#include <set>
#include <thread>

#include "toolkit.hpp"

using namespace quern;
using compile::shared_compiler;

TEST_SUITE_BEGIN("shared compiler");

TEST_CASE("one environment has one compiler, whichever threads ask first, and another one another") {
  compile::SearchEnvironment environment = compile::search_environment();
  environment["CUDA_HOME"] = "/nonexistent/of-this-test";
  std::vector<std::shared_ptr<compile::Compiler>> found(8);
  std::vector<std::thread> threads;
  for (auto& each : found) threads.emplace_back([&] { each = shared_compiler(environment); });
  for (std::thread& thread : threads) thread.join();
  CHECK(std::set(found.begin(), found.end()).size() == 1);
  CHECK(shared_compiler(environment) == found[0]);
  environment["CUDA_HOME"] = "/nonexistent/another-of-this-test";
  CHECK(shared_compiler(environment) != found[0]);
}

TEST_CASE("a compiler that found no NVRTC is not given again") {
  compile::SearchEnvironment environment = compile::search_environment();
  environment["QUERN_NVRTC"] = "/nonexistent/libnvrtc.so";
  const std::shared_ptr<compile::Compiler> lacking = shared_compiler(environment);
  CHECK_FALSE(lacking->lacks_nvrtc());  // nothing has searched for it yet
  CHECK_FALSE(lacking->compile(test::cuda("__global__ void k() {}")).has_value());
  CHECK(lacking->lacks_nvrtc());
  CHECK(shared_compiler(environment) != lacking);
}

TEST_CASE("compilers have one cache, whose entries are told apart by NVRTC, and which is bounded at once") {
  if (!test::have_nvrtc()) return;
  const std::shared_ptr<compile::Compiler> compiler = shared_compiler();
  const auto before = compile::shared_cache_stats();
  REQUIRE(compiler->compile(test::cuda("__global__ void of_the_shared_cache() {}")));
  CHECK(compile::shared_cache_stats().entry_count == before.entry_count + 1);
  compile::set_shared_cache_bytes(1);
  CHECK(compile::shared_cache_stats().entry_count == 0);
  CHECK(compile::shared_cache_stats().size_bytes == 0);
  compile::set_shared_cache_bytes(before.max_bytes);
}

TEST_SUITE_END();
