// SPDX-License-Identifier: Apache-2.0
// Results of compile requests: their parts, and their bytes in the caches.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "serve/bounded_store.hpp"

namespace quern::serve {

/// The answer to a compile request: an HTTP status and the JSON body.
struct Result {
  int status = 200;
  std::string body;
  std::shared_ptr<const std::string> machine_code;  ///< that the body names by its digest; may be null
};
using ResultPointer = std::shared_ptr<const Result>;
using ArtifactStore = BoundedStore<std::string>;

/// The cache that a result came from.
enum class Tier : std::uint8_t { none, shared, memory, disk, store };
std::string_view name(Tier tier) noexcept;

/// A result that is an error of the protocol.
ResultPointer error_result(int status, const std::string& code, const std::string& message,
                           const std::string& hint = {});

/// The result as bytes of the disk cache and of shared stores, and back; null if the bytes are not a result.
std::string to_bytes(const Result& result);
ResultPointer result_from_bytes(std::string_view bytes);

/// Adds the result's machine code to those that clients may fetch.
void offer_machine_code(ArtifactStore& artifacts, const Result& result);

}  // namespace quern::serve
