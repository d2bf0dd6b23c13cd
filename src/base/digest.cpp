// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

// OpenSSL's functions for SHA-256 alone: EVP would load its configuration and providers first (0.8 ms at the
// first digest of a process, 0.01 without) and register a handler of exit().
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/sha.h>

#include <new>

namespace quern::base {
namespace {
SHA256_CTX* context(std::array<std::byte, 112>& state) {
  static_assert(sizeof(SHA256_CTX) <= sizeof state && alignof(SHA256_CTX) <= alignof(std::uint64_t));
  return std::launder(reinterpret_cast<SHA256_CTX*>(state.data()));
}
}  // namespace

std::string Digest::hex() const {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(64);
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

DigestBuilder::DigestBuilder() { SHA256_Init(new (state_.data()) SHA256_CTX); }

void DigestBuilder::raw(const void* data, std::size_t size) { SHA256_Update(context(state_), data, size); }

DigestBuilder& DigestBuilder::add(std::string_view field) {
  add(static_cast<std::uint64_t>(field.size()));
  raw(field.data(), field.size());
  return *this;
}

DigestBuilder& DigestBuilder::add(std::uint64_t field) {
  raw(&field, sizeof field);
  return *this;
}

Digest DigestBuilder::finish() {
  Digest digest;
  SHA256_Final(digest.bytes.data(), context(state_));
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  SHA256_CTX context;  // SHA256() itself goes through EVP
  Digest digest;
  SHA256_Init(&context);
  SHA256_Update(&context, bytes.data(), bytes.size());
  SHA256_Final(digest.bytes.data(), &context);
  return digest;
}

}  // namespace quern::base
