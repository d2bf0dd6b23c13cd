// SPDX-License-Identifier: Apache-2.0
// Facts about a PTX text that compile needs, read without a full parse: its version and target, its entries
// with the layout of their parameters. The ptx component verifies PTX.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// Splits PTX into words ("ld.global.f32", "%r1", ".entry"), numbers and single punctuation characters;
/// comments are skipped, a string is one token with its quotes. Never fails: unknown bytes are tokens of
/// their own.
class PtxTokens {
 public:
  explicit PtxTokens(std::string_view text) : text_(text) {}
  /// The next token; empty at the end. A view into the text.
  std::string_view next();

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

struct PtxVersion {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  friend auto operator<=>(const PtxVersion&, const PtxVersion&) = default;
};

/// The number in `.version 9.0`, and its position in the text.
struct VersionLine {
  PtxVersion version;
  std::size_t begin = 0;
  std::size_t end = 0;
};
/// The first `.version` directive, which PTX requires to be the first directive of all; nothing if there is
/// none.
std::optional<VersionLine> find_version(std::string_view ptx);

/// "sm_89" of `.target sm_89`; empty if there is none.
std::string_view find_target(std::string_view ptx);

/// Every `.entry` with a body: lowered name, parameters (offset, size, alignment, the PTX type of single
/// values, and pointer where `.ptr` says so), the static shared memory it and the functions it calls declare,
/// and the threads it allows. Names of the author are left empty.
std::vector<abi::EntryInfo> read_entries(std::string_view ptx);

/// The same, with the module's variables in global and constant memory. Those that are only declared
/// (.extern) are left out, as are the author's names.
struct PtxOutline {
  std::vector<abi::EntryInfo> entries;
  std::vector<abi::VariableInfo> variables;
};
PtxOutline read_outline(std::string_view ptx);

/// True if the kernels of the image are entries of its PTX with parameters at the same offsets: a launch
/// copies parameters to the offsets of the image. For images from files and other machines.
bool fits_ptx(const abi::PtxImage& image);
/// The same for an image that another machine made for the target; the reason why it is not, or empty.
std::string why_not_for(const abi::Target& target, const abi::PtxImage& image);

}  // namespace quern::compile
