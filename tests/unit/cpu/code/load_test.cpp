// SPDX-License-Identifier: Apache-2.0
// The loader, with handwritten machine code.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "cpu/code/load.hpp"

using namespace quern;
using namespace quern::cpu;

namespace {

int answer() { return 42; }
int question() { return 17; }

const cpu::Helper kHelpers[] = {{"question", reinterpret_cast<void*>(&question)},
                                {"answer", reinterpret_cast<void*>(&answer)}};

/// Offset 0: calls the stub at 32. Offset 16: returns the word at 64, a constant. The stub jumps to the first
/// helper.
LinkedCode code_by_hand() {
  constexpr unsigned char kCall[] = {0x48, 0x83, 0xec, 0x08, 0xe8, 23, 0, 0, 0, 0x48, 0x83, 0xc4, 0x08, 0xc3};
  constexpr unsigned char kLoad[] = {0x48, 0x8b, 0x05, 41, 0, 0, 0, 0xc3};  // 64 - 23
  constexpr unsigned char kStub[] = {0xff, 0x25, 90, 0, 0, 0};              // 128 - 38
  LinkedCode code;
  code.bytes.assign(128, '\0');
  std::memcpy(code.bytes.data(), kCall, sizeof kCall);
  std::memcpy(code.bytes.data() + 16, kLoad, sizeof kLoad);
  std::memcpy(code.bytes.data() + 32, kStub, sizeof kStub);
  code.text_bytes = 64;
  code.helpers = {"answer"};
  return code;
}

/// The protection of the mapping that contains `address`, according to /proc/self/maps; "" if there is none.
std::string protection_of(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    char* rest = nullptr;
    const std::uintptr_t from = std::strtoull(line.c_str(), &rest, 16);
    const std::uintptr_t to = std::strtoull(rest + 1, &rest, 16);
    if (from <= wanted && wanted < to) return std::string(rest + 1, 4);
  }
  return "";
}

}  // namespace

TEST_CASE("loaded code calls the helpers that it names") {
  const Expected<LoadedImage> loaded = map_code(code_by_hand(), kHelpers);
  REQUIRE(loaded);
  CHECK(loaded->text_end - loaded->text_begin == 64);
  CHECK(loaded->entry == loaded->text_begin);
  CHECK(reinterpret_cast<int (*)()>(loaded->entry)() == 42);
}

TEST_CASE("an address in the constants is one of the loaded code") {
  LinkedCode code = code_by_hand();
  code.entry = 16;
  code.addresses = {64};
  const std::uint64_t offset = 100;
  std::memcpy(code.bytes.data() + 64, &offset, sizeof offset);
  const Expected<LoadedImage> loaded = map_code(code, kHelpers);
  REQUIRE(loaded);
  CHECK(reinterpret_cast<const std::byte* (*)()>(loaded->entry)() == loaded->text_begin + 100);
}

TEST_CASE("loaded code can be executed and not written, and is unmapped with its last user") {
  Expected<LoadedImage> loaded = map_code(code_by_hand(), kHelpers);
  REQUIRE(loaded);
  const std::byte* const at = loaded->text_begin;
  CHECK(protection_of(at) == "r-xp");
  CHECK(protection_of(at + 128) == "r-xp");  // addresses of the helpers
  std::shared_ptr<void> other = loaded->memory;
  loaded->memory.reset();
  CHECK(reinterpret_cast<int (*)()>(loaded->entry)() == 42);
  other.reset();
  CHECK(protection_of(at) != "r-xp");
}

TEST_CASE("a helper that is not in the table is refused, and no symbol of the process is taken for it") {
  LinkedCode code = code_by_hand();
  code.helpers = {"abort"};
  const Expected<LoadedImage> loaded = map_code(code, kHelpers);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors()[0].code == "code-image");
  CHECK(loaded.errors()[0].message.find("'abort'") != std::string::npos);
}

TEST_CASE("memory that the system refuses is a lack of memory") {
  LinkedCode code = code_by_hand();
  code.bytes.resize(std::size_t{256} << 20);
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_AS, &before) == 0);
  rlimit narrow = before;  // enough for small allocations, including those of a sanitizer
  narrow.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (rlim_t{64} << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &narrow) == 0);
  const Expected<LoadedImage> loaded = map_code(code, kHelpers);
  REQUIRE(setrlimit(RLIMIT_AS, &before) == 0);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.errors()[0].code == "out-of-memory");
}
