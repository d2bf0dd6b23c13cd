// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <map>

#include "base/byte_stream.hpp"
#include "cpu/abi/limits.hpp"
#include "cpu/code/image.hpp"

namespace quern::cpu {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr std::string_view kMagic = "quern-code";
constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 30;

/// File names, each stored once, by the index that locations use.
class FileTable {
 public:
  explicit FileTable(const std::vector<ir::Location>& locations) {
    for (const ir::Location& at : locations)
      if (index_.try_emplace(at.file, static_cast<std::uint32_t>(names_.size())).second)
        names_.push_back(at.file);
  }
  const std::vector<std::string_view>& names() const noexcept { return names_; }
  std::uint32_t index(std::string_view name) const { return index_.find(name)->second; }

 private:
  std::map<std::string_view, std::uint32_t> index_;
  std::vector<std::string_view> names_;
};

void write_symbols(const std::vector<SymbolUse>& symbols, ByteWriter& to) {
  to.count(symbols.size());
  for (const SymbolUse& use : symbols)
    to.text(use.name).number(static_cast<std::uint8_t>(use.space)).number(use.shared_offset);
}

void read_symbols(ByteReader& from, std::vector<SymbolUse>& symbols) {
  symbols.resize(from.count(sizeof(std::uint64_t) * 2 + 1));
  for (SymbolUse& use : symbols) {
    use.name = from.string();
    use.space = from.enumerator(ir::Space::param);
    use.shared_offset = from.number<std::uint64_t>();
  }
}

void write_locations(const std::vector<ir::Location>& locations, ByteWriter& to) {
  const FileTable files(locations);
  to.count(files.names().size());
  for (const std::string_view name : files.names()) to.text(name);
  to.count(locations.size());
  for (const ir::Location& at : locations)
    for (const std::uint32_t field : {files.index(at.file), at.line, at.column, at.ptx_line, at.inlined_at})
      to.number(field);
}

/// Returns false if a location refers to a file that is not in the table.
bool read_locations(ByteReader& from, std::vector<ir::Location>& locations) {
  std::vector<std::string_view> files(from.count(sizeof(std::uint64_t)));
  for (std::string_view& name : files) name = from.text();
  locations.resize(from.count(sizeof(std::uint32_t) * 5));
  for (ir::Location& at : locations) {
    const auto file = from.number<std::uint32_t>();
    if (file >= files.size()) return false;
    at.file = files[file];
    for (std::uint32_t* const field : {&at.line, &at.column, &at.ptx_line, &at.inlined_at})
      *field = from.number<std::uint32_t>();
  }
  return true;
}

void write_facts(const CodeFacts& facts, ByteWriter& to) {
  to.number(facts.digest).number(facts.frame_bytes).flag(facts.waits).flag(facts.calls);
  to.number(facts.streamed).number(static_cast<std::uint8_t>(facts.atomics));
  to.number(facts.local.bytes).number(facts.local.activation_bytes).flag(facts.local.calls);
  write_symbols(facts.symbols, to);
  write_locations(facts.locations, to);
}

bool read_facts(ByteReader& from, CodeFacts& facts) {
  facts.digest = from.number<std::uint64_t>();
  facts.frame_bytes = from.number<std::uint64_t>();
  facts.waits = from.flag();
  facts.calls = from.flag();
  facts.streamed = from.number<std::uint64_t>();
  facts.atomics = static_cast<ir::AtomicUse>(from.number<std::uint8_t>());
  facts.local.bytes = from.number<std::uint64_t>();
  facts.local.activation_bytes = from.number<std::uint64_t>();
  facts.local.calls = from.flag();
  read_symbols(from, facts.symbols);
  return read_locations(from, facts.locations);
}

void write_code(const LinkedCode& code, ByteWriter& to) {
  to.number(code.text_bytes).number(code.entry);
  to.count(code.helpers.size());
  for (const std::string& name : code.helpers) to.text(name);
  to.count(code.addresses.size());
  for (const std::uint64_t at : code.addresses) to.number(at);
  to.text(code.bytes);
}

void read_code(ByteReader& from, LinkedCode& code) {
  code.text_bytes = from.number<std::uint64_t>();
  code.entry = from.number<std::uint64_t>();
  code.helpers.resize(from.count(sizeof(std::uint64_t)));
  for (std::string& name : code.helpers) name = from.string();
  code.addresses.resize(from.count(sizeof(std::uint64_t)));
  for (std::uint64_t& at : code.addresses) at = from.number<std::uint64_t>();
  code.bytes = from.string();
}

bool is_sound(const CodeFacts& facts) {
  constexpr std::uint64_t kMostLocal = std::uint64_t{ir::kMaxThreadLocalBytes} + ir::kCalledStackBytes;
  if (facts.frame_bytes > kMaxFrameBytes || facts.local.bytes > kMostLocal ||
      facts.local.activation_bytes > facts.local.bytes || facts.atomics > ir::AtomicUse::other)
    return false;
  for (std::uint32_t i = 0; i < facts.locations.size(); ++i) {
    const std::uint32_t outer = facts.locations[i].inlined_at;
    // only earlier locations are valid, so that the chain ends
    if (outer != ir::kNone && outer >= i) return false;
  }
  return true;
}

bool is_address(const LinkedCode& code, std::uint64_t at) {
  std::uint64_t target = 0;
  if (at < code.text_bytes || code.bytes.size() < sizeof target || at > code.bytes.size() - sizeof target)
    return false;
  std::memcpy(&target, code.bytes.data() + at, sizeof target);
  return target < code.bytes.size();
}

bool is_sound(const LinkedCode& code) {
  return code.bytes.size() <= kMaxImageBytes && code.bytes.size() % kImageAlignment == 0 &&
         code.text_bytes <= code.bytes.size() && code.entry < code.text_bytes &&
         std::ranges::all_of(code.addresses, [&](std::uint64_t at) { return is_address(code, at); });
}

bool read_all(std::string_view bytes, CodeImage& image) {
  ByteReader from(bytes);
  if (from.text() != kMagic || from.number<std::uint32_t>() != kVersion) return false;
  if (!read_facts(from, image.facts)) return false;
  read_code(from, image.code);
  return from.good() && from.at_end() && is_sound(image.facts) && is_sound(image.code);
}

}  // namespace

std::string write_image(const CodeImage& image) {
  ByteWriter to;
  to.text(kMagic).number(kVersion);
  write_facts(image.facts, to);
  write_code(image.code, to);
  return to.take();
}

Expected<CodeImage> read_image(std::string_view bytes) {
  CodeImage image;
  if (read_all(bytes, image)) return image;
  return Diagnostic{.code = "code-image",
                    .message = "the stored machine code is damaged, or of another version of quern",
                    .hint = "it is generated anew"};
}

}  // namespace quern::cpu
