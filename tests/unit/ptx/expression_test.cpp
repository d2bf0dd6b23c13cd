// SPDX-License-Identifier: Apache-2.0
// Constant expressions, through the initialiser of a .u64 variable.
#include "helpers.hpp"

namespace quern::ptx::test {
namespace {

std::uint64_t value_of(const std::string& expression) {
  const Module module = parsed(module_text(".global .u64 a[1] = {" + expression + "};"));
  return module.variables[0].initializer[0].bits;
}

bool fails(const std::string& expression) { return !parse(module_text(".global .u64 a[1] = {" + expression + "};"), "test.ptx").has_value(); }

}  // namespace

TEST_CASE("operators bind as in C") {
  CHECK(value_of("1 + 2 * 3") == 7);
  CHECK(value_of("(1 + 2) * 3") == 9);
  CHECK(value_of("1 << 4 | 3") == 19);
  CHECK(value_of("7 & 3 == 3") == 1);
  CHECK(value_of("10 - 4 - 3") == 3);
  CHECK(value_of("1 ? 2 : 0 ? 3 : 4") == 2);
  CHECK(value_of("0 || 1 && 0") == 0);
}

TEST_CASE("signed and unsigned constants divide, compare and shift by their own rules") {
  CHECK(value_of("-7 / 2") == static_cast<std::uint64_t>(-3));
  CHECK(value_of("-7 % 3") == static_cast<std::uint64_t>(-1));
  CHECK(value_of("-1 < 0") == 1);
  CHECK(value_of("-1 < 0U") == 0);
  CHECK(value_of("-8 >> 1") == static_cast<std::uint64_t>(-4));
  CHECK(value_of("(.u64) -8 >> 1") == 0x7ffffffffffffffcu);
  CHECK(value_of("~0") == ~std::uint64_t{0});
  CHECK(value_of("!5") == 0);
  CHECK(value_of("-(-5)") == 5);
}

TEST_CASE("arithmetic never overflows into undefined behaviour") {
  CHECK(value_of("(-9223372036854775807 - 1) / -1") == 0x8000000000000000u);
  CHECK(value_of("(-9223372036854775807 - 1) % -1") == 0);
  CHECK(value_of("1 << 64") == 0);
  CHECK(value_of("-1 >> 100") == ~std::uint64_t{0});
}

TEST_CASE("the warp size is a constant") { CHECK(value_of("WARP_SZ * 2") == 64); }

TEST_CASE("nonsense in an expression is an error") {
  CHECK(fails("1 / 0"));
  CHECK(fails("1 % 0"));
  CHECK(fails("1 + 1.0"));
  CHECK(fails("~1.0"));
  CHECK(fails("(1"));
  CHECK(fails("1 ? 2"));
  CHECK(fails("1.0 ? 2 : 3"));
  CHECK(fails(""
              "+"));
}

}  // namespace quern::ptx::test
