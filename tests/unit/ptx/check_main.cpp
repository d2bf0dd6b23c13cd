// SPDX-License-Identifier: Apache-2.0
// Reads PTX files and prints every error as "line code message". judge_forms.py compares this output with
// ptxas.
#include <cstdio>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "ptx/ptx.hpp"

namespace {

int report(const quern::Diagnostics& errors) {
  for (const quern::Diagnostic& error : errors)
    std::printf("%u %s %s\n", error.span.line, error.code.c_str(), error.message.c_str());
  return 1;
}

int check(const char* path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  quern::ptx::Limits limits;
  limits.max_errors = std::numeric_limits<std::uint32_t>::max();
  quern::Expected<quern::ptx::Module> module = quern::ptx::parse(text.str(), path, limits);
  if (!module) return report(module.errors());
  const quern::Expected<void> verified = quern::ptx::verify(*module, path, limits);
  if (!verified) return report(verified.errors());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int status = 0;
  for (int i = 1; i < argc; ++i) status |= check(argv[i]);
  return status;
}
