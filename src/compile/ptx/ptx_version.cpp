// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_version.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <unordered_map>

namespace quern::compile {
namespace {

using std::string_view;

// The first driver that takes each PTX version, newest first.
struct DriverRow {
  std::uint32_t driver_version;
  PtxVersion version;
};
constexpr DriverRow kDrivers[] = {
    {13010, {9, 1}}, {13000, {9, 0}}, {12090, {8, 8}}, {12080, {8, 7}}, {12070, {8, 6}},
    {12050, {8, 5}}, {12040, {8, 4}}, {12030, {8, 3}}, {12020, {8, 2}}, {12010, {8, 1}},
    {12000, {8, 0}}, {11080, {7, 8}}, {11070, {7, 7}}, {11060, {7, 6}}, {11050, {7, 5}},
    {11040, {7, 4}}, {11030, {7, 3}}, {11020, {7, 2}}, {11010, {7, 1}}, {11000, {7, 0}},
};

// The PTX version that brought each `.target`.
struct TargetRow {
  string_view name;
  PtxVersion version;
};
constexpr TargetRow kTargets[] = {
    {"sm_75", {7, 0}},   {"sm_80", {7, 0}},   {"sm_86", {7, 1}},   {"sm_87", {7, 4}},   {"sm_89", {7, 8}},
    {"sm_90", {7, 8}},   {"sm_90a", {8, 0}},  {"sm_100", {8, 6}},  {"sm_100a", {8, 6}}, {"sm_120", {8, 7}},
    {"sm_120a", {8, 7}}, {"sm_100f", {8, 8}}, {"sm_103", {8, 8}},  {"sm_103a", {8, 8}}, {"sm_103f", {8, 8}},
    {"sm_120f", {8, 8}}, {"sm_121", {8, 8}},  {"sm_121a", {8, 8}}, {"sm_121f", {8, 8}}, {"sm_88", {9, 0}},
    {"sm_110", {9, 0}},  {"sm_110a", {9, 0}}, {"sm_110f", {9, 0}},
};

struct WordsRow {
  PtxVersion version;
  string_view words;  // separated by spaces
};
struct PairRow {
  PtxVersion version;
  string_view opcode;
  string_view modifiers;
};

constexpr WordsRow kOpcodes[] = {
#define QUERN_PTX_OPCODES(major, minor, words) {{major, minor}, words},
#include "compile/ptx/ptx_since.def"
};
constexpr WordsRow kModifiers[] = {
#define QUERN_PTX_MODIFIERS(major, minor, words) {{major, minor}, words},
#include "compile/ptx/ptx_since.def"
};
constexpr WordsRow kDirectives[] = {
#define QUERN_PTX_DIRECTIVES(major, minor, words) {{major, minor}, words},
#include "compile/ptx/ptx_since.def"
};
constexpr WordsRow kSpecials[] = {
#define QUERN_PTX_SPECIALS(major, minor, words) {{major, minor}, words},
#include "compile/ptx/ptx_since.def"
};
constexpr WordsRow kPragmas[] = {
#define QUERN_PTX_PRAGMAS(major, minor, words) {{major, minor}, words},
#include "compile/ptx/ptx_since.def"
};
constexpr PairRow kPairs[] = {
#define QUERN_PTX_PAIR(major, minor, opcode, modifiers) {{major, minor}, opcode, modifiers},
#include "compile/ptx/ptx_since.def"
};

// Older PTX could pass this much to a kernel; more came with 8.1.
constexpr std::uint64_t kSmallParameterBytes = 4352;
constexpr PtxVersion kLargeParameters{8, 1};

// A word of a list, whole.
bool contains(string_view words, string_view word) {
  for (std::size_t at = words.find(word); at != string_view::npos; at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' ')) return true;
  }
  return false;
}

// The rows of one table by their words.
class WordTable {
 public:
  template <std::size_t N>
  explicit WordTable(const WordsRow (&rows)[N]) {
    for (const WordsRow& row : rows)
      for (string_view rest = row.words; !rest.empty();) {
        const string_view word = rest.substr(0, rest.find(' '));
        versions_.emplace(word, row.version);
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      }
  }
  std::optional<PtxVersion> since(string_view word) const {
    const auto found = versions_.find(word);
    return found == versions_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::unordered_map<string_view, PtxVersion> versions_;
};

class VersionReader {
 public:
  explicit VersionReader(string_view ptx) : ptx_(ptx), tokens_(ptx) {}

