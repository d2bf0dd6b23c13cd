// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/printf_format.hpp"

#include <doctest/doctest.h>
#include <stdio_ext.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "cpu/engine/output.hpp"

using namespace quern::cpu::engine;

namespace {

/// Packs arguments as a kernel does: each at its natural alignment.
class Arguments {
 public:
  template <class T>
  Arguments& add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  /// Formats; addresses are offsets in the buffer plus 0x1000.
  std::optional<Formatted> format(const char* text) const {
    const DeviceReader reader{
        [this](std::uint64_t address, std::uint32_t size) -> std::optional<std::uint64_t> {
          if (address < 0x1000 || address - 0x1000 + size > bytes_.size()) return std::nullopt;
          std::uint64_t bits = 0;
          std::memcpy(&bits, bytes_.data() + (address - 0x1000), size);
          return bits;
        },
        [](std::uint64_t address) -> std::optional<std::string> {
          if (address != 0x77) return std::nullopt;
          return "device text";
        },
    };
    return format_printf(text, 0x1000, reader);
  }

 private:
  std::vector<std::byte> bytes_;
};

/// The text that the host's printf produces.
template <class... Args>
std::string expected(const char* format, Args... args) {
  char buffer[512];
  std::snprintf(buffer, sizeof buffer, format, args...);
  return buffer;
}

}  // namespace

TEST_CASE("printf takes arguments at their natural alignment and formats them as the host does") {
  const auto result =
      Arguments().add<int>(-5).add<long long>(1LL << 40).add<int>('x').add<double>(2.5).format(
          "%d %lld %c %5.2f|");
  REQUIRE(result);
  CHECK(result->text == expected("%d %lld %c %5.2f|", -5, 1LL << 40, 'x', 2.5));
  CHECK(result->argument_count == 4);
}

TEST_CASE("printf knows flags, width, precision and stars") {
  const auto result =
      Arguments().add<int>(42).add<int>(8).add<int>(3).add<double>(3.14159).add<unsigned>(255).format(
          "%-8d|%+*.*e|%#010x");
  REQUIRE(result);
  CHECK(result->text == expected("%-8d|%+*.*e|%#010x", 42, 8, 3, 3.14159, 255u));
}

TEST_CASE("printf knows sizes, pointers, strings and percent signs") {
  const auto result = Arguments()
                          .add<long long>(-1)
                          .add<unsigned>(70000)
                          .add<void*>(reinterpret_cast<void*>(0xabcd))
                          .add<std::uint64_t>(0x77)
                          .format("%lu %hu %p %s %% %zu");
  REQUIRE_FALSE(result);  // one argument too few: its address cannot be read
  const auto good = Arguments()
                        .add<long long>(-1)
                        .add<unsigned>(70000)
                        .add<void*>(reinterpret_cast<void*>(0xabcd))
                        .add<std::uint64_t>(0x77)
                        .format("%lu %hu %p %.6s %%");
  REQUIRE(good);
  CHECK(good->text == expected("%lu %hu %p %.6s %%", ~0UL, static_cast<unsigned short>(70000),
                               reinterpret_cast<void*>(0xabcd), "device text"));
}

TEST_CASE("printf prints what is no conversion as it stands, and a null string as (null)") {
  const auto result = Arguments().add<std::uint64_t>(0).format("%y %s");
  REQUIRE(result);
  CHECK(result->text == "%y (null)");
}

TEST_CASE("printf refuses a string that the kernel may not read") {
  CHECK_FALSE(Arguments().add<std::uint64_t>(0x1234).format("%s"));
}

TEST_CASE("output beyond the limit of file sizes is lost, and no signal is raised") {
  std::fflush(stdout);
  const int kept = ::dup(STDOUT_FILENO), file = ::memfd_create("stdout", MFD_CLOEXEC);
  REQUIRE(::dup2(file, STDOUT_FILENO) >= 0);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit limit = before;
  limit.rlim_cur = 10;
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);  // SIGXFSZ would end the process
  Output output;
  output.write({.text = std::string(100'000, 'x')});
  output.write({.text = "a line\n"});
  output.flush();
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::__fpurge(stdout);
  std::clearerr(stdout);
  ::dup2(kept, STDOUT_FILENO);
  ::close(kept);
  CHECK(::lseek(file, 0, SEEK_END) == 10);
  ::close(file);
}
