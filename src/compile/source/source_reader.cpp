// SPDX-License-Identifier: Apache-2.0
#include "compile/source/source_reader.hpp"

#include <algorithm>
#include <optional>

#include "compile/source/cpp_tokens.hpp"
#include "compile/source/type_text.hpp"

namespace quern::compile {
namespace {

using std::string_view;
using Kind = CppToken::Kind;
using Tokens = std::vector<CppToken>;

template <std::size_t N>
bool one_of(string_view word, const string_view (&list)[N]) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

// Words that are followed by a parenthesis and do not name the kernel.
constexpr string_view kAttributes[] = {
    "__launch_bounds__", "__cluster_dims__", "__block_size__", "__maxnreg__", "__attribute__", "__declspec",
    "__align__",         "alignas",          "noexcept",       "decltype",    "requires"};
// Words that cannot be a parameter's name.
constexpr string_view kTypeWords[] = {
    "void",     "bool",         "char",       "short",    "int",    "long",    "float",   "double",
    "unsigned", "signed",       "const",      "volatile", "auto",   "wchar_t", "char8_t", "char16_t",
    "char32_t", "__restrict__", "__restrict", "restrict", "struct", "class",   "enum",    "typename"};
// Words that alone make no type before a name.
constexpr string_view kQualifiers[] = {"const",    "volatile",          "struct",  "class", "enum",
                                       "typename", "__grid_constant__", "register"};

// Index of the token that closes the bracket at `open`, or the end.
std::size_t close_of(const Tokens& tokens, std::size_t open) {
  int depth = 0;
  for (std::size_t i = open; i < tokens.size(); ++i) {
    const string_view text = tokens[i].text;
    if (text == "(" || text == "[" || text == "{") ++depth;
    if (text == ")" || text == "]" || text == "}")
      if (--depth == 0) return i;
  }
  return tokens.size();
}

// Angle brackets need a count of their own: in an expression '<' is less-than.
std::size_t open_of_angle(const Tokens& tokens, std::size_t close) {
  int depth = 0;
  for (std::size_t i = close + 1; i-- > 0;) {
    if (tokens[i].text == ">") ++depth;
    if (tokens[i].text == "<" && --depth == 0) return i;
    if (tokens[i].text == ";" || tokens[i].text == "}") break;
  }
  return tokens.size();
}

std::string text_of(const CppToken* begin, const CppToken* end) {
  std::string text;
  for (const CppToken* token = begin; token != end; ++token) {
    if (!text.empty()) text += ' ';
    text += token->text;
  }
  return text;
}

// One parameter's tokens, without its default argument and attributes.
Tokens plain_parameter(const CppToken* begin, const CppToken* end) {
  Tokens tokens;
  for (const CppToken* token = begin; token != end; ++token) {
    if (token->text == "=") break;
    if (token->kind == Kind::directive) continue;
    if (token->text == "[" && token + 1 != end && token[1].text == "[") {  // [[maybe_unused]]
      while (token != end && token->text != "]") ++token;
      if (token != end) ++token;
      if (token == end) break;
      continue;
    }
    tokens.push_back(*token);
  }
  return tokens;
}

// The name in `float (&r)[3]`, `void (*f)(int)`: the word before the first ')' after '(' and '*' or '&'.
std::optional<std::size_t> inner_name(const Tokens& tokens) {
  for (std::size_t i = 0; i + 2 < tokens.size(); ++i) {
    if (tokens[i].text != "(" || (tokens[i + 1].text != "*" && tokens[i + 1].text != "&")) continue;
    for (std::size_t k = i + 2; k < tokens.size() && tokens[k].text != ")"; ++k)
      if (tokens[k].kind == Kind::word && !one_of(tokens[k].text, kTypeWords)) return k;
  }
  return std::nullopt;
}

std::optional<std::size_t> plain_name(const Tokens& tokens) {
  std::size_t end = tokens.size();
  while (end > 0 && tokens[end - 1].text == "]") {  // float x[4]
    std::size_t open = end - 1;
    while (open > 0 && tokens[open].text != "[") --open;
    end = open;
  }
  if (end < 2) return std::nullopt;
  const CppToken& last = tokens[end - 1];
  if (last.kind != Kind::word || one_of(last.text, kTypeWords) || tokens[end - 2].text == "::")
    return std::nullopt;
  const bool has_type =
      std::any_of(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(end - 1),
                  [](const CppToken& t) { return t.kind == Kind::word && !one_of(t.text, kQualifiers); });
  return has_type ? std::optional<std::size_t>(end - 1) : std::nullopt;
}

ParameterDeclaration read_parameter(const CppToken* begin, const CppToken* end) {
  Tokens tokens = plain_parameter(begin, end);
  ParameterDeclaration result;
  std::optional<std::size_t> name = inner_name(tokens);
  const bool indirect = name.has_value();
  if (!name) name = plain_name(tokens);
  if (name) {
    result.name = tokens[*name].text;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(*name));
  }
  result.type = normal_type(text_of(tokens.data(), tokens.data() + tokens.size()));
  PointerType pointer = pointer_type(result.type);
  result.pointer = pointer.pointer || indirect;
  result.read_only = pointer.read_only;
  if (!indirect) result.pointee = std::move(pointer.pointee);
  return result;
}

std::vector<ParameterDeclaration> read_parameters(const Tokens& tokens, std::size_t open, std::size_t close) {
  std::vector<ParameterDeclaration> parameters;
  int depth = 0, angle = 0;
  std::size_t begin = open + 1;
  for (std::size_t i = begin; i <= close; ++i) {
    const string_view text = tokens[i].text;
    if (text == "(" || text == "[" || text == "{") ++depth;
    if (i != close && (text == ")" || text == "]" || text == "}")) --depth;
    if (text == "<") ++angle;
    if (text == ">") angle = std::max(angle - 1, 0);
    if (i != close && (text != "," || depth > 0 || angle > 0)) continue;
    const bool nothing = i == begin || (i == begin + 1 && tokens[begin].text == "void");
    if (!nothing) parameters.push_back(read_parameter(&tokens[begin], &tokens[i]));
    begin = i + 1;
  }
  return parameters;
}

class KernelReader {
 public:
  explicit KernelReader(string_view source) : tokens_(cpp_tokens(source)) {}