  VersionNeed read() {
    bool starts = true;  // a statement begins here
    for (token_ = tokens_.next(); !token_.empty() && need_.known; token_ = tokens_.next()) {
      const char first = token_[0];
      if (first == '@') {
        guard();
        starts = true;
        continue;
      }
      if (first == '.')
        directive();
      else if (first == '%')
        special();
      else if (std::isalpha(static_cast<unsigned char>(first)) != 0 && starts)
        instruction();
      else if (token_ == "function_name" || token_ == "inlined_at")
        add(PtxVersion{7, 2}, token_);
      else if (token_ == "mask")
        add(PtxVersion{7, 3}, token_);
      starts = token_ == ";" || token_ == "{" || token_ == "}" || token_ == ":";
    }
    return need_;
  }

 private:
  // Raises the need to `version`; no version: the word is of unknown age.
  void add(std::optional<PtxVersion> version, string_view word) {
    const bool base = version && *version <= PtxVersion{7, 0};
    if (base || (version && *version <= need_.version)) return;
    need_.known = version.has_value();
    need_.version = version.value_or(PtxVersion{});
    need_.word = word;
    const std::size_t offset = static_cast<std::size_t>(token_.data() - ptx_.data());
    need_.line = 1 + static_cast<std::uint32_t>(
                         std::count(ptx_.begin(), ptx_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
  }

  // `@%p1` or `@!%p1`: one token of punctuation, then the register.
  void guard() {
    token_ = tokens_.next();
    if (token_ == "!") token_ = tokens_.next();
  }

  void directive() {
    if (token_ == ".section") return section();
    if (token_ == ".pragma") return pragma();
    if (token_ == ".target") return target();
    // A declaration's words may be joined (".param.u64").
    parts([&](string_view word) { add(directives_.since(word), word); });
  }

  void section() {
    add(PtxVersion{7, 2},
        ".section");  // labels in it; differences of labels and negative numbers are younger
    for (; !token_.empty() && token_ != "}"; token_ = tokens_.next())
      if (token_ == "-") add(PtxVersion{7, 5}, ".section");
  }

  void pragma() {
    for (token_ = tokens_.next(); !token_.empty() && token_ != ";"; token_ = tokens_.next()) {
      if (token_.size() < 2 || token_[0] != '"') continue;
      const string_view text = token_.substr(1, token_.size() - 2);
      const string_view word = text.substr(0, text.find_first_of(" =\t"));
      add(pragmas_.since(word), word);
    }
  }

  void target() {
    token_ = tokens_.next();
    const auto row = std::find_if(std::begin(kTargets), std::end(kTargets),
                                  [&](const TargetRow& r) { return r.name == token_; });
    add(row == std::end(kTargets) ? std::nullopt : std::optional(row->version), token_);
  }

  // Names of a program's registers are `%` with letters and digits; names with a dot or an underscore are
  // special registers.
  void special() {
    string_view name = token_.substr(1);
    name = name.substr(0, name.find('.'));
    if (const std::optional<PtxVersion> version = specials_.since(name))
      add(version, token_);
    else if (name.find('_') != string_view::npos || token_.find('.') != string_view::npos)
      add(std::nullopt, token_);
  }

  void instruction() {
    const string_view whole = token_;
    const string_view opcode = whole.substr(0, whole.find('.'));
    unsigned types = 0;
    bool four = false, wide = false;
    if (opcode.size() == whole.size() && is_label()) return;
    add(opcodes_.since(opcode), opcode);
    parts([&](string_view word) {
      add(modifiers_.since(word), word);
      for (const PairRow& row : kPairs)
        if (row.opcode == opcode && contains(row.modifiers, word)) add(row.version, whole);
      types += word.starts_with('f') || word.starts_with("bf") ? 1 : 0;
      four = four || word == "v4";
      wide = wide || word == "b64" || word == "u64" || word == "s64" || word == "f64";
    });
    if (four && wide) add(PtxVersion{8, 8}, whole);  // 256-bit accesses
    const bool arithmetic = opcode == "add" || opcode == "sub" || opcode == "fma";
    if (arithmetic && types > 1) add(PtxVersion{8, 6}, whole);  // mixed precision
    if (opcode == "ld" || opcode == "st")
      if (whole.find(".volatile") != string_view::npos && whole.find(".local") != string_view::npos)
        add(PtxVersion{9, 1}, whole);
    if (opcode == "min" || opcode == "max" || opcode == "lop3") operands(opcode);
  }

  bool is_label() const {
    const std::size_t end = static_cast<std::size_t>(token_.data() - ptx_.data()) + token_.size();
    return end < ptx_.size() && ptx_[end] == ':';
  }

  // min and max of three values, and lop3 with a predicate result.
  void operands(string_view opcode) {
    const string_view instruction = token_;
    unsigned commas = 0;
    bool predicate = false;
    PtxTokens ahead(ptx_.substr(static_cast<std::size_t>(token_.data() - ptx_.data()) + token_.size()));
    for (string_view token = ahead.next(); !token.empty() && token != ";"; token = ahead.next()) {
      commas += token == "," ? 1 : 0;
      predicate = predicate || token == "|";
    }
    if (opcode == "lop3" ? predicate : commas > 2)
      add(opcode == "lop3" ? PtxVersion{8, 2} : PtxVersion{8, 8}, instruction);
  }

  template <class F>
  void parts(F&& visit) {
    for (std::size_t dot = token_.find('.'); dot != string_view::npos && need_.known;) {
      const std::size_t next = token_.find('.', dot + 1);
      const string_view word = token_.substr(dot + 1, next == string_view::npos ? next : next - dot - 1);
      if (!word.empty()) visit(word);
      dot = next;
    }
  }

  const WordTable opcodes_{kOpcodes}, modifiers_{kModifiers}, directives_{kDirectives}, specials_{kSpecials},
      pragmas_{kPragmas};
  string_view ptx_;
  PtxTokens tokens_;
  string_view token_;
  VersionNeed need_;
};

std::string text_of(PtxVersion version) { return fmt::format("{}.{}", version.major, version.minor); }

std::string cuda_of(std::uint32_t driver_version) {
  return fmt::format("{}.{}", driver_version / 1000, driver_version % 1000 / 10);
}

std::string_view line_at(string_view text, std::uint32_t line) {
  for (std::uint32_t i = 1; i < line && !text.empty(); ++i)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  return text.substr(0, text.find('\n'));
}

Diagnostic too_new(string_view ptx, PtxVersion version, std::uint32_t driver_version,
                   const VersionNeed& need) {
  Diagnostic diagnostic;
  diagnostic.code = "ptx-version";
  const PtxVersion limit = version_of_driver(driver_version);
  diagnostic.message =
      fmt::format("cannot load PTX {} on a driver for CUDA {}", text_of(version), cuda_of(driver_version));
  if (limit == PtxVersion{}) {
    diagnostic.message += ", which is older than CUDA 11.0";
  } else {
    const std::string since = need.known ? "is of PTX " + text_of(need.version) : "is of unknown age";
    diagnostic.message +=
        fmt::format(", which takes PTX up to {}: '{}' {}", text_of(limit), need.word, since);
    diagnostic.span = {"<generated PTX>", need.line, 0, 0};
    diagnostic.source_line = line_at(ptx, need.line);
  }
  diagnostic.hint = fmt::format("update the driver, or use the NVRTC of CUDA {} or older (QUERN_NVRTC)",
                                cuda_of(driver_version));
  return diagnostic;
}

VersionNeed need_of(string_view ptx) {
  VersionNeed need = version_needed(ptx);
  if (!need.known || need.version >= kLargeParameters) return need;
  for (const abi::EntryInfo& entry : read_entries(ptx))
    if (!entry.parameters.empty() &&
        entry.parameters.back().offset + std::uint64_t{entry.parameters.back().size} > kSmallParameterBytes)
      return {kLargeParameters, true, "parameters of more than 4352 bytes", 1};
  return need;
}

}  // namespace

PtxVersion version_of_driver(std::uint32_t driver_version) noexcept {
  for (const DriverRow& row : kDrivers)
    if (driver_version >= row.driver_version) return row.version;
  return {};
}

VersionNeed version_needed(string_view ptx) { return VersionReader(ptx).read(); }

Expected<void> fit_to_driver(std::string& ptx, std::uint32_t driver_version) {
  if (driver_version == 0) return {};
  const std::optional<VersionLine> line = find_version(ptx);
  const PtxVersion limit = version_of_driver(driver_version);
  // A driver newer than the table supports at least the table's newest version; it judges newer features
  // itself.
  if (!line || line->version <= limit || driver_version > kDrivers[0].driver_version) return {};
  const VersionNeed need = need_of(ptx);
  if (limit == PtxVersion{} || !need.known || need.version > limit)
    return too_new(ptx, line->version, driver_version, need);
  ptx.replace(line->begin, line->end - line->begin, text_of(limit));
  return {};
}

}  // namespace quern::compile
