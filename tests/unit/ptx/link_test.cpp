// SPDX-License-Identifier: Apache-2.0
#include "ptx/link.hpp"

#include "helpers.hpp"

using namespace quern;
using namespace quern::ptx;
using quern::ptx::test::module_text;
using quern::ptx::test::parsed;

namespace {

Expected<Module> linked(const std::vector<std::string>& bodies) {
  std::vector<LinkInput> inputs;
  for (std::size_t i = 0; i < bodies.size(); ++i)
    inputs.push_back({std::string(1, static_cast<char>('a' + i)) + ".ptx", parsed(module_text(bodies[i]))});
  return link(std::move(inputs));
}

/// The text of the linked modules, parsed again, so that every name and index is known to be valid.
Module whole(const std::vector<std::string>& bodies) {
  Expected<Module> module = linked(bodies);
  if (!module) FAIL(to_string(module.errors()));
  Module again = parsed(print(*module));
  const Expected<void> verified = verify(again, "linked.ptx");
  if (!verified) FAIL(to_string(verified.errors()));
  CHECK(equal_ignoring_positions(*module, parsed(print(*module))));
  return again;
}

std::string refused(const std::vector<std::string>& bodies) {
  const Expected<Module> module = linked(bodies);
  return module ? std::string() : to_string(module.errors());
}

const Variable& variable(const Module& module, std::string_view name) {
  for (const Variable& each : module.variables)
    if (each.name == name) return each;
  FAIL("no variable " << name);
  return module.variables.front();
}

constexpr const char* kUser = R"(
.extern .global .align 4 .u32 total;
.extern .func (.param .b32 r) next(.param .b32 x);
.visible .entry k()
{
  .reg .b32 %r<3>;
  { .param .b32 in; .param .b32 out;
  ld.global.u32 %r1, [total];
  st.param.b32 [in], %r1;
  call.uni (out), next, (in);
  ld.param.b32 %r2, [out]; }
  st.global.u32 [total], %r2;
  ret;
}
)";
constexpr const char* kDefiner = R"(
.visible .global .align 4 .u32 other = 1;
.visible .global .align 4 .u32 total = 5;
.visible .func (.param .b32 r) next(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, 1;
  st.param.b32 [r], %r2;
  ret;
}
)";

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("what one module declares is what another defines, in either order") {
  for (const auto& order : {std::vector<std::string>{kUser, kDefiner}, {kDefiner, kUser}}) {
    const Module module = whole(order);
    CHECK(module.variables.size() == 2);
    CHECK(variable(module, "total").linkage == Linkage::visible);
    CHECK(variable(module, "total").initializer[0].bits == 5);
    CHECK(module.functions.size() == 2);
    REQUIRE(module.find_function("next") != nullptr);
    CHECK(module.find_function("next")->defined);
    const Function& kernel = *module.find_function("k");
    const auto load = std::ranges::find_if(kernel.body, [](const Instruction& each) {
      return each.opcode == Opcode::ld && each.space() == Space::global;
    });
    REQUIRE(load != kernel.body.end());
    const AddressOperand* address = load->operands[1].as<AddressOperand>();
    REQUIRE(address != nullptr);
    CHECK(module.variables[address->symbol->index].name == "total");
  }
}

TEST_CASE("names without linkage stay their module's own") {
  constexpr const char* kBody = R"(
.global .align 4 .u32 mine = 3;
.global .align 8 .u64 where = generic(mine);
.func helper() { .reg .b32 %r<2>; ld.global.u32 %r1, [mine]; ret; }
)";
  const Module module = whole({std::string(kBody) + ".visible .entry one() { call.uni helper; ret; }",
                               std::string(kBody) + ".visible .entry two() { call.uni helper; ret; }"});
  CHECK(module.variables.size() == 4);
  CHECK(module.functions.size() == 4);
  const auto callee = [&](const char* entry) {
    return module.find_function(entry)->body[0].operands[1].as<SymbolOperand>()->symbol.index;
  };
  CHECK(callee("one") != callee("two"));
  const auto read = [&](std::uint32_t function) {
    return module.functions[function].body[0].operands[1].as<AddressOperand>()->symbol->index;
  };
  CHECK(read(callee("one")) != read(callee("two")));
  for (const Variable& each : module.variables)
    if (each.type == Type::u64) {
      const std::string& target = each.initializer[0].symbol;
      CHECK(target.substr(4) == each.name.substr(5));  // mine$link0 of where$link0
    }
}

TEST_CASE("weak definitions give way, common variables are as large as the largest") {
  const Module module =
      whole({".weak .global .align 4 .u32 w = 1;\n.common .global .align 4 .b8 c[8];\n"
             ".weak .func f() { ret; }",
             ".visible .global .align 4 .u32 w = 2;\n.common .global .align 4 .b8 c[24];\n"
             ".weak .func f() { exit; }",
             ".weak .global .align 4 .u32 w = 3;\n.common .global .align 4 .b8 c[16];\n"});
  CHECK(module.variables.size() == 2);
  CHECK(variable(module, "w").initializer[0].bits == 2);
  CHECK(variable(module, "c").size_bytes() == 24);
  CHECK(module.find_function("f")->body[0].opcode == Opcode::ret);
}

TEST_CASE("dynamic shared memory is one, a function that nobody defines stays a declaration") {
  const Module module =
      whole({".extern .shared .align 4 .b8 pool[];\n.extern .func (.param .b32 r) vprintf(.param "
             ".b64 a, .param .b64 b);\n.visible .entry one() { ret; }",
             ".extern .shared .align 16 .f32 pool[];\n.visible .entry two() { ret; }"});
  CHECK(module.variables.size() == 1);
  CHECK_FALSE(module.find_function("vprintf")->defined);
}

TEST_CASE("lines keep their files") {
  constexpr const char* kOne = ".visible .entry one() { .loc 1 10 0\n ret; }\n.file 1 \"one.cu\"\n";
  constexpr const char* kTwo = ".visible .entry two() { .loc 1 20 0\n ret; }\n.file 1 \"two.cu\"\n";
  const Module module = whole({kOne, kTwo});
  REQUIRE(module.files.size() == 2);
  const auto file_of = [&](const char* entry) {
    const std::uint32_t number = module.find_function(entry)->locations[0].file;
    for (const SourceFile& file : module.files)
      if (file.number == number) return file.path;
    return std::string();
  };
  CHECK(file_of("one") == "one.cu");
  CHECK(file_of("two") == "two.cu");
}

TEST_CASE("what is defined twice, nowhere, or otherwise than declared is refused with both places") {
  CHECK(holds(refused({kUser}), "a.ptx:5:"));
  CHECK(holds(refused({kUser}), "'total' is .extern and nothing defines it"));
  CHECK(holds(refused({kDefiner, kDefiner}), "'total' is defined here and in a.ptx, line 6"));
  CHECK(holds(refused({kDefiner, kDefiner}), "'next' is defined here and in a.ptx"));
  CHECK(holds(refused({kDefiner, ".extern .global .align 4 .b8 total[8];"}),
              "'total' is not what it is in a.ptx"));
  CHECK(holds(refused({kDefiner, ".extern .const .align 4 .u32 total;"}), "'total' is not what it is"));
  CHECK(holds(refused({kDefiner, ".extern .func next(.param .b32 x);"}), "'next' is not what it is"));
  CHECK(holds(refused({kDefiner, ".visible .func total() { ret; }"}),
              "a variable in one module and a function"));
  CHECK(holds(refused({".visible .entry k() { ret; }", ".visible .entry k() { ret; }"}),
              "'k' is defined here"));
}
