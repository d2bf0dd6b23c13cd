// SPDX-License-Identifier: Apache-2.0
#include "serve/result.hpp"

#include <span>
#include <utility>

#include "base/byte_stream.hpp"
#include "base/digest.hpp"
#include "remote/messages.hpp"

namespace quern::serve {

std::string_view name(Tier tier) noexcept {
  constexpr std::string_view kNames[] = {"none", "shared", "memory", "disk", "store"};
  return kNames[static_cast<std::size_t>(tier)];
}

ResultPointer error_result(int status, const std::string& code, const std::string& message,
                           const std::string& hint) {
  remote::ErrorAnswer error;
  error.code = code;
  error.message = message;
  error.hint = hint;
  return std::make_shared<const Result>(Result{status, remote::write_error(error), nullptr});
}

std::string to_bytes(const Result& result) {
  base::ByteWriter writer;
  writer.number(static_cast<std::uint32_t>(result.status)).text(result.body);
  writer.text(result.machine_code ? *result.machine_code : std::string());
  return writer.take();
}

ResultPointer result_from_bytes(std::string_view bytes) {
  base::ByteReader reader(bytes);
  Result result{static_cast<int>(reader.number<std::uint32_t>()), reader.string(), nullptr};
  if (std::string code = reader.string(); !code.empty())
    result.machine_code = std::make_shared<const std::string>(std::move(code));
  if (!reader.good() || !reader.at_end()) return nullptr;
  return std::make_shared<const Result>(std::move(result));
}

void offer_machine_code(ArtifactStore& artifacts, const Result& result) {
  if (!result.machine_code) return;
  const auto bytes = std::as_bytes(std::span(*result.machine_code));
  artifacts.put(base::sha256(bytes), result.machine_code, bytes.size());
}

}  // namespace quern::serve
