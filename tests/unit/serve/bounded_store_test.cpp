// SPDX-License-Identifier: Apache-2.0
#include "serve/bounded_store.hpp"

#include <doctest/doctest.h>

using namespace quern;
using namespace quern::serve;

namespace {

base::Digest key(std::uint8_t number) {
  base::Digest digest;
  digest.bytes[0] = number;
  return digest;
}

bool put(BoundedStore<std::string>& store, std::uint8_t number, std::uint64_t size) {
  return store.put(key(number), std::make_shared<const std::string>(std::to_string(number)), size);
}

}  // namespace

TEST_CASE("the least recently used values make room") {
  BoundedStore<std::string> store(3 * 1000);
  for (const std::uint8_t number : std::initializer_list<std::uint8_t>{1, 2, 3})
    CHECK(put(store, number, 700));
  CHECK_EQ(*store.find(key(1)), "1");  // now 2 is the oldest
  CHECK(put(store, 4, 700));
  CHECK(store.find(key(2)) == nullptr);
  for (const std::uint8_t number : std::initializer_list<std::uint8_t>{1, 3, 4})
    CHECK(store.find(key(number)) != nullptr);
  CHECK_LE(store.bytes(), 3000);
}

TEST_CASE("a value that is there is kept, and one larger than the bound is not") {
  BoundedStore<std::string> store(1000);
  CHECK(put(store, 1, 10));
  CHECK_FALSE(put(store, 1, 10));
  CHECK_FALSE(put(store, 2, 1000));
  CHECK(store.find(key(1)) != nullptr);
  CHECK(store.find(key(2)) == nullptr);
}
