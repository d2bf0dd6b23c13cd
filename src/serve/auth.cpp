// SPDX-License-Identifier: Apache-2.0
#include "serve/auth.hpp"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <sys/stat.h>

#include <algorithm>
#include <span>

#include "base/file.hpp"

namespace quern::serve {
namespace {

constexpr std::size_t kLeastTokenSize = 16;
constexpr std::string_view kScheme = "Bearer ";

Diagnostic refusal(const std::string& path, const std::string& reason, const std::string& hint) {
  Diagnostic diagnostic;
  diagnostic.code = "token-file";
  diagnostic.message = fmt::format("cannot use token file {}: {}", path, reason);
  diagnostic.hint = hint;
  return diagnostic;
}

base::Digest digest_of(std::string_view token) { return base::sha256(std::as_bytes(std::span(token))); }

std::string_view trim(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
  return line;
}

}  // namespace

Expected<Tokens> Tokens::parse(std::string_view text, const std::string& path) {
  Tokens tokens;
  tokens.required_ = true;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (line.empty() || line.front() == '#') continue;
    const bool printable =
        std::all_of(line.begin(), line.end(), [](char c) { return c > ' ' && c < '\x7f' && c != '%'; });
    if (line.size() < kLeastTokenSize || !printable)
      return refusal(path, fmt::format("line {} is no token", number),
                     fmt::format("a token has at least {} printable characters, no spaces and no %; `openssl "
                                 "rand -hex 32` makes one",
                                 kLeastTokenSize));
    tokens.digests_.push_back(digest_of(line));
  }
  if (tokens.digests_.empty())
    return refusal(path, "it has no tokens", "`openssl rand -hex 32` makes one; write one a line");
  return tokens;
}

Expected<Tokens> Tokens::read(const std::string& path) {
  struct stat file{};
  if (::stat(path.c_str(), &file) == 0 && (file.st_mode & S_IRWXO) != 0)
    return refusal(path, "others than its owner and group can read it", "chmod 600 " + path);
  Expected<std::string> text = base::read_file(path);
  if (!text) return std::move(text).errors();
  return parse(*text, path);
}

bool Tokens::accept(std::string_view authorization) const {
  if (!required_) return true;
  if (!authorization.starts_with(kScheme)) return false;
  const base::Digest given = digest_of(trim(authorization.substr(kScheme.size())));
  int matches = 0;
  for (const base::Digest& each : digests_)
    matches += CRYPTO_memcmp(each.bytes.data(), given.bytes.data(), given.bytes.size()) == 0 ? 1 : 0;
  return matches != 0;
}

}  // namespace quern::serve
