// SPDX-License-Identifier: Apache-2.0
#include "compile/ptx/ptx_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace quern::compile {
namespace {

using std::string_view;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '.' || c == '%';
}

std::optional<std::uint64_t> number(string_view text) {
  std::uint64_t value = 0;
  const int base = text.starts_with("0x") || text.starts_with("0X") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  if (text.ends_with('U')) text.remove_suffix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Bytes of a fundamental type's word (".u64", ".f16x2", ".b128"); 0 for other words.
std::uint32_t type_bytes(string_view word) {
  if (word == ".pred") return 1;
  if (word.size() < 3 || word[0] != '.' || std::string_view("bsuf").find(word[1]) == string_view::npos)
    return 0;
  if (word == ".f16x2") return 4;
  const std::optional<std::uint64_t> bits = number(word.substr(2));
  if (!bits || *bits < 8 || *bits > 128) return 0;
  return static_cast<std::uint32_t>(*bits / 8);
}

// A declaration after its state space: `.align 8 .b8 name[16]`, `.u64 .ptr .global .align 4 name`. Stops at
// the token that ends it, which it returns.
struct Declaration {
  string_view name;
  string_view type;  // ".f32" of a single value; empty for arrays and vectors
  std::uint64_t size = 0;
  std::uint32_t align = 0;
  bool pointer = false;
  bool unsized = false;
};

class DeclarationReader {
 public:
  DeclarationReader(PtxTokens& tokens, Declaration& out) : tokens_(tokens), out_(out) {}

  string_view read() {
    string_view token = tokens_.next();
    for (; !token.empty() && token[0] == '.'; token = tokens_.next()) attribute(token);
    out_.name = token;
    for (token = tokens_.next(); token == "["; token = tokens_.next()) extent();
    if (out_.align == 0) out_.align = element_ * vector_;
    out_.size = std::uint64_t{element_} * vector_ * count_;
    if (array_ || vector_ != 1) out_.type = {};
    return token;
  }

 private:
  void attribute(string_view word) {
    if (word == ".align") {
      const std::uint64_t value = number(tokens_.next()).value_or(0);
      // `.ptr .align 4` gives the alignment of the pointee.
      if (!out_.pointer && value <= 4096) out_.align = static_cast<std::uint32_t>(value);
    } else if (word == ".ptr") {
      out_.pointer = true;
    } else if (word == ".attribute") {
      for (int depth = tokens_.next() == "(" ? 1 : 0; depth > 0;) {
        const string_view token = tokens_.next();
        if (token.empty()) return;
        depth += token == "(" ? 1 : token == ")" ? -1 : 0;
      }
    } else if (word == ".v2" || word == ".v4") {
      vector_ = word == ".v2" ? 2 : 4;
    } else if (const std::uint32_t bytes = type_bytes(word); bytes != 0) {
      element_ = bytes;
      out_.type = word;
    }
  }

  void extent() {
    array_ = true;
    const string_view token = tokens_.next();
    if (token == "]") {
      out_.unsized = true;
      count_ = 0;
      return;
    }
    count_ *= number(token).value_or(0);
    tokens_.next();
  }

  PtxTokens& tokens_;
  Declaration& out_;
  std::uint32_t element_ = 0;
  std::uint32_t vector_ = 1;
  std::uint64_t count_ = 1;
  bool array_ = false;
};

std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  return align <= 1 ? value : (value + align - 1) / align * align;
}

struct SharedVariable {
  string_view name;
  std::uint64_t size = 0;
  std::uint32_t align = 1;
};

// One `.entry` or `.func` as far as the scan reads it.
struct Body {
  abi::EntryInfo info;
  bool entry = false;
  std::vector<SharedVariable> shared;
  std::vector<string_view> mentions;  // symbols that its instructions name
};

class EntryReader {
 public:
  explicit EntryReader(string_view ptx) : tokens_(ptx) {}

