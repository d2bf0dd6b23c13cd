// SPDX-License-Identifier: Apache-2.0
#include "ptx/parse/lexer.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace quern::ptx {
namespace {

std::vector<Token> tokens_of(std::string_view text) {
  Lexer lexer(text);
  std::vector<Token> tokens;
  for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next())
    tokens.push_back(token);
  return tokens;
}

TokenKind kind_of(std::string_view text) {
  const std::vector<Token> tokens = tokens_of(text);
  return tokens.size() == 1 ? tokens[0].kind : TokenKind::invalid;
}

}  // namespace

TEST_CASE("words after a dot may start with a digit or hold two colons") {
  CHECK(kind_of(".2d") == TokenKind::word);
  CHECK(kind_of(".shared::cta") == TokenKind::word);
  CHECK(kind_of(".L1::evict_last") == TokenKind::word);
  CHECK(kind_of(".16x64b") == TokenKind::word);
}

TEST_CASE("a dot before digits alone starts a number") {
  CHECK(kind_of(".5") == TokenKind::floating);
  CHECK(kind_of("1.") == TokenKind::floating);
  CHECK(kind_of("1e5") == TokenKind::floating);
  CHECK(kind_of("2.5e-3") == TokenKind::floating);
}

TEST_CASE("integers are read in every base and with the unsigned suffix") {
  CHECK(integer_value("17")->bits == 17);
  CHECK(integer_value("017")->bits == 15);
  CHECK(integer_value("0x1F")->bits == 31);
  CHECK(integer_value("0b101")->bits == 5);
  CHECK_FALSE(integer_value("17")->is_unsigned);
  CHECK(integer_value("17U")->is_unsigned);
  CHECK(integer_value("0xFFFFFFFFFFFFFFFF")->is_unsigned);
  CHECK_FALSE(integer_value("08"));
  CHECK_FALSE(integer_value("18446744073709551616"));
  CHECK_FALSE(integer_value("0x"));
}

TEST_CASE("floating constants keep the bits that are written") {
  CHECK(floating_value("0f3F800000")->bits == 0x3f800000u);
  CHECK(floating_value("0f3F800000")->single);
  CHECK(floating_value("0d3FF0000000000000")->bits == 0x3ff0000000000000u);
  CHECK(floating_value("0.1")->bits == 0x3fb999999999999au);
  CHECK_FALSE(floating_value("0.1")->single);
  CHECK_FALSE(floating_value("0f3F80"));
}

TEST_CASE("identifiers may begin with a percent sign, a dollar or an underscore") {
  for (const std::string_view name : {"%r1", "$L__BB0_2", "_Z3fooi", "_", "%tid", "a$b"})
    CHECK(kind_of(name) == TokenKind::identifier);
  CHECK(tokens_of("8 % 3")[1].is('%'));
}

TEST_CASE("comments and any line ends are blank, and positions count from one") {
  const std::vector<Token> tokens = tokens_of("a // x\r\n/* b\n c */ d\t.e");
  REQUIRE(tokens.size() == 3);
  CHECK(tokens[1].text == "d");
  CHECK(tokens[1].position.line == 3);
  CHECK(tokens[1].position.column == 7);
  CHECK(tokens[2].position.column == 9);
}

TEST_CASE("comments, strings and numbers that do not end or make no sense are invalid tokens") {
  CHECK(kind_of("/* no end") == TokenKind::invalid);
  CHECK(kind_of("\"no end") == TokenKind::invalid);
  CHECK(kind_of("0f3F8") == TokenKind::invalid);
  CHECK(kind_of("12abc") == TokenKind::invalid);
  CHECK(kind_of("#") == TokenKind::invalid);
  CHECK(kind_of(".") == TokenKind::invalid);
  CHECK(kind_of("\"with \\\" inside\"") == TokenKind::string);
}

}  // namespace quern::ptx
