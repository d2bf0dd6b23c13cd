// SPDX-License-Identifier: Apache-2.0
// Lists of kernels as bytes, and the build-id that is part of the keys of stored data.
#include <doctest/doctest.h>

#include <array>
#include <cstdio>
#include <functional>
#include <random>
#include <string>

#include "cpu/code/build_id.hpp"
#include "cpu/code/kernel_info.hpp"

using namespace quern;
using namespace quern::cpu;

namespace {

std::vector<KernelInfo> two_kernels() {
  return {{.name = "scale",
           .params = {{.offset = 0, .size = 8, .align = 8}, {.offset = 8, .size = 4, .align = 4}},
           .param_bytes = 12,
           .static_shared_bytes = 1024,
           .local_bytes = 16,
           .const_bytes = 64,
           .max_threads = 256,
           .register_count = 20},
          {.name = "none", .params = {}, .max_threads = 1024, .register_count = 16}};
}

void check_refused(const std::function<void(KernelInfo&)>& change) {
  std::vector<KernelInfo> kernels = two_kernels();
  change(kernels[0]);
  CHECK_FALSE(read_kernels(write_kernels(kernels)));
}

/// The build-id, as binutils reads it.
std::string build_id_of_this_program() {
  FILE* const output = ::popen("readelf -n /proc/$PPID/exe | sed -n 's/.*Build ID: //p'", "r");
  std::array<char, 200> line{};
  const bool there = output != nullptr && std::fgets(line.data(), line.size(), output) != nullptr;
  if (output != nullptr) ::pclose(output);
  std::string id = there ? line.data() : "";
  while (!id.empty() && id.back() == '\n') id.pop_back();
  return id;
}

}  // namespace

TEST_CASE("a list of kernels that was written is read with all its fields") {
  const std::vector<KernelInfo> given = two_kernels();
  const Expected<std::vector<KernelInfo>> read = read_kernels(write_kernels(given));
  REQUIRE(read);
  REQUIRE(read->size() == given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const KernelInfo &a = (*read)[i], &b = given[i];
    CHECK(a.name == b.name);
    REQUIRE(a.params.size() == b.params.size());
    for (std::size_t p = 0; p < a.params.size(); ++p) {
      CHECK(a.params[p].offset == b.params[p].offset);
      CHECK(a.params[p].size == b.params[p].size);
      CHECK(a.params[p].align == b.params[p].align);
    }
    CHECK(a.param_bytes == b.param_bytes);
    CHECK(a.static_shared_bytes == b.static_shared_bytes);
    CHECK(a.local_bytes == b.local_bytes);
    CHECK(a.const_bytes == b.const_bytes);
    CHECK(a.max_threads == b.max_threads);
    CHECK(a.register_count == b.register_count);
  }
}

TEST_CASE("truncated and changed lists of kernels are refused or sound") {
  const std::string bytes = write_kernels(two_kernels());
  for (std::size_t size = 0; size < bytes.size(); ++size)
    CHECK_FALSE(read_kernels(std::string_view(bytes).substr(0, size)));
  CHECK_FALSE(read_kernels(bytes + '\0'));
  std::mt19937 random(7);
  for (int round = 0; round < 10000; ++round) {
    std::string changed = bytes;
    for (unsigned i = 0; i <= random() % 4; ++i)
      changed[random() % changed.size()] = static_cast<char>(random());
    const Expected<std::vector<KernelInfo>> read = read_kernels(changed);
    if (!read) continue;
    for (const KernelInfo& info : *read)
      for (const ir::Parameter& parameter : info.params)
        REQUIRE(std::uint64_t{parameter.offset} + parameter.size <= info.param_bytes);
  }
}

TEST_CASE("facts that no kernel can have are refused") {
  check_refused([](KernelInfo& info) { info.param_bytes = 8; });
  check_refused([](KernelInfo& info) { info.params[1].offset = 0xfffffff0u; });
  check_refused([](KernelInfo& info) { info.max_threads = 1025; });
  check_refused([](KernelInfo& info) { info.max_threads = 0; });
  check_refused([](KernelInfo& info) { info.register_count = 256; });
  check_refused([](KernelInfo& info) { info.local_bytes = std::uint64_t{1} << 40; });
}

TEST_CASE("a program knows the build-id that its linker gave it") {
  const std::string id = own_build_id();
  CHECK(id.size() >= 32);
  CHECK(id == build_id_of_this_program());
}