  PtxOutline read() {
    for (string_view token = tokens_.next(); !token.empty(); token = tokens_.next()) {
      if (token == ".entry" || token == ".func")
        function(token == ".entry");
      else if (token == ".shared")
        module_shared();
      else if (token == ".global" || token == ".const")
        module_variable();
      else if (token == ".section")
        section();
      extern_ = token == ".extern" || (extern_ && token == ".weak");
    }
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
      if (!bodies_[i].entry) continue;
      bodies_[i].info.static_shared_bytes = shared_bytes(i);
      outline_.entries.push_back(std::move(bodies_[i].info));
    }
    return std::move(outline_);
  }

 private:
  void function(bool entry) {
    Body body;
    body.entry = entry;
    string_view token = tokens_.next();
    if (!entry && token == "(") {  // a function's return parameter
      skip_to(")");
      token = tokens_.next();
    }
    body.info.lowered_name = token;
    token = tokens_.next();
    if (token == "(") {
      parameters(body);
      token = tokens_.next();
    }
    while (!token.empty() && token != "{" && token != ";") token = directive(token, body);
    if (token != "{") return;
    read_body(body);
    index_.emplace(body.info.lowered_name, bodies_.size());
    bodies_.push_back(std::move(body));
  }

  void parameters(Body& body) {
    std::uint64_t offset = 0;
    for (string_view token = tokens_.next(); !token.empty() && token != ")";) {
      if (token != ".param" && token != ".reg") {
        token = tokens_.next();
        continue;
      }
      Declaration declaration;
      token = DeclarationReader(tokens_, declaration).read();
      offset = align_up(offset, declaration.align);
      abi::ParameterInfo info;
      info.offset = static_cast<std::uint32_t>(offset);
      info.size = static_cast<std::uint32_t>(declaration.size);
      info.align = std::max<std::uint32_t>(declaration.align, 1);
      info.pointer = declaration.pointer;
      info.type = declaration.type;  // until the author's is known
      body.info.parameters.push_back(std::move(info));
      offset += declaration.size;
    }
  }

  // `.maxntid 128, 1, 1` and similar directives; returns the token after it.
  string_view directive(string_view word, Body& body) {
    string_view token = tokens_.next();
    if (word != ".maxntid" && word != ".reqntid") return token;
    std::uint64_t threads = 1;
    while (const std::optional<std::uint64_t> value = number(token)) {
      threads *= std::min<std::uint64_t>(*value, 1u << 20);
      token = tokens_.next();
      if (token == ",") token = tokens_.next();
    }
    body.info.max_threads = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, 1u << 20));
    return token;
  }

  void read_body(Body& body) {
    std::unordered_set<string_view> seen;
    for (int depth = 1; depth > 0;) {
      const string_view token = tokens_.next();
      if (token.empty()) return;
      if (token == "{") ++depth;
      if (token == "}") --depth;
      if (token == ".shared") {
        Declaration declaration;
        DeclarationReader(tokens_, declaration).read();
        if (!declaration.unsized)
          body.shared.push_back({declaration.name, declaration.size, declaration.align});
      } else if (std::isalpha(static_cast<unsigned char>(token[0])) != 0 || token[0] == '_' ||
                 token[0] == '$') {
        if (token.find('.') == string_view::npos && seen.insert(token).second) body.mentions.push_back(token);
      }
    }
  }

  void module_shared() {
    Declaration declaration;
    const bool external = extern_;
    DeclarationReader(tokens_, declaration).read();
    if (!external && !declaration.unsized)
      module_shared_.emplace(declaration.name,
                             SharedVariable{declaration.name, declaration.size, declaration.align});
  }

  void module_variable() {
    Declaration declaration;
    DeclarationReader(tokens_, declaration).read();
    if (!extern_) outline_.variables.push_back({{}, std::string(declaration.name)});
  }

  // `.section .debug_info { ... }` holds no declarations.
  void section() {
    skip_to("{");
    skip_to("}");
  }

  void skip_to(string_view wanted) {
    for (string_view token = tokens_.next(); !token.empty() && token != wanted;) token = tokens_.next();
  }

  // The shared memory of all functions and variables that `root` references, directly or indirectly.
  std::uint64_t shared_bytes(std::size_t root) const {
    std::vector<std::size_t> work{root};
    std::unordered_set<std::size_t> visited{root};
    std::unordered_set<string_view> counted;
    std::uint64_t total = 0;
    const auto add = [&](const SharedVariable& variable) {
      if (counted.insert(variable.name).second) total = align_up(total, variable.align) + variable.size;
    };
    while (!work.empty()) {
      const Body& body = bodies_[work.back()];
      work.pop_back();
      for (const SharedVariable& variable : body.shared) add(variable);
      for (const string_view symbol : body.mentions) {
        if (const auto found = module_shared_.find(symbol); found != module_shared_.end()) add(found->second);
        const auto callee = index_.find(std::string(symbol));
        if (callee != index_.end() && visited.insert(callee->second).second) work.push_back(callee->second);
      }
    }
    return total;
  }

  PtxTokens tokens_;
  PtxOutline outline_;
  bool extern_ = false;
  std::vector<Body> bodies_;
  std::unordered_map<std::string, std::size_t> index_;
  std::unordered_map<string_view, SharedVariable> module_shared_;
};

}  // namespace

