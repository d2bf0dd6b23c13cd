// SPDX-License-Identifier: Apache-2.0
// The one message that a value's entry under /ac is: ActionResult of Bazel's Remote Execution API, in the
// wire format of Protocol Buffers, with one output file. bazel-remote checks entries under /ac, and answers
// with those alone whose files it has under /cas.
//
//   ActionResult { 2: OutputFile { 1: path "quern", 2: Digest { 1: hash in hexadecimal digits, 2: size } } }
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.hpp"

namespace quern::store {

std::string write_action_result(const base::Digest& digest, std::uint64_t size_bytes);
/// The hash of the first output file, 64 hexadecimal digits; nothing for bytes that are no such message.
std::optional<std::string> read_action_result(std::string_view bytes);

}  // namespace quern::store
