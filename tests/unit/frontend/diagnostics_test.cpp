// SPDX-License-Identifier: Apache-2.0
// Diagnostics for wrong programs: diagnostics.txt contains the programs with the expected text. With
// QUERN_UPDATE_GOLDEN=1 the file is rewritten; read it before you commit it.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <vector>

#include "helpers.hpp"

namespace {

constexpr const char* kFile = QUERN_TEST_DATA "/diagnostics.txt";

struct Case {
  std::string title;
  std::string signature;
  std::string source;
  std::string expected;
};

std::vector<Case> read_cases() {
  std::ifstream file(kFile);
  std::vector<Case> cases;
  std::string line;
  bool in_expected = false;
  while (std::getline(file, line)) {
    if (line.starts_with("=== ")) {
      cases.push_back({line.substr(4), "", "", ""});
      in_expected = false;
    } else if (!cases.empty() && line.starts_with("sig: ")) {
      cases.back().signature = line.substr(5);
    } else if (line == "---") {
      in_expected = true;
    } else if (!cases.empty()) {
      (in_expected ? cases.back().expected : cases.back().source) += line + "\n";
    }
  }
  return cases;
}

std::string said(const Case& of) {
  const auto source = quern::frontend::translate(quern::test::python(quern::test::with_imports(of.source)),
                                                 "k", of.signature);
  return source ? to_string(source->log) : to_string(source.errors());
}

void rewrite(const std::vector<Case>& cases) {
  std::ofstream file(kFile);
  for (const Case& each : cases)
    file << "=== " << each.title << "\nsig: " << each.signature << "\n"
         << each.source << "---\n"
         << said(each);
}

}  // namespace

TEST_SUITE_BEGIN("frontend");

TEST_CASE("wrong programs are told what is wrong, where, and what to do") {
  const std::vector<Case> cases = read_cases();
  if (std::getenv("QUERN_UPDATE_GOLDEN") != nullptr) return rewrite(cases);
  CHECK(cases.size() >= 120);
  for (const Case& each : cases) {
    INFO(each.title);
    CHECK(said(each) == each.expected);
    CHECK(quern::test::holds(each.expected, "error: "));
  }
}

TEST_CASE("every message is told apart by its words") {
  std::set<std::string> messages;
  for (const Case& each : read_cases()) {
    const std::size_t at = each.expected.find("error: ");
    messages.insert(each.expected.substr(at, each.expected.find('\n', at) - at));
  }
  CHECK(messages.size() >= 120);
}

TEST_SUITE_END();
