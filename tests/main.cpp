// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // No test is served from the user's compile cache; those of the cache itself say so and have folders of
  // their own.
  if (std::getenv("QUERN_TEST_CACHE") == nullptr) ::setenv("QUERN_CACHE", "0", 1);
  return doctest::Context(argc, argv).run();
}
