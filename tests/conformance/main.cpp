// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "suite.hpp"

int main(int argc, char** argv) {
  constexpr int kSkipped = 77;
  std::string device = "cpu";
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i) {
    if (std::strncmp(argv[i], "--device=", 9) == 0)
      device = argv[i] + 9;
    else
      rest.push_back(argv[i]);
  }
  doctest::Context context(static_cast<int>(rest.size()), rest.data());
  if (!context.shouldExit()) {
    const std::string missing = quern::conformance::load_device(device);
    if (!missing.empty()) {
      std::fprintf(stderr, "no %s device: %s\n", device.c_str(), missing.c_str());
      return device == "cuda" ? kSkipped : 1;  // the CPU device is always there
    }
  }
  return context.run();
}
