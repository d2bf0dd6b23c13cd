// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "suite.hpp"

int main(int argc, char** argv) {
  constexpr int kAbsent = 77;
  std::string device = "cpu";
  bool exit_child = false;
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], "--device=", 9) == 0)
      device = argv[i] + 9;
    else if (std::strcmp(argv[i], "--exit-child") == 0)
      exit_child = true;
    else
      rest.push_back(argv[i]);
  }
  if (exit_child) return quern::contract::run_exit_child(device);
  doctest::Context context(static_cast<int>(rest.size()), rest.data());
  if (!context.shouldExit()) {
    const std::string missing = quern::contract::open_device(device);
    if (!missing.empty()) {
      std::fprintf(stderr, "no %s device: %s\n", device.c_str(), missing.c_str());
      return device == "cpu" ? 1 : kAbsent;
    }
    quern::contract::set_program(argv[0]);
  }
  return context.run();
}
