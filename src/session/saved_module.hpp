// SPDX-License-Identifier: Apache-2.0
// A compiled module as one file; docs/saved-modules.md describes the bytes.
//
//   file    := magic:8 bytes format_version:u32 payload_bytes:u64 sha256:32 bytes payload
//   payload := writer:text language:u8 file_name:text compute:u32 has_sm:flag sm:u32 driver_version:u32
//              options name_expressions constants parts pieces
//   options, name_expressions, constants := count { text }
//   parts   := count { name:text image:text }
//   pieces  := count { kernel:text types:text image:text }
//
// Numbers and texts are as in compile/image_format.hpp, which describes an image. The digest is of magic,
// format_version, payload_bytes and payload.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"
#include "session/code_table.hpp"

namespace quern::session {

/// Larger files are not read.
inline constexpr std::uint64_t kMostSavedBytes = std::uint64_t{1} << 30;

inline constexpr std::string_view kSavedMagic = "\x89quernM\n";
inline constexpr std::uint32_t kSavedFormatVersion = 1;

struct SavedModule {
  using Image = std::shared_ptr<const abi::PtxImage>;
  /// One source of a module that was linked; the whole of any other.
  struct Part {
    std::string name;
    Image image;
  };

  std::string writer;  ///< the version of the quern that wrote it
  abi::Language language = abi::Language::cuda;
  std::string file_name;  ///< the source's, for messages
  abi::Target target;
  std::vector<std::string> options;
  std::vector<std::string> name_expressions;
  std::vector<std::string> constants;  ///< names of the bound ones
  std::vector<Part> parts;             ///< of Kernel Python: one, which names the kernels and has no code
  std::vector<CodeTable::Piece> pieces;
};

/// Fails with "process-exit" and the like if the digest cannot be computed any more.
Expected<std::string> write_saved(const SavedModule& module);

/// A header, followed by any payload.
Expected<std::string> with_saved_header(std::string_view payload, const std::string& attempted);

/// The bytes need not be trusted. `name` is the file's, for messages. Codes: "saved-damaged",
/// "saved-version". Parameters and names of kernels agree with the PTX.
Expected<SavedModule> read_saved(std::string_view bytes, const std::string& name);

}  // namespace quern::session
