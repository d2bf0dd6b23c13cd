// SPDX-License-Identifier: Apache-2.0
// Python's integers. The expected values come from Python.
#include "frontend/values/big_integer.hpp"

#include <doctest/doctest.h>

#include <cmath>

using namespace quern::frontend;

namespace {

struct Case {
  const char* a;
  Tok op;
  const char* b;
  const char* result;  // "": none
};

BigInteger number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto whole = BigInteger::read(negative ? text.substr(1) : text);
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
    const auto result = BigInteger::compute(each.op, number(each.a), number(each.b));
    REQUIRE(result.has_value() == (each.result[0] != '\0'));
    if (result) CHECK(BigInteger::compare(*result, number(each.result)) == 0);
  }
}

TEST_CASE("whole numbers are read in every base, and fit the types that can hold them") {
  CHECK(number("0xdead_beef").as_int64() == 0xdeadbeef);
  CHECK(number("0b101").as_int64() == 5);
  CHECK(number("0o17").as_int64() == 15);
  CHECK_FALSE(BigInteger::read("0x1_0000_0000_0000_0000_0000_0000_0000_0000"));
  CHECK(number("-9223372036854775808").as_int64() == INT64_MIN);
  CHECK_FALSE(number("9223372036854775808").as_int64());
  CHECK(number("18446744073709551615").as_uint64() == UINT64_MAX);
  CHECK_FALSE(number("18446744073709551616").as_uint64());
  CHECK_FALSE(number("-1").as_uint64());
  CHECK(number("-18446744073709551616").as_real() == -18446744073709551616.0);
}

// The quotients come from CPython, printed by float.hex().
TEST_CASE("whole numbers divide to the nearest float, rounded once") {
  const struct {
    const char *a, *b;
    double quotient;
  } cases[] = {
      {"9007199254740993", "1", 0x1.0000000000000p+53},
      {"-9007199254740993", "3", -0x1.5555555555556p+51},
      {"1", "18446744073709551615", 0x1.0000000000000p-64},
      {"0", "-5", -0x0.0p+0},
      {"340282366920938463463374607431768211455", "7", 0x1.2492492492492p+125},
      {"7", "340282366920938463463374607431768211455", 0x1.c000000000000p-126},
      {"340282366920938463463374607431768211455", "340282366920938463463374607431768211454",
       0x1.0000000000000p+0},
      {"18014398509481985", "2", 0x1.0000000000000p+53},
      {"18014398509481987", "2", 0x1.0000000000001p+53},
      {"36028797018963969", "4", 0x1.0000000000000p+53},
      {"6", "3", 0x1.0000000000000p+1},
      {"-1", "3", -0x1.5555555555555p-2},
      {"135295174350168409963319627229427980345", "-221874889176066712202581378371433032682",
       -0x1.38354395855d4p-1},
      {"132022508692356712672108813213070320367", "-1868210481869397", -0x1.dedd4333dc6dbp+75},
      {"428648555649634550", "-447270323693655585024", -0x1.f675ac2818228p-11},
      {"2231263780387284349270392156836265607", "-61957136874813677754774248356092549794",
       -0x1.2704c85f6e7bdp-5},
      {"986820191280158178706969182", "-22263135373509354", -0x1.4a3fcdb33aeb7p+35},
      {"301976567337068570386047637066399870", "-27871650001121019", -0x1.2cb80d6725faep+63},
  };
  for (const auto& each : cases) {
    INFO(each.a, " / ", each.b);
    const double got = BigInteger::true_quotient(number(each.a), number(each.b));
    CHECK(got == each.quotient);
    CHECK(std::signbit(got) == std::signbit(each.quotient));
  }
}

TEST_CASE("CPython's compiler leaves numbers beyond 128 bits to the running program") {
  CHECK(python_folds(Tok::power, BigInteger(2), BigInteger(64)));
  CHECK_FALSE(python_folds(Tok::power, BigInteger(2), BigInteger(65)));
  CHECK(python_folds(Tok::left_shift, BigInteger(1), BigInteger(127)));
  CHECK_FALSE(python_folds(Tok::left_shift, BigInteger(1), BigInteger(128)));
  CHECK_FALSE(python_folds(Tok::times, number("0x10000000000000000"), number("0x10000000000000000")));
  CHECK(python_folds(Tok::power, BigInteger(10), BigInteger(-2)));
}

TEST_SUITE_END();
