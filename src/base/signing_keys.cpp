// SPDX-License-Identifier: Apache-2.0
#include "base/signing_keys.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "base/file.hpp"

namespace quern::base {
namespace {

constexpr std::size_t kBlockBytes = 64;  // of SHA-256
constexpr std::size_t kLeastDigits = 64;
constexpr std::size_t kMostDigits = 256;

Digest digest_of(std::string_view bytes) { return sha256(std::as_bytes(std::span(bytes))); }

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

Diagnostic refusal(const std::string& path, const std::string& reason, const std::string& hint) {
  Diagnostic diagnostic;
  diagnostic.code = "key-file";
  diagnostic.message = fmt::format("cannot use key file {}: {}", path, reason);
  diagnostic.hint = hint;
  return diagnostic;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/// The bytes of an even number of hexadecimal digits; empty if the line is no key.
std::string key_of(std::string_view line) {
  std::string key;
  if (line.size() < kLeastDigits || line.size() > kMostDigits || line.size() % 2 != 0) return key;
  for (std::size_t i = 0; i < line.size(); i += 2) {
    const int high = digit_value(line[i]);
    const int low = digit_value(line[i + 1]);
    if (high < 0 || low < 0) return {};
    key += static_cast<char>(high * 16 + low);
  }
  return key;
}

std::string_view trim(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t begin = line.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(kBlank) - begin + 1);
}

/// The purpose ends with a zero byte, so that none is the beginning of another.
std::string sealed_text(std::string_view purpose, std::string_view bytes) {
  std::string text(purpose);
  text += '\0';
  return text.append(bytes);
}

}  // namespace

// Made of SHA-256 here: OpenSSL's HMAC goes through EVP, which base/digest avoids.
Digest hmac_sha256(std::string_view key, std::string_view bytes) {
  std::string inner(kBlockBytes, '\0');
  if (key.size() > kBlockBytes)
    text_of(digest_of(key)).copy(inner.data(), kBlockBytes);
  else
    key.copy(inner.data(), kBlockBytes);
  std::string outer = inner;
  for (char& c : inner) c = static_cast<char>(c ^ 0x36);
  for (char& c : outer) c = static_cast<char>(c ^ 0x5c);
  return digest_of(outer.append(text_of(digest_of(inner.append(bytes)))));
}

std::string Seal::bytes() const {
  std::string text(reinterpret_cast<const char*>(key_id.data()), key_id.size());
  return text.append(text_of(code));
}

Seal Seal::from_bytes(std::string_view bytes) noexcept {
  Seal seal;
  std::copy_n(bytes.begin(), seal.key_id.size(), seal.key_id.begin());
  std::copy_n(bytes.begin() + seal.key_id.size(), seal.code.bytes.size(), seal.code.bytes.begin());
  return seal;
}

Expected<SigningKeys> SigningKeys::parse(std::string_view text, const std::string& path) {
  constexpr const char* kHint = "`openssl rand -hex 32` makes a key; write one a line";
  SigningKeys keys;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    Key key{{}, key_of(line)};
    if (key.secret.empty())
      return refusal(
          path,
          fmt::format("line {} is no key of {} to {} hexadecimal digits", number, kLeastDigits, kMostDigits),
          kHint);
    const Digest id = digest_of(sealed_text("quern key id", key.secret));
    std::copy_n(id.bytes.begin(), key.id.size(), key.id.begin());
    keys.keys_.push_back(std::move(key));
  }
  if (keys.keys_.empty()) return refusal(path, "it has no keys", kHint);
  return keys;
}

Expected<SigningKeys> SigningKeys::read(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) == 0 && (file.st_mode & (S_IRWXO | S_IWGRP)) != 0)
    return refusal(path, "others can read or change it", "chmod 600 " + path);
  Expected<std::string> text = read_file(path);
  if (!text) return std::move(text).errors();
  return parse(*text, path);
}

Seal SigningKeys::seal(std::string_view purpose, std::string_view bytes) const {
  const Key& key = keys_.front();
  return {key.id, hmac_sha256(key.secret, sealed_text(purpose, bytes))};
}

SealCheck SigningKeys::check(const Seal& seal, std::string_view purpose, std::string_view bytes) const {
  const auto key =
      std::find_if(keys_.begin(), keys_.end(), [&](const Key& each) { return each.id == seal.key_id; });
  if (key == keys_.end()) return SealCheck::unknown_key;
  const Digest wanted = hmac_sha256(key->secret, sealed_text(purpose, bytes));
  const bool equal = CRYPTO_memcmp(wanted.bytes.data(), seal.code.bytes.data(), wanted.bytes.size()) == 0;
  return equal ? SealCheck::good : SealCheck::wrong;
}

}  // namespace quern::base
