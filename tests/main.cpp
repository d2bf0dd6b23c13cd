// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Tests do not use the user's compile cache. Tests of the cache itself use separate folders.
  if (std::getenv("QUERN_TEST_CACHE") == nullptr) ::setenv("QUERN_CACHE", "0", 1);
  return doctest::Context(argc, argv).run();
}
