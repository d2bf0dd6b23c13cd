// SPDX-License-Identifier: Apache-2.0
// The messages of docs/protocol.md as data, and their JSON. Readers trust nothing: sizes, types and values
// are checked, and unknown fields of requests are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::remote {

inline constexpr int kProtocol = 1;

/// A header of the author's: its text, or the digest of its text.
struct HeaderEntry {
  std::string name;
  bool by_digest = false;
  std::string text;       ///< where !by_digest
  base::Digest digest{};  ///< where by_digest
};

/// The body of POST /v1/compile. Headers are in `headers`; `request.headers` is empty.
struct CompileMessage {
  abi::KernelRequest request;
  std::vector<HeaderEntry> headers;
};

/// The server's NVRTC and headers.
struct ToolkitIdentity {
  std::string nvrtc;    ///< "13.0"
  std::string headers;  ///< "13.0"; empty if not known
  std::string digest;   ///< of all files
  /// The same by parts, which a client compares with its own; empty if not known, or a server of an earlier
  /// version.
  std::string libraries, header_contents;
  std::string quern;  ///< the server's own part of a compilation
};

/// The body of the answer 200.
struct CompileAnswer {
  std::string key;
  ToolkitIdentity toolkit;
  abi::PtxImage image;              ///< without machine code
  std::string machine_code_digest;  ///< empty if there is none
  std::uint64_t machine_code_bytes = 0;
};

/// The body of every other answer.
struct ErrorAnswer {
  std::string code;
  std::string message;
  std::string hint;
  std::string request_id;
  Diagnostics diagnostics;
  std::vector<std::string> missing;  ///< headers-missing: digests
};

/// Errors have the codes "bad-request" and "unknown-field".
Expected<CompileMessage> read_compile_message(std::string_view json);
/// Fails for a request that JSON cannot hold as it is: text that is not UTF-8.
Expected<std::string> write_compile_message(const CompileMessage& message);

/// Bytes that are not UTF-8 are replaced: messages may quote the author's.
std::string write_answer(const CompileAnswer& answer);
/// The server's toolkit in the document of GET /v1/stats; nothing if it is not there.
std::optional<ToolkitIdentity> read_toolkit_of_stats(std::string_view json);
Expected<CompileAnswer> read_answer(std::string_view json);

std::string write_error(const ErrorAnswer& error);
/// Reads any body as an error answer; the code is empty if the body is not one.
ErrorAnswer read_error(std::string_view json);

/// "cuda", "ptx" or "python".
std::string_view language_name(abi::Language language) noexcept;

/// 64 lower-case hexadecimal digits; nothing for any other text.
std::optional<base::Digest> digest_named(std::string_view hex);

/// Digest of all that determines the result; format version and toolkit included. Every header needs its
/// text or its digest.
base::Digest message_key(const CompileMessage& message, const std::string& toolkit_digest);

}  // namespace quern::remote
