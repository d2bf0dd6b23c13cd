// SPDX-License-Identifier: Apache-2.0
#include "ptx/forms.hpp"

#include <doctest/doctest.h>

#include <set>

#include "ptx/isa.hpp"

namespace quern::ptx {

TEST_CASE("isa.def names only words, sets and operands that exist") { CHECK(FormTable::instance().defects() == ""); }

TEST_CASE("every opcode has a form") {
#define QUERN_PTX_OPCODE(name, text) CHECK_MESSAGE(!FormTable::instance().forms_of(Opcode::name).empty(), text);
#include "ptx/isa.def"
}

TEST_CASE("no form stands twice") {
  std::set<std::string> seen;
  for (const Form& form : FormTable::instance().all()) {
    const std::string key = std::string(name(form.opcode)) + " " + std::string(form.words) + " " + std::string(form.operands) + " " + std::to_string(form.sm);
    CHECK_MESSAGE(seen.insert(key).second, key);
  }
}

TEST_CASE("names and enumerators lead to each other") {
  CHECK(opcode_named("and") == Opcode::and_);
  CHECK(name(Opcode::and_) == "and");
  CHECK(modifier_named("shared::cta") == Modifier::shared_cta);
  CHECK(modifier_named("2d") == Modifier::_2d);
  CHECK_FALSE(modifier_named("f32"));
  CHECK(type_named("f16x2") == Type::f16x2);
  CHECK_FALSE(type_named(""));
  CHECK(special_register_named("%tid.x") == SpecialRegister::tid_x);
  CHECK(name(SpecialRegister::lanemask_lt) == "%lanemask_lt");
  CHECK(type(SpecialRegister::clock64) == Type::u64);
  CHECK(name(Space::const_) == "const");
}

TEST_CASE("types know their size and kind") {
  CHECK(bit_size(Type::pred) == 1);
  CHECK(byte_size(Type::pred) == 1);
  CHECK(bit_size(Type::bf16x2) == 32);
  CHECK(byte_size(Type::b128) == 16);
  CHECK(kind(Type::s16) == TypeKind::signed_);
  CHECK(kind(Type::e4m3x2) == TypeKind::packed);
  CHECK(bit_size(Type::none) == 0);
}

}  // namespace quern::ptx
