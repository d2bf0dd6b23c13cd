// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <cctype>
#include <cstring>
#include <set>

namespace quern::oracle {
namespace {

struct Token {
  std::string text;
  unsigned line = 0;
  bool string = false;
};

bool word_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

// Words include dots and '::' ("ld.shared::cta.f32", ".reg"); all other tokens are single characters.
std::vector<Token> tokenise(std::string_view text) {
  std::vector<Token> tokens;
  unsigned line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '\n') ++line;
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      ++i;
    } else if (text.substr(i, 2) == "//") {
      while (i < text.size() && text[i] != '\n') ++i;
    } else if (text.substr(i, 2) == "/*") {
      const std::size_t end = std::min(text.find("*/", i + 2), text.size() - 2) + 2;
      for (; i < end; ++i) line += text[i] == '\n';
    } else if (c == '"') {
      const std::size_t end = std::min(text.find('"', i + 1), text.size() - 1);
      tokens.push_back({std::string(text.substr(i + 1, end - i - 1)), line, true});
      i = end + 1;
    } else if (word_char(c) || c == '.') {
      std::size_t end = i + 1;
      while (end < text.size() && (word_char(text[end]) || text[end] == '.' || text.substr(end, 2) == "::" ||
                                   (text[end] == ':' && text[end - 1] == ':')))
        ++end;
      tokens.push_back({std::string(text.substr(i, end - i)), line, false});
      i = end;
    } else {
      tokens.push_back({std::string(1, c), line, false});
      ++i;
    }
  }
  return tokens;
}

bool parse_type(std::string_view word, Type& type) {
  if (word == "pred") return type = {'p', 1}, true;
  if (word.size() < 2 || std::strchr("usbf", word[0]) == nullptr) return false;
  unsigned bits = 0;
  for (const char c : word.substr(1)) {
    if (c < '0' || c > '9') return false;
    bits = bits * 10 + static_cast<unsigned>(c - '0');
  }
  if (bits != 8 && bits != 16 && bits != 32 && bits != 64 && (bits != 128 || word[0] != 'b')) return false;
  type = {word[0], bits};
  return true;
}

std::vector<std::string> split(const std::string& word) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= word.size()) {
    const std::size_t dot = std::min(word.find('.', begin), word.size());
    if (dot > begin) parts.push_back(word.substr(begin, dot - begin));
    begin = dot + 1;
  }
  return parts;
}

const std::map<std::string, Space> kSpaces{{".global", Space::global},
                                           {".shared", Space::shared},
                                           {".local", Space::local},
                                           {".const", Space::constant},
                                           {".param", Space::param}};
const std::set<std::string> kSkippedLines{".address_size", ".file", ".loc"};

class Reader {
 public:
  explicit Reader(std::string_view text) : tokens_(tokenise(text)) { tokens_.push_back({}); }

  Program program() {
    while (!at_end()) item();
    return std::move(program_);
  }

