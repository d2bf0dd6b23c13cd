// SPDX-License-Identifier: Apache-2.0
// A PtxImage as bytes, for files: the compile cache's and saved modules.
//
//   image      := format_version:u32 ptx:text machine_code:text entries variables cuda_source:text
//                 of_python:flag log compile_ms:real
//   entries    := count { name:text lowered_name:text parameters shared_bytes:u64 max_threads:u32 }
//   parameters := count { name:text type:text offset:u32 size:u32 align:u32 pointer:flag read_only:flag
//                         pointee:text }
//   variables  := count { name:text lowered_name:text }
//   log        := count { severity:u8 code:text span message:text notes hint:text source_line:text }
//   notes      := count { span message:text }
//   span       := file:text line:u32 column:u32 end_column:u32
//
// Numbers are little-endian, a count is a u64, a text is its length as a u64 and its bytes
// (base/byte_stream).
#pragma once

#include <string>
#include <string_view>

#include "abi/kernel_request.hpp"
#include "base/byte_stream.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// Raised whenever the bytes change their meaning.
inline constexpr std::uint32_t kImageFormatVersion = 1;

std::string write_image(const abi::PtxImage& image);

/// Takes arbitrary bytes; checksums must find a damaged image that can still be read. The diagnostic has
/// the code "image-damaged", or "image-version" for a format that this quern does not know.
Expected<abi::PtxImage> read_image(std::string_view bytes);

/// A list of diagnostics alone, as in an image: a failed compilation.
void write_diagnostics(base::ByteWriter& writer, const Diagnostics& diagnostics);
Diagnostics read_diagnostics(base::ByteReader& reader);

}  // namespace quern::compile
