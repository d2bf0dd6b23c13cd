// SPDX-License-Identifier: Apache-2.0
// Any bytes as a value of a shared store, as an entry under /ac and as the address of a store. What is not
// sealed is never accepted while keys are in use; what is accepted without keys is unchanged after it is
// sealed and opened again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "store/action_result.hpp"
#include "store/address.hpp"
#include "store/sealed_value.hpp"

using namespace quern;

namespace {

constexpr std::uint64_t kMaxBytes = 1 << 20;

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void try_value(std::string_view stored) {
  static const base::SigningKeys keys = *base::SigningKeys::parse(std::string(64, 'f'), "keys");
  // Nothing is sealed with `keys`: libFuzzer would see the seals in comparisons, and use them.
  static const base::SigningKeys others = *base::SigningKeys::parse(std::string(64, 'e'), "others");
  // The key is the one that the value names, so that the rest of the reader is reached as well.
  base::Digest key;
  if (stored.size() >= 48) stored.copy(reinterpret_cast<char*>(key.bytes.data()), 32, 16);
  const auto sealed = store::open_value(&keys, store::Kind::compile_answer, key, stored, kMaxBytes);
  if (std::holds_alternative<std::string>(sealed)) fail("a value that nobody sealed was accepted");
  const auto plain = store::open_value(nullptr, store::Kind::compile_answer, key, stored, kMaxBytes);
  const auto* const value = std::get_if<std::string>(&plain);
  if (value == nullptr) return;
  if (value->size() > kMaxBytes) fail("a value is larger than was allowed");
  const std::string again = store::seal_value(&others, store::Kind::compile_answer, key, *value);
  const auto opened = store::open_value(&others, store::Kind::compile_answer, key, again, kMaxBytes);
  if (!std::holds_alternative<std::string>(opened) || std::get<std::string>(opened) != *value)
    fail("sealing and opening changed the value");
}

void try_address(std::string_view text) {
  const Expected<store::Address> address = store::read_address(text);
  if (address) {
    if (address->folder.find_first_of(" \r\n") != std::string::npos) fail("a folder that breaks a request");
    return;
  }
  if (address.errors().empty() || address.errors().front().message.empty())
    fail("an error without a message");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_value(text);
  try_address(text);
  if (const auto digest = store::read_action_result(text); digest && digest->size() != 64)
    fail("a digest of another size");
  return 0;
}
