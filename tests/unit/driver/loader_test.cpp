// SPDX-License-Identifier: Apache-2.0
#include "driver/loader.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <fstream>

using namespace quern;

namespace {
std::string in_test_dir(const char* name) { return std::string(QUERN_TEST_DIR) + "/" + name; }
}  // namespace

TEST_CASE("a table without a driver answers NOT_SUPPORTED in every slot") {
  const driver::DriverTable table = driver::unsupported_table();
#define QUERN_DRIVER_FUNCTION(name, ...) CHECK_MESSAGE((table.name != nullptr), #name);
#include "driver/functions.def"
  CHECK(table.cuInit(0) == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(table.cuMemFree_v2(16) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("functions that a driver lacks answer NOT_SUPPORTED and the others are its own") {
  const auto loaded = driver::load_libcuda(in_test_dir("libfake_old_driver.so"));
  REQUIRE(loaded);
  int version = 0;
  CHECK(loaded->table.cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version == 4020);
  CUdeviceptr pointer = 0;
  CHECK(loaded->table.cuMemAlloc_v2(&pointer, 16) == CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("our own stand-alone libcuda is recognised and refused as a GPU driver") {
  const auto loaded = driver::load_libcuda(in_test_dir("libfake_own_driver.so"));
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors().front().code == "driver-is-quern");
  CHECK(loaded.errors().front().message.find("libfake_own_driver.so") != std::string::npos);
  CHECK_FALSE(loaded.errors().front().hint.empty());
}

TEST_CASE("the file that QUERN_LIBCUDA names is the system's driver, even our own") {
  setenv("QUERN_LIBCUDA", in_test_dir("libfake_own_driver.so").c_str(), 1);
  CHECK(driver::load_libcuda());
  setenv("QUERN_LIBCUDA", in_test_dir("libnothing.so").c_str(), 1);
  const auto missing = driver::load_libcuda();
  unsetenv("QUERN_LIBCUDA");
  REQUIRE_FALSE(missing);
  CHECK(missing.errors().front().message.find("libnothing.so") != std::string::npos);
  CHECK(missing.errors().front().hint.find("QUERN_LIBCUDA") != std::string::npos);
}

TEST_CASE("a file that is no CPU device is refused, with what to do") {
  const std::string file = in_test_dir("no_library.so");
  std::ofstream(file) << std::string(1000, '-');
  const auto loaded = driver::load_cpu_plugin(file);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors().front().message.find("invalid ELF header") != std::string::npos);
  CHECK(loaded.errors().front().hint.find("install quern anew") != std::string::npos);
  setenv("QUERN_CPU_PLUGIN", file.c_str(), 1);
  const auto named = driver::load_cpu_plugin();
  unsetenv("QUERN_CPU_PLUGIN");
  REQUIRE_FALSE(named);
  CHECK(named.errors().front().hint.find("QUERN_CPU_PLUGIN") != std::string::npos);
}

TEST_CASE("without a file descriptor the error is about that, not about the installation") {
  rlimit limit{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  const rlimit none{3, limit.rlim_max};
  REQUIRE(setrlimit(RLIMIT_NOFILE, &none) == 0);
  const auto plugin = driver::load_cpu_plugin(in_test_dir("no_library.so"));
  const auto gpu = driver::load_libcuda(in_test_dir("libfake_own_driver.so"));
  REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  REQUIRE_FALSE(plugin);
  REQUIRE_FALSE(gpu);
  for (const Diagnostic& error : {plugin.errors().front(), gpu.errors().front()}) {
    CHECK(error.code == "too-many-files");
    CHECK(error.message.find("the process can open no more files") != std::string::npos);
    CHECK(error.hint.find("ulimit -n") != std::string::npos);
  }
}

TEST_CASE("a library that is no driver is refused") {
  const auto loaded = driver::load_libcuda(in_test_dir("libfake_no_driver.so"));
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors().front().code == "driver-incomplete");
}

TEST_CASE("a missing driver is an error that names the library and says what to do") {
  const auto loaded = driver::load_libcuda("libquern-does-not-exist.so.1");
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors().front().code == "library-not-loaded");
  CHECK(loaded.errors().front().message.find("libquern-does-not-exist.so.1") != std::string::npos);
  CHECK_FALSE(loaded.errors().front().hint.empty());
}

TEST_CASE("a plug-in of another version is refused") {
  const auto loaded = driver::load_cpu_plugin(in_test_dir("libfake_own_driver.so"));
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors().front().code == "plugin-mismatch");
}

TEST_CASE("QUERN_CPU_PLUGIN is the only place looked at where it is set") {
  ::setenv("QUERN_CPU_PLUGIN", "/nowhere/libquern-cpu.so", 1);
  const auto candidates = driver::cpu_plugin_candidates();
  const auto loaded = driver::load_cpu_plugin();
  ::unsetenv("QUERN_CPU_PLUGIN");
  REQUIRE(candidates.size() == 1);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors().front().code == "plugin-not-found");
  CHECK(loaded.errors().front().message.find("/nowhere/libquern-cpu.so") != std::string::npos);
}

TEST_CASE("without the variable the plug-in is looked for relative to this program") {
  const auto candidates = driver::cpu_plugin_candidates();
  REQUIRE(candidates.size() > 2);
  for (const auto& candidate : candidates) CHECK(candidate.is_absolute());
  CHECK(candidates.front() == std::filesystem::path(in_test_dir("quern/libquern-cpu.so")));
}