 private:
  bool at_end() const { return at_ + 1 >= tokens_.size(); }
  const std::string& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(at_ + ahead, tokens_.size() - 1)].text;
  }
  std::string take() {
    if (at_end()) fail("the text ends too early");
    return tokens_[at_++].text;
  }
  bool accept(std::string_view text) {
    if (at_end() || peek() != text) return false;
    ++at_;
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("expected '" + std::string(text) + "' before '" + peek() + "'");
  }
  [[noreturn]] void fail(const std::string& why) const {
    throw Unsupported("oracle, line " + std::to_string(tokens_[std::min(at_, tokens_.size() - 1)].line) +
                      ": " + why);
  }
  void skip_line() {
    const unsigned line = tokens_[at_].line;
    while (!at_end() && tokens_[at_].line == line) ++at_;
  }

  void item() {
    if (peek() == ".version" || peek() == ".target") return heading();
    if (kSkippedLines.contains(peek())) return skip_line();
    if (peek() == ".section") {
      while (!accept("}")) take();
      return;
    }
    while (peek() == ".visible" || peek() == ".extern" || peek() == ".weak" || peek() == ".common") take();
    if (peek() == ".entry" || peek() == ".func") return function();
    if (kSpaces.contains(peek())) return program_.variables.push_back(variable(true));
    fail("unknown directive " + peek());
  }

  // .version 8.6, or .target sm_89 with options
  void heading() {
    const bool target = peek() == ".target";
    const unsigned line = tokens_[at_].line;
    take();
    const std::string value = take();
    if (target) sm_ = std::stoi(value.substr(value.find('_') + 1));
    if (!target) version_ = std::stod(value);
    while (!at_end() && tokens_[at_].line == line) ++at_;
  }

  /// PTX ISA: "sm_1x" in the notes on subnormal numbers of add, sub, mul, mad, div, abs, neg, min, max, rcp,
  /// sqrt, rsqrt, sin, cos, lg2, ex2, set, setp, slct and cvt. For cvt the notes except PTX 1.4 and earlier
  /// if one of the types has 64 bits.
  bool flushes_on_sm_1x(const Instruction& i) const {
    static const std::set<std::string> kByFirstType{"add", "sub",  "mul", "mad",  "div",  "abs", "neg",
                                                    "min", "max",  "rcp", "sqrt", "sin",  "cos", "lg2",
                                                    "ex2", "setp", "set", "slct", "rsqrt"};
    if (sm_ >= 20 || i.types.empty()) return false;
    if (i.opcode == "set" || i.opcode == "slct") return i.types.back().is('f', 32);
    if (kByFirstType.contains(i.opcode)) return i.types.front().is('f', 32);
    if (i.opcode != "cvt") return false;
    const bool wide = i.types.front().bits == 64 || i.types.back().bits == 64;
    return (i.types.front().is('f', 32) || i.types.back().is('f', 32)) && !(wide && version_ < 1.45);
  }

  // .space [.align n] .type name [dims] [= init] ;
  Variable variable(bool ends_with_semicolon) {
    Variable result;
    result.space = kSpaces.at(take());
    bool typed = false;
    bool aligned = false;
    unsigned vector = 1;
    while (peek()[0] == '.') {
      const std::string word = take();
      if (word == ".align") {
        result.align = static_cast<unsigned>(std::stoul(take()));
        aligned = true;
      } else if (word == ".ptr" || kSpaces.contains(word)) {
        continue;  // pointer attributes of a parameter
      } else if (word == ".v2" || word == ".v4") {
        vector = static_cast<unsigned>(word[2] - '0');
      } else {
        if (!parse_type(word.substr(1), result.type)) fail("unknown type " + word);
        typed = true;
      }
    }
    if (!typed) fail("a variable without a type");
    if (!aligned) result.align = result.type.bytes() * vector;
    result.count = vector;
    result.name = take();
    while (accept("[")) {
      if (accept("]")) {
        result.count = 0;
        continue;
      }
      result.count *= std::stoull(take(), nullptr, 0);
      expect("]");
    }
    if (accept("=")) initialiser(result);
    if (ends_with_semicolon) expect(";");
    return result;
  }
  void initialiser(Variable& variable) {
    if (!accept("{")) return variable.values.push_back(constant(variable.type));
    while (!accept("}")) {
      if (peek() == "{") fail("nested initialisers");
      if (std::isdigit(static_cast<unsigned char>(peek()[0])) == 0 && peek() != "-") {
        variable.functions[variable.values.size()] = take();
        variable.values.push_back(0);
      } else {
        variable.values.push_back(constant(variable.type));
      }
      accept(",");
    }
  }
  std::uint64_t constant(Type type) {
    const bool negative = accept("-");
    Operand operand = number(take());
    if (operand.kind == Operand::Kind::none) fail("an initialiser that is not a number");
    std::uint64_t bits = operand.bits;
    if (operand.kind == Operand::Kind::f64 && type.is('f', 32)) {
      double value;
      std::memcpy(&value, &bits, 8);
      const float narrow = static_cast<float>(value);
      std::uint32_t narrow_bits;
      std::memcpy(&narrow_bits, &narrow, 4);
      bits = narrow_bits;
    }
    return negative ? 0 - bits : bits;
  }

  static Operand number(const std::string& text) {
    Operand result;
    if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0])) == 0) return result;
    if (text.size() == 10 && (text.starts_with("0f") || text.starts_with("0F"))) {
      result.kind = Operand::Kind::f32;
      result.bits = std::stoull(text.substr(2), nullptr, 16);
    } else if (text.size() == 18 && (text.starts_with("0d") || text.starts_with("0D"))) {
      result.kind = Operand::Kind::f64;
      result.bits = std::stoull(text.substr(2), nullptr, 16);
    } else if (text.find('.') != std::string::npos) {
      const double value = std::stod(text);
      result.kind = Operand::Kind::f64;
      std::memcpy(&result.bits, &value, 8);
    } else {
      result.kind = Operand::Kind::integer;
      std::string digits = text;
      if (digits.back() == 'U') digits.pop_back();
      result.bits = digits.starts_with("0b") ? std::stoull(digits.substr(2), nullptr, 2)
                                             : std::stoull(digits, nullptr, 0);
    }
    return result;
  }

  void function() {
    Function f;
    f.entry = take() == ".entry";
    if (peek() == "(") f.returns = parameter_list();
    f.name = take();
    if (peek() == "(") f.params = parameter_list();
    while (peek()[0] == '.') skip_line();  // performance directives
    if (accept(";")) {
      if (program_.find(f.name) == nullptr) program_.functions.push_back(std::move(f));
      return;
    }
    f.defined = true;
    function_ = &f;
    scopes_.assign(1, {});
    symbols_.assign(1, {});
    for (std::vector<Variable>* list : {&f.params, &f.returns})
      for (Variable& v : *list)
        if (v.space == Space::generic) {
          scopes_[0][v.name] = new_register(v.type, static_cast<unsigned>(v.count));
          v.offset = scopes_[0][v.name].index;
        }
    expect("{");
    body();
    std::erase_if(program_.functions, [&](const Function& other) { return other.name == f.name; });
    program_.functions.push_back(std::move(f));
  }

  std::vector<Variable> parameter_list() {
    std::vector<Variable> list;
    expect("(");
    std::uint64_t offset = 0;
    while (!accept(")")) {
      if (accept(".reg")) {
        Variable v;
        v.count = vector_length();
        parse_type(take().substr(1), v.type);
        v.space = Space::generic;  // marks a register parameter
        v.name = take();
        list.push_back(std::move(v));
        accept(",");
        continue;
      }
      Variable v = variable(false);
      offset = (offset + v.align - 1) / v.align * v.align;
      v.offset = offset;
      offset += v.size();
      list.push_back(std::move(v));
      accept(",");
    }
    return list;
  }

  /// A declared register: `count` registers of the function, one after the other.
  struct Register {
    std::uint32_t index = 0;
    unsigned count = 1;
  };
  Register new_register(Type type, unsigned count) {
    const auto index = static_cast<std::uint32_t>(function_->registers.size());
    // 128 bits: two words, one after the other.
    for (unsigned word = 0; word < count * (type.bits == 128 ? 2u : 1u); ++word)
      function_->registers.push_back({type.kind, std::min(type.bits, 64u)});
    return {index, count};
  }
  unsigned vector_length() { return accept(".v2") ? 2 : accept(".v4") ? 4 : 1; }

  void body() {
    while (true) {
      if (accept("{")) {
        scopes_.emplace_back();
        symbols_.emplace_back();
        body();
        scopes_.pop_back();
        symbols_.pop_back();
      } else if (accept("}")) {
        return;
      } else if (peek() == ".reg") {
        registers();
      } else if (peek() == ".loc") {
        skip_line();
      } else if (peek() == ".pragma") {
        while (!accept(";")) take();
      } else if (kSpaces.contains(peek())) {
        Variable v = variable(true);
        if (v.space == Space::global || v.space == Space::constant) {
          static_variable(std::move(v));
          continue;
        }
        symbols_.back()[v.name] = v.name;
        if (v.space == Space::local) {
          function_->local_bytes = (function_->local_bytes + v.align - 1) / v.align * v.align;
          v.offset = function_->local_bytes;
          function_->local_bytes += v.size();
        }
        // A name in two scopes names two variables. The later declaration is visible.
        function_->locals.push_back(std::move(v));
      } else if (peek(1) == ":") {
        function_->labels[take()] = static_cast<std::uint32_t>(function_->body.size());
        expect(":");
      } else {
        instruction();
      }
    }
  }

  /// "State Spaces": a .global or .const variable in a body lives as long as those of the module, but its
  /// name is visible only in its scope.
  void static_variable(Variable v) {
    const std::string name = v.name;
    v.name += "@" + std::to_string(program_.variables.size());
    symbols_.back()[name] = v.name;
    program_.variables.push_back(std::move(v));
  }
  /// The variable that is visible under the name here.
  std::string symbol(const std::string& name) const {
    for (std::size_t i = symbols_.size(); i-- > 0;)
      if (const auto found = symbols_[i].find(name); found != symbols_[i].end()) return found->second;
    return name;
  }

  void registers() {
    expect(".reg");
    const unsigned length = vector_length();
    Type type;
    if (!parse_type(take().substr(1), type)) fail("a register type that the oracle lacks");
    do {
      const std::string name = take();
      if (accept("<")) {
        const unsigned long count = std::stoul(take());
        if (count > 1u << 20) fail("too many registers");
        for (unsigned long i = 0; i < count; ++i)
          scopes_.back()[name + std::to_string(i)] = new_register(type, length);
        expect(">");
      } else {
        scopes_.back()[name] = new_register(type, length);
      }
    } while (accept(","));
    expect(";");
  }

  const Register* find_register(const std::string& name) const {
    for (std::size_t i = scopes_.size(); i-- > 0;)
      if (const auto found = scopes_[i].find(name); found != scopes_[i].end()) return &found->second;
    return nullptr;
  }

  void instruction() {
    Instruction result;
    const std::size_t begin = at_;
    result.line = tokens_[at_].line;
    if (accept("@")) {
      result.guard_negated = accept("!");
      const Register* reg = find_register(take());
      if (reg == nullptr) fail("unknown guard");
      result.guard = reg->index;
    }
    std::vector<std::string> words = split(take());
    result.opcode = words.front();
    result.words.assign(words.begin() + 1, words.end());
    for (const std::string& word : result.words)
      if (Type type; parse_type(word, type)) result.types.push_back(type);
    if (flushes_on_sm_1x(result)) result.words.emplace_back("ftz");
    while (!accept(";")) {
      result.operands.push_back(operand());
      if (accept("|")) {  // a pair: two destinations
        Operand pair;
        pair.kind = Operand::Kind::vector;
        pair.parts = {result.operands.back(), operand()};
        result.operands.back() = pair;
      }
      accept(",");
    }
    for (std::size_t i = begin; i < at_; ++i) result.text += tokens_[i].text + (i + 1 < at_ ? " " : "");
    function_->body.push_back(std::move(result));
  }

  static Operand part_of(const Register& reg, unsigned component) {
    Operand result;
    result.kind = Operand::Kind::reg;
    result.reg = reg.index + component;
    return result;
  }
  /// A vector register is represented as the list of its components.
  static Operand all_of(const Register& reg) {
    if (reg.count == 1) return part_of(reg, 0);
    Operand result;
    result.kind = Operand::Kind::vector;
    for (unsigned component = 0; component < reg.count; ++component)
      result.parts.push_back(part_of(reg, component));
    return result;
  }

  Operand list(std::string_view close) {
    Operand result;
    result.kind = Operand::Kind::vector;
    while (!accept(close)) {
      result.parts.push_back(operand());
      accept(",");
    }
    return result;
  }

  Operand operand() {
    if (accept("{")) return list("}");
    if (accept("(")) return list(")");
    if (accept("[")) return address();
    if (accept("!")) {
      Operand result = operand();
      result.negated = true;
      return result;
    }
    if (accept("-")) {
      if (find_register(peek().substr(0, peek().find('.'))) != nullptr) {  // in video instructions
        Operand result = operand();
        result.negated = true;
        return result;
      }
      Operand result = number(take());
      if (result.kind == Operand::Kind::integer)
        result.bits = 0 - result.bits;
      else if (result.kind == Operand::Kind::f64)
        result.bits ^= std::uint64_t{1} << 63;
      else
        fail("a minus before something that is no number");
      return result;
    }
    const std::string text = take();
    Operand result = number(text);
    if (result.kind != Operand::Kind::none) return result;
    if (text == "_") return result.kind = Operand::Kind::sink, result;
    if (const Register* reg = find_register(text)) return all_of(*reg);
    // A component of a vector register, or bytes or halves of a register in video instructions.
    const std::size_t dot = text.rfind('.');
    if (dot != std::string::npos && dot + 2 == text.size()) {
      const Register* reg = find_register(text.substr(0, dot));
      const std::size_t letter = std::string_view("xyzwrgba").find(text.back());
      if (reg != nullptr && letter != std::string_view::npos && letter % 4 < reg->count)
        return part_of(*reg, static_cast<unsigned>(letter % 4));
    }
    if (dot != std::string::npos && dot + 3 <= text.size() &&
        (text[dot + 1] == 'b' || text[dot + 1] == 'h')) {
      if (const Register* reg = find_register(text.substr(0, dot))) {
        result.kind = Operand::Kind::reg;
        result.reg = reg->index;
        result.name = text.substr(dot + 1);
        return result;
      }
    }
    result.kind = text[0] == '%' || text == "WARP_SZ" ? Operand::Kind::special : Operand::Kind::symbol;
    result.name = result.kind == Operand::Kind::symbol ? symbol(text) : text;
    if (accept("+")) result.bits = std::stoull(take(), nullptr, 0);
    return result;
  }

  Operand address() {
    Operand result;
    result.kind = Operand::Kind::address;
    const std::string text = take();
    if (const Register* reg = find_register(text)) {
      result.has_base = true;
      result.reg = reg->index;
    } else if (const Operand constant = number(text); constant.kind == Operand::Kind::integer) {
      result.bits = constant.bits;
    } else {
      result.name = symbol(text);
    }
    if (accept("+")) {
      const bool negative = accept("-");
      const std::uint64_t offset = std::stoull(take(), nullptr, 0);
      result.bits += negative ? 0 - offset : offset;
    } else if (accept("-")) {
      result.bits -= std::stoull(take(), nullptr, 0);
    }
    expect("]");
    return result;
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int sm_ = 0;
  double version_ = 0;
  Program program_;
  Function* function_ = nullptr;
  std::vector<std::map<std::string, Register>> scopes_;
  std::vector<std::map<std::string, std::string>> symbols_;  ///< by scope: the variables of a body
};

}  // namespace

bool Instruction::has(std::string_view word) const {
  for (const std::string& other : words)
    if (other == word) return true;
  return false;
}

const Function* Program::find(std::string_view name) const {
  for (const Function& function : functions)
    if (function.name == name) return &function;
  return nullptr;
}

std::uint64_t Program::address_of(std::string_view name) const {
  const Function* function = find(name);
  return function == nullptr ? 0 : 64 + 32 * static_cast<std::uint64_t>(function - functions.data());
}

Program read(std::string_view ptx) { return Reader(ptx).program(); }

}  // namespace quern::oracle
