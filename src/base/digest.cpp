// SPDX-License-Identifier: Apache-2.0
#include "base/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <new>

namespace quern::base {
namespace {
EVP_MD_CTX* context(void* state) { return static_cast<EVP_MD_CTX*>(state); }

/// Without OpenSSL's exit handler, which would free what other threads still use. A host that has used
/// OpenSSL before has its handler registered already; exit() then waits for our threads first (ExitGate).
void start_openssl() noexcept {
  static const int started = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  static_cast<void>(started);
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

DigestBuilder::DigestBuilder() : state_((start_openssl(), EVP_MD_CTX_new())) {
  if (state_ == nullptr || EVP_DigestInit_ex(context(state_), EVP_sha256(), nullptr) != 1)
    throw std::bad_alloc();
}

DigestBuilder::~DigestBuilder() { EVP_MD_CTX_free(context(state_)); }

void DigestBuilder::raw(const void* data, std::size_t size) { EVP_DigestUpdate(context(state_), data, size); }

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
  EVP_DigestFinal_ex(context(state_), digest.bytes.data(), nullptr);
  return digest;
}

Digest sha256(std::span<const std::byte> bytes) {
  start_openssl();
  Digest digest;
  EVP_Digest(bytes.data(), bytes.size(), digest.bytes.data(), nullptr, EVP_sha256(), nullptr);
  return digest;
}

}  // namespace quern::base
