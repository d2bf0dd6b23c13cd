// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>

#include "cpu/code/fields.hpp"
#include "cpu/code/image.hpp"
#include "cpu/ir/limits.hpp"

namespace quern::cpu {
namespace {

constexpr std::string_view kMagic = "quern-code";
constexpr std::uint32_t kVersion = 1;
constexpr std::uint64_t kMaxImageBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{1} << 30;

/// File names, each once: by the index that locations name them by.
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

void write_symbols(const std::vector<SymbolUse>& symbols, FieldWriter& to) {
  to.add(std::uint64_t{symbols.size()});
  for (const SymbolUse& use : symbols) {
    to.add(std::string_view(use.name));
    to.add(static_cast<std::uint8_t>(use.space));
    to.add(use.shared_offset);
  }
}

void read_symbols(FieldReader& from, std::vector<SymbolUse>& symbols) {
  symbols.resize(from.count(sizeof(std::uint64_t) * 2 + 1));
  for (SymbolUse& use : symbols) {
    use.name = from.text();
    const auto space = from.number<std::uint8_t>();
    from.need(space <= static_cast<std::uint8_t>(ir::Space::param));
    use.space = static_cast<ir::Space>(space);
    use.shared_offset = from.number<std::uint64_t>();
  }
}

void write_locations(const std::vector<ir::Location>& locations, FieldWriter& to) {
  const FileTable files(locations);
  to.add(std::uint64_t{files.names().size()});
  for (const std::string_view name : files.names()) to.add(name);
  to.add(std::uint64_t{locations.size()});
  for (const ir::Location& at : locations)
    for (const std::uint32_t field : {files.index(at.file), at.line, at.column, at.ptx_line, at.inlined_at})
      to.add(field);
}

void read_locations(FieldReader& from, std::vector<ir::Location>& locations) {
  std::vector<std::string_view> files(from.count(sizeof(std::uint64_t)));
  for (std::string_view& name : files) name = from.text();
  locations.resize(from.count(sizeof(std::uint32_t) * 5));
  for (std::uint32_t i = 0; i < locations.size(); ++i) {
    ir::Location& at = locations[i];
    const auto file = from.number<std::uint32_t>();
    from.need(file < files.size());
    if (!from.good()) return;
    at.file = files[file];
    at.line = from.number<std::uint32_t>();
    at.column = from.number<std::uint32_t>();
    at.ptx_line = from.number<std::uint32_t>();
    at.inlined_at = from.number<std::uint32_t>();
    // Backwards, so that a chain of them ends.
    from.need(at.inlined_at == ir::kNone || at.inlined_at < i);
  }
}

void write_facts(const CodeFacts& facts, FieldWriter& to) {
  to.add(facts.digest);
  to.add(facts.frame_bytes);
  to.add_flag(facts.waits);
  to.add_flag(facts.calls);
  to.add(facts.local.bytes);
  to.add(facts.local.activation_bytes);
  to.add_flag(facts.local.calls);
  write_symbols(facts.symbols, to);
  write_locations(facts.locations, to);
}

void read_facts(FieldReader& from, CodeFacts& facts) {
  facts.digest = from.number<std::uint64_t>();
  facts.frame_bytes = from.number<std::uint64_t>();
  from.need(facts.frame_bytes <= kMaxFrameBytes);
  facts.waits = from.flag();
  facts.calls = from.flag();
  facts.local.bytes = from.number<std::uint64_t>();
  facts.local.activation_bytes = from.number<std::uint64_t>();
  from.need(facts.local.bytes <= std::uint64_t{ir::kMaxThreadLocalBytes} + ir::kCalledStackBytes &&
            facts.local.activation_bytes <= facts.local.bytes);
  facts.local.calls = from.flag();
  read_symbols(from, facts.symbols);
  read_locations(from, facts.locations);
}

void write_code(const LinkedCode& code, FieldWriter& to) {
  to.add(code.text_bytes);
  to.add(code.entry);
  to.add(std::uint64_t{code.helpers.size()});
  for (const std::string& name : code.helpers) to.add(std::string_view(name));
  to.add(std::uint64_t{code.addresses.size()});
  for (const std::uint64_t at : code.addresses) to.add(at);
  to.add(std::string_view(code.bytes));
}

bool is_address(const LinkedCode& code, std::uint64_t at) {
  std::uint64_t target = 0;
  if (at < code.text_bytes || code.bytes.size() < sizeof target || at > code.bytes.size() - sizeof target)
    return false;
  std::memcpy(&target, code.bytes.data() + at, sizeof target);
  return target < code.bytes.size();
}

void read_code(FieldReader& from, LinkedCode& code) {
  code.text_bytes = from.number<std::uint64_t>();
  code.entry = from.number<std::uint64_t>();
  code.helpers.resize(from.count(sizeof(std::uint64_t)));
  for (std::string& name : code.helpers) name = from.text();
  code.addresses.resize(from.count(sizeof(std::uint64_t)));
  for (std::uint64_t& at : code.addresses) at = from.number<std::uint64_t>();
  code.bytes = from.text();
  from.need(code.bytes.size() <= kMaxImageBytes && code.bytes.size() % kImageAlignment == 0 &&
            code.text_bytes <= code.bytes.size() && code.entry < code.text_bytes);
  for (const std::uint64_t at : code.addresses) from.need(is_address(code, at));
}

}  // namespace

std::string write_image(const CodeImage& image) {
  FieldWriter to;
  to.add(kMagic);
  to.add(kVersion);
  write_facts(image.facts, to);
  write_code(image.code, to);
  return to.take();
}

Expected<CodeImage> read_image(std::string_view bytes) {
  FieldReader from(bytes);
  from.need(from.text() == kMagic);
  from.need(from.number<std::uint32_t>() == kVersion);
  CodeImage image;
  if (from.good()) read_facts(from, image.facts);
  if (from.good()) read_code(from, image.code);
  if (from.at_end()) return image;
  return Diagnostic{.code = "code-image",
                    .message = "the stored machine code is damaged, or of another version of quern",
                    .hint = "it is generated anew"};
}

}  // namespace quern::cpu
