// SPDX-License-Identifier: Apache-2.0
// Compares the values that kernels take from a file with CPython's import of it: python_files.txt, written by
// python_files.py.
#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "helpers.hpp"

namespace {

struct Answer {
  std::string name;
  std::string kind;  ///< "number", "adds", "unbound"
  std::string value;
};
struct File {
  std::string title;
  std::string text;
  bool may_refuse = false;
  std::vector<Answer> answers;
};

std::vector<File> read_files() {
  std::ifstream file(QUERN_TEST_DATA "/python_files.txt");
  std::vector<File> files;
  bool in_answers = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("=== ")) {
      files.push_back({line.substr(4), "", false, {}});
      std::getline(file, line);
      files.back().may_refuse = line == "may refuse";
      in_answers = false;
    } else if (line == "---") {
      in_answers = true;
    } else if (!in_answers) {
      files.back().text += line + "\n";
    } else {
      const std::size_t first = line.find(' '), second = line.find(' ', first + 1);
      files.back().answers.push_back({line.substr(0, first), line.substr(first + 1, second - first - 1),
                                      second == std::string::npos ? "" : line.substr(second + 1)});
    }
  }
  return files;
}

/// The value of the name for a kernel after the file: "number 3", "adds 1", "unbound", "refused", or the CUDA
/// C++.
std::string found(const File& file, const Answer& answer) {
  const std::string value = answer.kind == "adds" ? answer.name + "(out[0])" : answer.name;
  const std::string text = file.text + "\n@cuda.jit\ndef the_kernel(out):\n    out[0] = " + value + "\n";
  const auto source = quern::frontend::translate(quern::test::python(text), "the_kernel", "(float64[::1],)");
  if (!source) {
    if (source.errors().front().message == "the name '" + answer.name + "' is not defined") return "unbound";
    return source.errors().front().code == "uncertain" || source.errors().front().code == "host-value"
               ? "refused"
               : to_string(source.errors());
  }
  std::string line = answer.kind == "adds" ? "return x + " : " " + answer.name + " = ";
  if (source->text.find(line) == std::string::npos) line = "out[0] = ";
  const std::size_t at = source->text.find(line);
  if (at == std::string::npos) return source->text;
  const std::size_t begin = at + line.size();
  return answer.kind + " " + source->text.substr(begin, source->text.find(';', begin) - begin);
}

}  // namespace

TEST_SUITE_BEGIN("frontend");

TEST_CASE("what a kernel takes from a file is what importing the file gives, or is refused") {
  const std::vector<File> files = read_files();
  REQUIRE(files.size() >= 130);
  for (const File& file : files)
    for (const Answer& answer : file.answers) {
      INFO(file.title << ": " << answer.name << "\n" << file.text);
      const std::string expected = answer.value.empty() ? answer.kind : answer.kind + " " + answer.value;
      const std::string given = found(file, answer);
      if (file.may_refuse && given == "refused") continue;
      CHECK(given == expected);
    }
}

TEST_SUITE_END();