string_view PtxTokens::next() {
  for (;;) {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
    const string_view rest = text_.substr(at_);
    std::size_t end = string_view::npos;
    if (rest.starts_with("//"))
      end = text_.find('\n', at_);
    else if (rest.starts_with("/*"))
      end = (end = text_.find("*/", at_ + 2)) == string_view::npos ? end : end + 2;
    else
      break;
    at_ = std::min(end, text_.size());
  }
  if (at_ == text_.size()) return text_.substr(at_);  // empty, but of the text: callers take its place
  const std::size_t begin = at_++;
  if (text_[begin] == '"') {
    while (at_ < text_.size() && text_[at_] != '"') at_ += text_[at_] == '\\' ? 2 : 1;
    at_ = std::min(at_ + 1, text_.size());
  } else if (is_word(text_[begin])) {
    // "L2::cache_hint" is one word.
    const auto joins = [&] {
      return text_.substr(at_).starts_with("::") && at_ + 2 < text_.size() && is_word(text_[at_ + 2]);
    };
    while (at_ < text_.size() && (is_word(text_[at_]) || joins())) at_ += text_[at_] == ':' ? 2 : 1;
  }
  return text_.substr(begin, at_ - begin);
}

std::optional<VersionLine> find_version(string_view ptx) {
  PtxTokens tokens(ptx);
  if (tokens.next() != ".version") return std::nullopt;
  const string_view token = tokens.next();
  const std::size_t dot = token.find('.');
  if (dot == string_view::npos) return std::nullopt;
  const auto major = number(token.substr(0, dot)), minor = number(token.substr(dot + 1));
  if (!major || !minor || *major > 1000 || *minor > 1000) return std::nullopt;
  const std::size_t begin = static_cast<std::size_t>(token.data() - ptx.data());
  return VersionLine{
      {static_cast<std::uint32_t>(*major), static_cast<std::uint32_t>(*minor)}, begin, begin + token.size()};
}

string_view find_target(string_view ptx) {
  PtxTokens tokens(ptx);
  for (string_view token = tokens.next(); !token.empty(); token = tokens.next()) {
    if (token == ".target") return tokens.next();
    if (token == "{") return {};
  }
  return {};
}

std::vector<abi::EntryInfo> read_entries(string_view ptx) { return EntryReader(ptx).read().entries; }
PtxOutline read_outline(string_view ptx) { return EntryReader(ptx).read(); }

bool fits_ptx(const abi::PtxImage& image) {
  const std::vector<abi::EntryInfo> known = read_entries(image.ptx);
  std::unordered_map<std::string_view, const abi::EntryInfo*> by_name;
  for (const abi::EntryInfo& entry : known) by_name.try_emplace(entry.lowered_name, &entry);
  return std::ranges::all_of(image.entries, [&](const abi::EntryInfo& entry) {
    const auto found = by_name.find(entry.lowered_name);
    if (found == by_name.end()) return false;
    const auto alike = [](const abi::ParameterInfo& a, const abi::ParameterInfo& b) {
      return a.offset == b.offset && a.size == b.size && a.align == b.align;
    };
    return std::ranges::equal(entry.parameters, found->second->parameters, alike);
  });
}

std::string why_not_for(const abi::Target& target, const abi::PtxImage& image) {
  if (!find_version(image.ptx)) return "its answer has no PTX";
  const std::string_view made_for = find_target(image.ptx);
  if (made_for != fmt::format("sm_{}", target.compute))
    return fmt::format("its PTX is for {} in place of sm_{}", made_for, target.compute);
  if (read_entries(image.ptx).size() != image.entries.size() || !fits_ptx(image))
    return "its list of kernels does not fit its PTX";
  return {};
}

}  // namespace quern::compile
