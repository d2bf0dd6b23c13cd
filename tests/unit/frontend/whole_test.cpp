// SPDX-License-Identifier: Apache-2.0
// Python's whole numbers; the expected values are Python's.
#include "frontend/whole.hpp"

#include <doctest/doctest.h>

using namespace quern::frontend;

namespace {

struct Case {
  const char* a;
  Tok op;
  const char* b;
  const char* result;  // "": none
};

Whole number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto whole = Whole::read(negative ? text.substr(1) : text);
  REQUIRE(whole);
  return negative ? whole->negated() : *whole;
}

}  // namespace

TEST_SUITE_BEGIN("frontend");

TEST_CASE("whole numbers compute as Python's do up to 128 bits, and tell what lies beyond") {
  const Case cases[] = {
      {"0x8000000000000000", Tok::plus, "0x8000000000000000", "0x10000000000000000"},
      {"5", Tok::minus, "0x10000000000000000", "-18446744073709551611"},
      {"100000000000", Tok::times, "-10000000000", "-1000000000000000000000"},
      {"-7", Tok::floor_divide, "2", "-4"},
      {"7", Tok::floor_divide, "-2", "-4"},
      {"-7", Tok::mod, "3", "2"},
      {"7", Tok::mod, "-3", "-2"},
      {"6", Tok::mod, "-3", "0"},
      {"-3", Tok::power, "5", "-243"},
      {"2", Tok::power, "127", "170141183460469231731687303715884105728"},
      {"2", Tok::power, "128", ""},
      {"10", Tok::power, "-2", ""},
      {"1", Tok::left_shift, "127", "170141183460469231731687303715884105728"},
      {"1", Tok::left_shift, "128", ""},
      {"-5", Tok::right_shift, "1", "-3"},
      {"-1", Tok::right_shift, "0x10000000000000000", "-1"},
      {"-6", Tok::bit_and, "0xff", "250"},
      {"-6", Tok::bit_or, "3", "-5"},
      {"-6", Tok::bit_xor, "0x10000000000000000", "-18446744073709551622"},
      {"3", Tok::floor_divide, "0", ""},
      {"3", Tok::mod, "0", ""},
      {"3", Tok::left_shift, "-1", ""},
      {"0xffffffffffffffffffffffffffffffff", Tok::plus, "1", ""},
  };
  for (const Case& each : cases) {
    INFO(each.a, " ", text_of(each.op), " ", each.b);
    const auto result = Whole::compute(each.op, number(each.a), number(each.b));
    REQUIRE(result.has_value() == (each.result[0] != '\0'));
    if (result) CHECK(Whole::compare(*result, number(each.result)) == 0);
  }
}

TEST_CASE("whole numbers are read in every base, and fit the types that can hold them") {
  CHECK(number("0xdead_beef").as_int64() == 0xdeadbeef);
  CHECK(number("0b101").as_int64() == 5);
  CHECK(number("0o17").as_int64() == 15);
  CHECK_FALSE(Whole::read("0x1_0000_0000_0000_0000_0000_0000_0000_0000"));
  CHECK(number("-9223372036854775808").as_int64() == INT64_MIN);
  CHECK_FALSE(number("9223372036854775808").as_int64());
  CHECK(number("18446744073709551615").as_uint64() == UINT64_MAX);
  CHECK_FALSE(number("18446744073709551616").as_uint64());
  CHECK_FALSE(number("-1").as_uint64());
  CHECK(number("-18446744073709551616").as_real() == -18446744073709551616.0);
}

TEST_CASE("CPython's compiler leaves numbers beyond 128 bits to the running program") {
  CHECK(python_folds(Tok::power, Whole(2), Whole(64)));
  CHECK_FALSE(python_folds(Tok::power, Whole(2), Whole(65)));
  CHECK(python_folds(Tok::left_shift, Whole(1), Whole(127)));
  CHECK_FALSE(python_folds(Tok::left_shift, Whole(1), Whole(128)));
  CHECK_FALSE(python_folds(Tok::times, number("0x10000000000000000"), number("0x10000000000000000")));
  CHECK(python_folds(Tok::power, Whole(10), Whole(-2)));
}

TEST_SUITE_END();
