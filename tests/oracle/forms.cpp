// SPDX-License-Identifier: Apache-2.0
#include "forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <tuple>

namespace quern::oracle {
namespace {

constexpr unsigned kBlock = 64;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxInstances = 32;  ///< in one kernel

constexpr const char* kUsualTarget = "sm_89";

struct Row {
  const char* target;
  const char* words;
  const char* operands;
};
constexpr Row kRows[] = {
#define FORM(words, operands) {kUsualTarget, words, operands},
#define FORM_FOR(target, words, operands) {target, words, operands},
#include "forms.def"
#undef FORM_FOR
#undef FORM
};

// splitmix64 (G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators", 2014).
std::uint64_t mix(std::uint64_t& state) {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

/// Returns every combination of the choices {a|b}.
std::vector<std::string> expand(const std::string& text) {
  const std::size_t open = text.find('{');
  if (open == std::string::npos) return {text};
  const std::size_t close = text.find('}', open);
  std::vector<std::string> result;
  for (const std::string& choice : split(text.substr(open + 1, close - open - 1), '|'))
    for (std::string& rest : expand(text.substr(0, open) + choice + text.substr(close + 1)))
      result.push_back(std::move(rest));
  return result;
}

// ---- values

const std::vector<std::uint64_t>& values_of(char kind) {
  static const std::vector<std::uint64_t> words = {
      0,          1,          2,          3,          7,          8,          31,
      32,         33,         0x7f,       0x80,       0xff,       0x100,      0x7fff,
      0x8000,     0xffff,     0x10000,    0x7fffff,   0x800000,   0xffffff,   0x7ffffffe,
      0x7fffffff, 0x80000000, 0x80000001, 0xfffffffe, 0xffffffff, 0xffff8000, 0xffffff80,
      0x12345678, 0xdeadbeef, 0x00ff00ff, 0x80808080, 0x7f7f7f7f, 0x01010101, 0x55555555};
  static const std::vector<std::uint64_t> longs = {0,
                                                   1,
                                                   2,
                                                   3,
                                                   0x7f,
                                                   0x80,
                                                   0xff,
                                                   0x7fff,
                                                   0xffff,
                                                   0x7fffffff,
                                                   0x80000000,
                                                   0xffffffff,
                                                   0x100000000,
                                                   0x7fffffffffffffff,
                                                   0x8000000000000000,
                                                   0x8000000000000001,
                                                   0xfffffffffffffffe,
                                                   0xffffffffffffffff,
                                                   0xffffffff80000000,
                                                   0xffffffffffffff80,
                                                   0x0020000000000001,
                                                   0x0123456789abcdef,
                                                   0xfedcba9876543210,
                                                   0x00ffffff80000000,
                                                   0x7fffffbfffffffff,
                                                   0x7ffffffffffffc00,
                                                   0x8000008000000001};
  static const std::vector<std::uint64_t> small = {
      0,   1,   2,   3,   4,   5,          7,          8,          15,         16,        17,
      24,  30,  31,  32,  33,  47,         48,         63,         64,         65,        127,
      128, 255, 256, 257, 288, 0x7fffffff, 0x80000000, 0xfffffffd, 0xffffffe0, 0xffffffff};
  static const std::vector<std::uint64_t> singles = {
      0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc12345,
      0x7f800001, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, 0x00800000, 0x80800000, 0x7f7fffff,
      0xff7fffff, 0x3f000000, 0xbf000000, 0x3fc00000, 0x40200000, 0xc0200000, 0x3f7fffff, 0x3f800001,
      0x4effffff, 0x4f000000, 0x4f7fffff, 0x4f800000, 0xcf000000, 0xcf000001, 0x5effffff, 0x5f000000,
      0x5f800000, 0xdf000000, 0x42fe0000, 0x43000000, 0xc3000000, 0xc3010000, 0x437f0000, 0x43ff8000,
      0x477fe000, 0x477fefff, 0x477ff000, 0x47800000, 0x33000000, 0x33000001, 0x33800000, 0x387fc000,
      0x38800000, 0x38ffe000, 0x3f802000, 0x3f801000, 0x3f803000, 0x3f808000, 0x3f818000, 0x43e00000,
      0x43e80000, 0x43e8ffff, 0x43f00000, 0x3b000000, 0x3a800000, 0x3a800001, 0x3c7f0000, 0x47600000,
      0x47700000, 0x47680000, 0x37000000, 0x37800000, 0x7f7f8000, 0x7f7fc000, 0x7f7fefff, 0x7f7ff000};
  static const std::vector<std::uint64_t> doubles = {
      0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x7ff0000000000000,
      0xfff0000000000000, 0x7ff8000000000000, 0xfff8000000012345, 0x0000000000000001, 0x800fffffffffffff,
      0x0010000000000000, 0x7fefffffffffffff, 0xffefffffffffffff, 0x3fe0000000000000, 0xbfe0000000000000,
      0x3ff8000000000000, 0x4004000000000000, 0x41dfffffffc00000, 0x41dfffffffe00000, 0x41e0000000000000,
      0xc1e0000000200000, 0x41efffffffe00000, 0x41f0000000000000, 0x43e0000000000000, 0x43dfffffffffffff,
      0xc3e0000000000000, 0x43f0000000000000, 0x47efffffe0000000, 0x47efffffefffffff, 0x47effffff0000000,
      0x47f0000000000000, 0x36a0000000000000, 0x3690000000000000, 0x3690000000000001, 0x380fffffe0000000,
      0x3ff0000010000000, 0x3ff0000030000000, 0x3ff0000010000001, 0x40efffffffffffff, 0x40effc0000000000,
      0x40effe0000000000, 0x3e60000000000000, 0x3e70000000000000, 0x3ff0020000000000, 0x3ff0020000000001,
      0x3fefffffffffffff, 0x405fc00000000000, 0xc060000000000000, 0x3fd5555555555555};
  static const std::vector<std::uint64_t> halves = {
      0x0000, 0x8000, 0x0001, 0x8001, 0x0002, 0x03ff, 0x83ff, 0x0400, 0x0401, 0x8400, 0x3800,
      0x3c00, 0xbc00, 0x3c01, 0x3bff, 0x3e00, 0x4100, 0xc100, 0x57f0, 0x5800, 0x77ff, 0x7800,
      0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01, 0x7fff, 0xffff, 0x3555, 0x5bf8,
      0x5f00, 0x5f40, 0x5f80, 0x7380, 0x7480, 0x7bc0, 0x1400, 0x1001, 0x0080};
  static const std::vector<std::uint64_t> bfloats = {
      0x0000, 0x8000, 0x0001, 0x8001, 0x007f, 0x807f, 0x0080, 0x0081, 0x8080, 0x3f00, 0x3f80, 0xbf80,
      0x3f81, 0x3f7f, 0x3fc0, 0x4020, 0xc020, 0x4f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0, 0xffc1,
      0x7f81, 0x7fff, 0x3eab, 0x0001, 0x4380, 0x7f00, 0x0100, 0x1f80, 0x5f80, 0x4000, 0x3b80};
  switch (kind) {
    case 'd':
    case 'W':
      return longs;
    case 'n':
      return small;
    case 'f':
    case 'D':
      return singles;
    case 'e':
      return doubles;
    case 'H':
    case 'X':
      return halves;
    case 'B':
    case 'Y':
      return bfloats;
    default:
      return words;
  }
}

/// Returns a boundary value or, sometimes, random bits.
std::uint64_t pick(char kind, std::uint64_t& state) {
  const std::vector<std::uint64_t>& values = values_of(kind);
  const std::uint64_t random = mix(state);
  const bool any = random % 8 == 0;
  const std::uint64_t value = any ? mix(state) : values[(random >> 8) % values.size()];
  if (kind == 'D') return any ? value : value | values[(random >> 24) % values.size()] << 32;
  if (kind == 'X' || kind == 'Y')
    return any ? value & 0xffffffff : value | values[(random >> 24) % values.size()] << 16;
  if (kind == 'p') return random >> 9 & 1;
  if ((kind == 'b' || kind == 'q' || kind == 'y') && random % 2 == 0) return mix(state);
  return value;
}

std::vector<std::uint64_t> input_of(const std::vector<char>& kinds, std::uint64_t seed, unsigned& threads) {
  std::vector<std::uint64_t> input;
  if (kinds.empty()) {  // no input is read
    threads = 256;
    return {0};
  }
  const auto combined = [](char kind) {
    return std::string_view("XYDpbqy").find(kind) != std::string_view::npos;
  };
  const bool whole = kinds.size() == 1 && !combined(kinds[0]);
  const bool product = kinds.size() == 2 && !combined(kinds[0]) && !combined(kinds[1]);
  if (whole) input = values_of(kinds[0]);
  if (product && values_of(kinds[0]).size() * values_of(kinds[1]).size() <= kMaxThreads)
    for (const std::uint64_t a : values_of(kinds[0]))
      for (const std::uint64_t b : values_of(kinds[1])) input.insert(input.end(), {a, b});
  const std::size_t wanted = kinds.size() <= 1 ? 256 : kMaxThreads;
  std::uint64_t state = seed;
  while (input.size() / kinds.size() < wanted || input.size() / kinds.size() % kBlock != 0)
    for (const char kind : kinds) input.push_back(pick(kind, state));
  threads = static_cast<unsigned>(input.size() / kinds.size());
  return input;
}

// ---- kernels

/// `rule`: the character before the class of the destination, if there is one.
Kind kind_of(char destination, char rule) {
  if (rule == '=' || (rule == 0 && destination != 'e')) return Kind::bits;
  switch (destination) {
    case 'f':
      return Kind::f32;
    case 'e':
      return Kind::f64;
    case 'H':
      return Kind::f16;
    case 'B':
      return Kind::bf16;
    case 'X':
      return Kind::f16x2;
    case 'Y':
      return Kind::bf16x2;
    default:
      return Kind::bits;
  }
}

/// The register class for a class of values.
const char* register_of(char kind) {
  switch (kind) {
    case 'h':
    case 'H':
    case 'B':
    case 'q':
      return "%rs";
    case 'd':
    case 'D':
      return "%rd";
    case 'y':
      return "%rb";
    case 'f':
      return "%f";
    case 'e':
      return "%fd";
    case 'p':
      return "%p";
    case 'W':
      return "%q";
    default:
      return "%r";
  }
}

std::string load(char kind, unsigned index) {
  const std::string target = fmt::format("{}{}", register_of(kind), index);
  const std::string word = fmt::format("\tld.global.u64 %w{0}, [%in+{1}];\n", index, index * 8);
  const std::string_view name = register_of(kind);
  if (name == "%rb") return word + fmt::format("\tcvt.u8.u64 {}, %w{};\n", target, index);
  if (name == "%rs") return word + fmt::format("\tcvt.u16.u64 {}, %w{};\n", target, index);
  if (name == "%rd") return word + fmt::format("\tmov.b64 {}, %w{};\n", target, index);
  if (name == "%fd") return word + fmt::format("\tmov.b64 {}, %w{};\n", target, index);
  if (name == "%p") return word + fmt::format("\tsetp.ne.u64 {}, %w{}, 0;\n", target, index);
  if (name == "%q")
    return word + fmt::format("\txor.b64 %x0, %w{1}, 0x5a5a5a5a5a5a5a5a;\n\tmov.b128 {0}, {{%w{1}, %x0}};\n",
                              target, index);
  if (name == "%f")
    return word + fmt::format("\tcvt.u32.u64 %t0, %w{1};\n\tmov.b32 {0}, %t0;\n", target, index);
  return word + fmt::format("\tcvt.u32.u64 {}, %w{};\n", target, index);
}

/// Writes the result registers (number 20, and predicates 20 and 21) to word `slot`.
std::string store(const std::string& destination, unsigned slot) {
  std::string text;
  if (destination == "P") {
    text = "\tselp.u64 %x0, 1, 0, %p20;\n\tselp.u64 %x1, 2, 0, %p21;\n\tor.b64 %x0, %x0, %x1;\n";
  } else if (destination == "_|p") {
    text = "\tselp.u64 %x0, 1, 0, %p20;\n";
  } else if (destination == "R|p") {
    text = "\tcvt.u64.u32 %x0, %r20;\n\tselp.u64 %x1, 4294967296, 0, %p20;\n\tor.b64 %x0, %x0, %x1;\n";
  } else {
    const std::string_view name = register_of(destination[0]);
    if (name == "%rb") text = "\tcvt.u64.u8 %x0, %rb20;\n";
    if (name == "%rs") text = "\tcvt.u64.u16 %x0, %rs20;\n";
    if (name == "%rd") text = "\tmov.b64 %x0, %rd20;\n";
    if (name == "%fd") text = "\tmov.b64 %x0, %fd20;\n";
    if (name == "%p") text = "\tselp.u64 %x0, 1, 0, %p20;\n";
    if (name == "%f") text = "\tmov.b32 %t0, %f20;\n\tcvt.u64.u32 %x0, %t0;\n";
    if (name == "%r") text = "\tcvt.u64.u32 %x0, %r20;\n";
    if (name == "%q")
      text =
          "\tst.local.b128 [%loc], %q20;\n\tld.local.b128 %q20, [%loc];\n\tmov.b128 {%x0, %x1}, %q20;\n"
          "\tmul.lo.u64 %x1, %x1, 0x9e3779b9;\n\txor.b64 %x0, %x0, %x1;\n";
  }
  return text + fmt::format("\tst.global.u64 [%out+{}], %x0;\n", slot * 8);
}

struct Shape {
  std::string destination;  ///< "r", "P", "R|p", "r.b2"
  char nan_rule = 0;        ///< '=', '~' or none
  bool carry = false;
  std::vector<std::string> sources;  ///< operand texts
  std::vector<char> kinds;           ///< of those that are read
};

Shape shape_of(const std::string& operands) {
  Shape shape;
  std::vector<std::string> tokens = split(operands, ' ');
  const bool marked = tokens[0][0] == '=' || tokens[0][0] == '~';
  if (marked) shape.nan_rule = tokens[0][0];
  shape.destination = tokens[0].substr(marked ? 1 : 0);
  for (std::size_t i = 1; i < tokens.size(); ++i) {
    std::string token = tokens[i];
    if (token == "carry") {
      shape.carry = true;
      continue;
    }
    if (token[0] >= '0' && token[0] <= '9') {
      shape.sources.push_back(token);
      continue;
    }
    if (token == "V") {
      std::string list;
      for (unsigned k = 0; k < 4; ++k) {
        list += fmt::format("{}{}{}", k == 0 ? "{" : ", ", register_of('f'), shape.kinds.size());
        shape.kinds.push_back('f');
      }
      shape.sources.push_back(list + "}");
      continue;
    }
    const bool sign = token[0] == '-' || token[0] == '!';
    const char kind = token[sign ? 1 : 0];
    const std::string selector = token.substr(sign ? 2 : 1);
    shape.sources.push_back((sign ? token.substr(0, 1) : "") +
                            fmt::format("{}{}", register_of(kind), shape.kinds.size()) + selector);
    shape.kinds.push_back(kind);
  }
  return shape;
}

std::string destination_text(const std::string& destination) {
  if (destination == "P") return "%p20|%p21";
  if (destination == "R|p") return "%r20|%p20";
  if (destination == "_|p") return "_|%p20";
  return fmt::format("{}20{}", register_of(destination[0]), destination.substr(1));
}

std::string instance_text(const Shape& shape, const std::string& words, unsigned slot) {
  std::string text;
  // A carry that depends on the first source.
  if (shape.carry) text += "\tcvt.u32.u64 %t1, %w0;\n\tadd.cc.u32 %t0, %t1, 0x80000000;\n";
  text += "\t" + words + " " + destination_text(shape.destination);
  for (const std::string& source : shape.sources) text += ", " + source;
  text += ";\n";
  if (shape.carry && shape.destination == "r")
    return text + "\taddc.u32 %t0, 0, 0;\n\tmov.b64 %x0, {%r20, %t0};\n" +
           fmt::format("\tst.global.u64 [%out+{}], %x0;\n", slot * 8);
  if (shape.carry)
    return text + "\taddc.u32 %t0, 0, 0;\n\tmov.b64 %x0, {%t0, %t0};\n\tmul.lo.u64 %x0, %x0, 0x9e3779b9;\n" +
           fmt::format("\txor.b64 %x0, %x0, %rd20;\n\tst.global.u64 [%out+{}], %x0;\n", slot * 8);
  return text + store(shape.destination, slot);
}

/// The PTX version that supports the target and its instructions. Only 128-bit registers need more than the
/// oldest one.
/// oldest.
std::string head_of(const std::string& target) {
  const int number = std::stoi(target.substr(target.find('_') + 1));
  const char* const version = number < 70 ? "6.0" : number <= 89 ? "8.6" : "9.0";
  return fmt::format(".version {}\n.target {}\n.address_size 64\n", version, target);
}

FormKernel kernel_of(const std::string& target, const Shape& shape, const std::vector<std::string>& texts,
                     std::uint64_t seed) {
  FormKernel kernel;
  kernel.target = target;
  kernel.sources = static_cast<unsigned>(shape.kinds.size());
  kernel.input = input_of(shape.kinds, seed, kernel.threads);
  std::string body;
  for (unsigned k = 0; k < kernel.sources; ++k) body += load(shape.kinds[k], k);
  for (unsigned k = 0; k < texts.size(); ++k) {
    body += instance_text(shape, texts[k], k);
    kernel.instances.push_back({texts[k], kind_of(shape.destination[0], shape.nan_rule)});
  }
  const bool wide = std::count(shape.kinds.begin(), shape.kinds.end(), 'W') != 0;
  kernel.ptx =
      head_of(target) +
      fmt::format(
          "\n.visible .entry k(.param .u64 k_in, .param .u64 "
          "k_out)\n{{\n"
          "\t.reg .pred %p<22>;\n\t.reg .b16 %rs<22>;\n\t.reg .b32 %r<22>;\n\t.reg .b64 %rd<22>;\n\t.reg "
          ".f32 "
          "%f<22>;\n"
          "\t.reg .b8 %rb<22>;\n{}\t.local .align 16 .b8 %loc[16];\n\t.reg .f64 %fd<22>;\n\t.reg .b32 "
          "%t<4>;\n\t.reg .b64 %w<8>;\n\t.reg .b64 %x<4>;\n\t.reg .b64 %in, "
          "%out;\n"
          "\tld.param.u64 %in, [k_in];\n\tld.param.u64 %out, [k_out];\n\tmov.u32 %t0, %ctaid.x;\n\tmov.u32 "
          "%t1, "
          "%ntid.x;\n"
          "\tmov.u32 %t2, %tid.x;\n\tmad.lo.u32 %t3, %t0, %t1, %t2;\n\tmad.wide.u32 %in, %t3, {}, %in;\n"
          "\tmad.wide.u32 %out, %t3, {}, %out;\n{}\tret;\n}}\n",
          wide ? "\t.reg .b128 %q<22>;\n" : "", kernel.sources * 8, texts.size() * 8, body);
  return kernel;
}

}  // namespace

std::vector<FormKernel> form_kernels(const std::string& only) {
  // Rows for the usual target come first, so that their inputs do not depend on the others.
  std::map<std::tuple<bool, std::string, std::string>, std::vector<std::string>> by_operands;
  for (const Row& row : kRows)
    for (const std::string& text : expand(row.words))
      if (text.find(only) != std::string::npos)
        by_operands[{std::string_view(row.target) != kUsualTarget, row.target, row.operands}].push_back(text);
  std::vector<FormKernel> kernels;
  for (const auto& [key, texts] : by_operands) {
    const auto& [unusual, target, operands] = key;
    const Shape shape = shape_of(operands);
    for (std::size_t from = 0; from < texts.size(); from += kMaxInstances) {
      const std::size_t to = std::min(texts.size(), from + kMaxInstances);
      kernels.push_back(kernel_of(target, shape,
                                  {texts.begin() + static_cast<std::ptrdiff_t>(from),
                                   texts.begin() + static_cast<std::ptrdiff_t>(to)},
                                  kernels.size()));
    }
  }
  return kernels;
}

bool same_result(Kind kind, std::uint64_t expected, std::uint64_t got) {
  if (expected == got) return true;
  const auto half_nan = [](std::uint64_t bits, std::uint64_t infinity) { return (bits & 0x7fff) > infinity; };
  const auto halves = [&](std::uint64_t infinity, unsigned width) {
    for (unsigned shift = 0; shift < width; shift += 16) {
      const std::uint64_t a = expected >> shift & 0xffff, b = got >> shift & 0xffff;
      if (a != b && !(half_nan(a, infinity) && half_nan(b, infinity))) return false;
    }
    return true;
  };
  switch (kind) {
    case Kind::f16:
      return halves(0x7c00, 16);
    case Kind::bf16:
      return halves(0x7f80, 16);
    case Kind::f16x2:
      return halves(0x7c00, 32);
    case Kind::bf16x2:
      return halves(0x7f80, 32);
    case Kind::f32:
      return (expected & 0x7fffffff) > 0x7f800000 && (got & 0x7fffffff) > 0x7f800000;
    case Kind::f64:
      return (expected & 0x7fffffffffffffff) > 0x7ff0000000000000 &&
             (got & 0x7fffffffffffffff) > 0x7ff0000000000000;
    case Kind::bits:
      break;
  }
  return false;
}

std::uint64_t canonical_result(Kind kind, std::uint64_t word) {
  struct Nan {
    std::uint64_t magnitude, infinity, one;
    unsigned width;
  };
  const auto replaced = [](std::uint64_t all, const Nan& nan) {
    std::uint64_t result = 0;
    const std::uint64_t mask = nan.magnitude * 2 + 1;
    for (unsigned shift = 0; shift < 64; shift += nan.width) {
      const std::uint64_t part = all >> shift & mask;
      result |= ((part & nan.magnitude) > nan.infinity ? nan.one : part) << shift;
    }
    return result;
  };
  switch (kind) {
    case Kind::f16:
    case Kind::f16x2:
      return replaced(word, {0x7fff, 0x7c00, 0x7fff, 16});
    case Kind::bf16:
    case Kind::bf16x2:
      return replaced(word, {0x7fff, 0x7f80, 0x7fff, 16});
    case Kind::f32:
      return replaced(word, {0x7fffffff, 0x7f800000, 0x7fffffff, 32});
    case Kind::f64:
      return replaced(word, {0x7fffffffffffffff, 0x7ff0000000000000, 0x7fffffffffffffff, 64});
    case Kind::bits:
      break;
  }
  return word;
}

}  // namespace quern::oracle
