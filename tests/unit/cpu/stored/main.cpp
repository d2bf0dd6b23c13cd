// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <string_view>

#include "child.hpp"

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "child")
    return quern::test::run_child(argv[2], argv[3], static_cast<unsigned>(std::atoi(argv[4])));
  return doctest::Context(argc, argv).run();
}