  std::vector<KernelDeclaration> read() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const string_view text = tokens_[i].text;
      if (text == "namespace" || text == "struct" || text == "class")
        i = open_scope(i);
      else if (text == "{")
        scopes_.emplace_back();
      else if (text == "}" && !scopes_.empty())
        scopes_.pop_back();
      else if (text == "template")
        last_template_ = i;
      else if (text == "__global__" && tokens_[i].kind == Kind::word)
        i = kernel(i);
    }
    return std::move(kernels_);
  }

 private:
  // `namespace a::b {`, `struct S {`: the name is in force until the matching brace. Returns the last token
  // taken.
  std::size_t open_scope(std::size_t i) {
    const bool is_namespace = tokens_[i].text == "namespace";
    std::string name;
    std::size_t k = i + 1;
    while (k < tokens_.size() && (tokens_[k].kind == Kind::word || tokens_[k].text == "::")) {
      if (tokens_[k].text != "inline") name += tokens_[k].text;
      ++k;
    }
    if (k >= tokens_.size() || tokens_[k].text != "{") return i;
    scopes_.push_back(is_namespace || name.find("::") == std::string::npos ? name : std::string());
    return k;
  }

  // Reads from `__global__` on. Returns the last token taken: that before the body's '{', or `__global__`
  // itself.
  std::size_t kernel(std::size_t start) {
    for (std::size_t i = start + 1; i < tokens_.size(); ++i) {
      const string_view text = tokens_[i].text;
      if (text == ";" || text == "{" || text == "}" || text == "=") return start;
      if (text != "(") continue;
      const std::size_t close = close_of(tokens_, i);
      if (close == tokens_.size()) return start;
      std::size_t name = i - 1;
      if (tokens_[name].text == ">" && (name = open_of_angle(tokens_, name)) != tokens_.size()) --name;
      if (name >= tokens_.size() || name <= start || tokens_[name].kind != Kind::word) return start;
      if (!one_of(tokens_[name].text, kAttributes)) {
        declare(start, name, i, close);
        return close;
      }
      i = close;
    }
    return start;
  }

  void declare(std::size_t start, std::size_t name, std::size_t open, std::size_t close) {
    KernelDeclaration kernel;
    kernel.name = tokens_[name].text;
    kernel.line = tokens_[name].line;
    for (const std::string& scope : scopes_)
      if (!scope.empty()) kernel.scope += (kernel.scope.empty() ? "" : "::") + scope;
    std::string qualifier;  // of a definition outside its namespace: `a::b::name`
    for (std::size_t i = name;
         i >= start + 3 && tokens_[i - 1].text == "::" && tokens_[i - 2].kind == Kind::word; i -= 2)
      qualifier = std::string(tokens_[i - 2].text) + (qualifier.empty() ? "" : "::") + qualifier;
    if (!qualifier.empty()) kernel.scope += (kernel.scope.empty() ? "" : "::") + qualifier;
    kernel.is_template =
        last_template_ && *last_template_ < start && is_template_head(*last_template_, start);
    kernel.parameters = read_parameters(tokens_, open, close);
    kernels_.push_back(std::move(kernel));
  }

  // True if `template <...>` at `head` belongs to the declaration at `start`: nothing between them ends a
  // declaration.
  bool is_template_head(std::size_t head, std::size_t start) const {
    int depth = 0;
    for (std::size_t i = head; i < start; ++i) {
      const string_view text = tokens_[i].text;
      if (text == "(" || text == "{") ++depth;
      if (text == ")" || text == "}") --depth;
      if (text == ";" && depth == 0) return false;
      if (text == "}" && depth <= 0) return false;
    }
    return true;
  }

  Tokens tokens_;
  std::vector<std::string> scopes_;
  std::optional<std::size_t> last_template_;
  std::vector<KernelDeclaration> kernels_;
};

}  // namespace

std::vector<KernelDeclaration> read_kernels(string_view source) { return KernelReader(source).read(); }

}  // namespace quern::compile
