// SPDX-License-Identifier: Apache-2.0
// Compares the tables of operators with the results of Numba's type inference: numba_types.txt, written by
// numba_types.py.
#include "frontend/types/types.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <sstream>

using namespace quern::frontend;

namespace {

Type named(const TypeTable& table, const std::string& name) {
  const std::map<std::string, Type> names = {
      {"b1", table.boolean},    {"i8", table.int8},         {"i16", table.int16},    {"i32", table.int32},
      {"i64", table.int64},     {"u8", table.uint8},        {"u16", table.uint16},   {"u32", table.uint32},
      {"u64", table.uint64},    {"f16", table.float16},     {"f32", table.float32},  {"f64", table.float64},
      {"c64", table.complex64}, {"c128", table.complex128}, {"bf16", table.bfloat16}};
  const auto found = names.find(name);
  return found == names.end() ? nullptr : found->second;
}

const std::map<std::string, Tok> kOperators = {{"add", Tok::plus},
                                               {"sub", Tok::minus},
                                               {"mul", Tok::times},
                                               {"truediv", Tok::divide},
                                               {"floordiv", Tok::floor_divide},
                                               {"mod", Tok::mod},
                                               {"pow", Tok::power},
                                               {"lshift", Tok::left_shift},
                                               {"rshift", Tok::right_shift},
                                               {"and_", Tok::bit_and},
                                               {"or_", Tok::bit_or},
                                               {"xor", Tok::bit_xor},
                                               {"lt", Tok::less},
                                               {"eq", Tok::equal}};

// True if Numba's answer only results from the order in which it tries its overloads.
bool is_accident(const std::string& op, const std::string& a, const std::string& b) {
  return op == "pow" && a == "b1" && b == "i32";
}

}  // namespace

TEST_SUITE_BEGIN("frontend");

TEST_CASE("binary operators give Numba's types for every pair") {
  TypeTable table;
  std::ifstream file(QUERN_TEST_DATA "/numba_types.txt");
  REQUIRE(file);
  std::string line;
  int checked = 0;
  while (std::getline(file, line)) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string op, a, b, result;
    words >> op >> a >> b >> result;
    if (is_accident(op, a, b)) continue;
    ++checked;
    INFO(line);
    if (op == "unify") {
      CHECK(unify(table, named(table, a), named(table, b)) == named(table, result));
      continue;
    }
    const auto found = operation(table, kOperators.at(op), named(table, a), named(table, b));
    CHECK((found ? found->result : nullptr) == named(table, result));
  }
  CHECK(checked > 2800);
}

TEST_CASE("types print as Numba prints them") {
  TypeTable table;
  CHECK(text_of(table.array(table.float32, 2, 'C')) == "array(float32, 2d, C)");
  CHECK(text_of(table.tuple({table.int64, table.int64})) == "UniTuple(int64 x 2)");
  CHECK(text_of(table.tuple({table.int64, table.float32})) == "Tuple(int64, float32)");
}

TEST_CASE("a type is made once") {
  TypeTable table;
  CHECK(table.array(table.float32, 1, 'C') == table.array(table.float32, 1, 'C'));
  CHECK(table.array(table.float32, 1, 'C') != table.array(table.float32, 1, 'A'));
}

TEST_SUITE_END();
