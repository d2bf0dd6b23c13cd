// SPDX-License-Identifier: Apache-2.0
// PTX as NVRTC writes it (data/*.cu, compiled by make_ptx.py), and one instruction for each form that real
// programs use.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "helpers.hpp"
#include "ptx/printer.hpp"

namespace quern::ptx::test {
namespace {

const std::filesystem::path kData = QUERN_PTX_TEST_DATA;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  REQUIRE_MESSAGE(file.good(), path.string());
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

Module verified(const std::filesystem::path& path) {
  Module module = parsed(contents(path));
  const Expected<void> result = verify(module, path.filename().string());
  if (!result) FAIL(to_string(result.errors()));
  return module;
}

Module data(const char* name) { return verified(kData / "data" / (std::string(name) + ".ptx")); }

std::size_t count(const Function& function, Opcode opcode) {
  return static_cast<std::size_t>(std::count_if(function.body.begin(), function.body.end(),
                                                [&](const Instruction& i) { return i.opcode == opcode; }));
}

}  // namespace

TEST_CASE("every PTX of the test data is valid and comes back from its printed form") {
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kData / "data")) {
    if (entry.path().extension() != ".ptx") continue;
    ++files;
    const Module module = verified(entry.path());
    Module again = parsed(print(module));
    REQUIRE(verify(again));
    CHECK_MESSAGE(equal_ignoring_positions(module, again), entry.path().filename().string());
  }
  CHECK(files >= 14);
}

TEST_CASE("one instruction of each form that real programs use is known") {
  const Module module = data("numba_forms");
  std::set<std::string> found;
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body) {
      found.insert(instruction_name(instruction));
      CHECK(instruction.form != kNoForm);
    }
  }
  std::istringstream names(contents(kData / "numba_forms.txt"));
  std::size_t wanted = 0;
  for (std::string name; names >> name; ++wanted) CHECK_MESSAGE(found.contains(name), name);
  CHECK(wanted == 625);
}

TEST_CASE("a tiled matmul has its shared tiles, barriers and sixteen multiplications") {
  const Module module = data("matmul");
  const Function* f = module.find_function("matmul");
  REQUIRE(f != nullptr);
  CHECK(f->parameters.size() == 4);
  CHECK(count(*f, Opcode::bar) == 2);
  CHECK(count(*f, Opcode::fma) == 16);
  const auto shared = [](const Variable& v) { return v.space == Space::shared && v.size_bytes() == 1024; };
  CHECK(std::count_if(f->variables.begin(), f->variables.end(), shared) +
            std::count_if(module.variables.begin(), module.variables.end(), shared) ==
        2);
}

TEST_CASE("launch bounds of the source are directives of the kernel") {
  const Module module = data("saxpy");
  const Function* f = module.find_function("saxpy4");
  REQUIRE(f != nullptr);
  CHECK(f->performance.maxntid[0] == 256);
  CHECK(f->performance.minnctapersm == 2);
}

TEST_CASE("recursion, indirect calls and structures by value are calls with their parameters") {
  const Module module = data("control");
  const Function* fibonacci = module.find_function("_Z9fibonaccii");
  REQUIRE(fibonacci != nullptr);
  CHECK(count(*fibonacci, Opcode::call) == 2);
  CHECK(module.find_function("_Z9make_pairdi")->returns[0].size_bytes() == 16);
  CHECK(module.find_function("pick")->prototypes.size() == 1);
}

TEST_CASE("a switch through a table has the labels of its cases") {
  const Module module = data("branch_table");
  const Function& f = module.functions[0];
  CHECK(count(f, Opcode::brx) == 1);
  REQUIRE(f.branch_tables.size() == 1);
  const std::vector<SymbolRef>& targets = f.branch_tables[0].targets;
  REQUIRE(targets.size() == 4);
  CHECK(targets[0] == targets[3]);
  CHECK(f.labels[targets[2].index].name == "$L_default");
}

TEST_CASE("line information leads from an inlined instruction to its caller") {
  const Module module = data("lines");
  const Function& f = module.functions[0];
  REQUIRE(module.files.size() >= 1);
  const auto inlined = std::find_if(f.locations.begin(), f.locations.end(),
                                    [](const SourceLocation& l) { return l.inlined_at != kNoIndex; });
  REQUIRE(inlined != f.locations.end());
  CHECK(inlined->line == 2);
  CHECK(f.locations[inlined->inlined_at].line >= 6);
}

TEST_CASE("inline assembly that declares the same names twice is read") {
  const Module module = data("inline_asm");
  CHECK(count(*module.find_function("inline_asm"), Opcode::selp) >= 2);
}

TEST_CASE("dynamic shared memory is an array without a size") {
  const Module module = data("reduction");
  const auto dynamic = std::find_if(module.variables.begin(), module.variables.end(), [](const Variable& v) {
    return v.linkage == Linkage::extern_ && v.space == Space::shared;
  });
  REQUIRE(dynamic != module.variables.end());
  CHECK(dynamic->element_count() == 0);
}

TEST_CASE("carriage returns at line ends change nothing") {
  const std::string text = contents(kData / "data" / "saxpy.ptx");
  std::string windows;
  for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  CHECK(equal_ignoring_positions(parsed(text), parsed(windows)));
}

}  // namespace quern::ptx::test
