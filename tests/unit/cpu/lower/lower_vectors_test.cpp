// SPDX-License-Identifier: Apache-2.0
// Vector registers as operands, by component, and as parameters of functions, with fixed and with random
// shapes.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <random>
#include <string>
#include <vector>

#include "ir_interpreter.hpp"
#include "support.hpp"

using namespace quern;
using cpu::lower::CallForm;

namespace {

test::IrInterpreter ran(const cpu::ir::Module& module, std::uint32_t tid = 0) {
  test::IrInterpreter machine(module);
  machine.tid_x = tid;
  machine.run();
  return machine;
}

// ---- functions of random shapes

/// A parameter or result in registers.
struct Shape {
  unsigned bits = 32;  ///< of an element
  unsigned count = 1;
  char kind = 'u';  ///< the letter of its type
};

struct Signature {
  std::vector<Shape> parameters, results;
};

using Words = std::vector<std::uint64_t>;

std::uint64_t cut(std::uint64_t value, unsigned bits) {
  return bits == 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

/// The widths of all elements, in order.
std::vector<unsigned> widths(const std::vector<Shape>& shapes) {
  std::vector<unsigned> all;
  for (const Shape& shape : shapes) all.insert(all.end(), shape.count, shape.bits);
  return all;
}

std::vector<Shape> random_shapes(std::mt19937& random, unsigned most) {
  std::vector<Shape> shapes(1 + random() % most);
  for (Shape& shape : shapes) {
    shape.bits = 16u << random() % 3;
    shape.count = 1u << random() % 3;
    if (shape.bits * shape.count > 128) shape.count = 2;
    shape.kind = shape.bits == 16 ? "bus"[random() % 3] : "busf"[random() % 4];
  }
  return shapes;
}

/// `.reg .v4 .f32 p0, .reg .u64 p1`
std::string declared(const std::vector<Shape>& shapes, const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string vector = shapes[i].count > 1 ? fmt::format(".v{} ", shapes[i].count) : "";
    text += fmt::format("{}.reg {}.{}{} {}{}", i == 0 ? "" : ", ", vector, shapes[i].kind, shapes[i].bits,
                        name, name == "_" ? "" : std::to_string(i));
  }
  return text;
}

/// The names of all elements, in order.
std::vector<std::string> elements(const std::vector<Shape>& shapes, const std::string& name) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    for (unsigned e = 0; e < shapes[i].count; ++e)
      all.push_back(fmt::format(
          "{}{}{}", name, i,
          shapes[i].count == 1 ? ""
                               : (i % 2 == 0 ? std::string(".") + "xyzw"[e] : std::string(".") + "rgba"[e])));
  return all;
}

std::string list(std::size_t count, const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += fmt::format("{}{}{}", i == 0 ? "" : ", ", name, i);
  return text;
}

std::string registers(const std::vector<Shape>& shapes, const std::string& name) {
  std::string text;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const std::string vector = shapes[i].count > 1 ? fmt::format(".v{} ", shapes[i].count) : "";
    text += fmt::format(".reg {}.{}{} {}{};\n", vector, shapes[i].kind, shapes[i].bits, name, i);
  }
  return text;
}

/// Temporaries of 64 bits, t<bits> and the wide one, hold a value during its conversion.
std::string to_wide(const std::string& from, unsigned bits) {
  if (bits == 64) return fmt::format("mov.b64 wide, {};\n", from);
  return fmt::format("mov.b{0} t{0}, {1}; cvt.u64.u{0} wide, t{0};\n", bits, from);
}
std::string from_wide(const std::string& to, unsigned bits) {
  if (bits == 64) return fmt::format("mov.b64 {}, wide;\n", to);
  return fmt::format("cvt.u{0}.u64 t{0}, wide; mov.b{0} {1}, t{0};\n", bits, to);
}

constexpr const char* kTemporaries = ".reg .b64 wide; .reg .b16 t16; .reg .b32 t32; .reg .pred done;\n";

/// If depth is 0, result j = parameter j (modulo their number) + `salt` + j. Otherwise the results of the
/// function for depth - 1 and parameters that are each 3 greater, plus depth.
std::string function_text(const Signature& signature, const std::string& name, unsigned salt) {
  const std::vector<std::string> from = elements(signature.parameters, "p"),
                                 to = elements(signature.results, "r");
  const std::vector<unsigned> from_bits = widths(signature.parameters), to_bits = widths(signature.results);
  std::string text = fmt::format(".func ({}) {}(.reg .u32 depth, {})\n{{\n{}.reg .u32 less;\n{}",
                                 declared(signature.results, "r"), name, declared(signature.parameters, "p"),
                                 kTemporaries, registers(signature.parameters, "q"));
  text += "setp.eq.u32 done, depth, 0;\n@!done bra deeper;\n";
  for (std::size_t j = 0; j < to.size(); ++j)
    text += to_wide(from[j % from.size()], from_bits[j % from.size()]) +
            fmt::format("add.u64 wide, wide, {};\n", salt + j) + from_wide(to[j], to_bits[j]);
  text += "ret;\ndeeper:\nsub.u32 less, depth, 1;\n";
  const std::vector<std::string> next = elements(signature.parameters, "q");
  for (std::size_t j = 0; j < from.size(); ++j)
    text += to_wide(from[j], from_bits[j]) + "add.u64 wide, wide, 3;\n" + from_wide(next[j], from_bits[j]);
  text += fmt::format("call ({}), {}, (less, {});\n", list(signature.results.size(), "r"), name,
                      list(signature.parameters.size(), "q"));
  for (std::size_t j = 0; j < to.size(); ++j)
    text += to_wide(to[j], to_bits[j]) +
            "{ .reg .u64 more; cvt.u64.u32 more, depth; add.u64 wide, wide, more; }\n" +
            from_wide(to[j], to_bits[j]);
  return text + "ret;\n}\n";
}

Words model(const Signature& signature, Words parameters, unsigned salt, std::uint32_t depth) {
  const std::vector<unsigned> from_bits = widths(signature.parameters), to_bits = widths(signature.results);
  Words results(to_bits.size());
  if (depth == 0) {
    for (std::size_t j = 0; j < results.size(); ++j)
      results[j] = cut(parameters[j % parameters.size()] + salt + j, to_bits[j]);
    return results;
  }
  for (std::size_t j = 0; j < parameters.size(); ++j) parameters[j] = cut(parameters[j] + 3, from_bits[j]);
  results = model(signature, std::move(parameters), salt, depth - 1);
  for (std::size_t j = 0; j < results.size(); ++j) results[j] = cut(results[j] + depth, to_bits[j]);
  return results;
}

}  // namespace

TEST_CASE("a vector register is moved, loaded, stored, packed and unpacked as a whole or by components") {
  const auto machine = ran(test::lowered(test::kernel_text(R"(
    .reg .v4 .u32 a; .reg .v4 .b32 b; .reg .v2 .b32 halves; .reg .v2 .u64 long; .reg .b64 word;
    mov.v4.u32 a, {1, 2, 3, 4};
    mov.v4.u32 a, {a.w, a.z, a.g, a.r};
    st.global.v4.u32 [%rd1], a;
    ld.global.v4.u32 b, [%rd1];
    add.u32 b.x, b.y, a.a;
    st.global.v4.b32 [%rd1+16], {b.x, b.b, a.y, 9};
    mov.v2.b32 halves, {b.w, b.x};
    mov.b64 word, halves;
    st.global.u64 [%rd1+32], word;
    mov.u64 word, 0x0000000700000005;
    mov.b64 halves, word;
    st.global.v2.b32 [%rd1+40], halves;
    mov.v2.u64 long, {word, 11};
    st.global.v2.u64 [%rd1+48], long;)")));
  for (std::uint32_t i = 0; i < 4; ++i) CHECK(machine.word(i) == 4 - i);
  CHECK(machine.word(4) == 3 + 1);
  CHECK(machine.word(5) == 2);
  CHECK(machine.word(6) == 3);
  CHECK(machine.word(7) == 9);
  CHECK(machine.double_word(4) == ((std::uint64_t{4} << 32) | 1));
  CHECK(machine.double_word(5) == ((std::uint64_t{7} << 32) | 5));
  CHECK(machine.double_word(6) == 0x0000000700000005);
  CHECK(machine.double_word(7) == 11);
}

TEST_CASE("a vector register as parameter and result keeps its elements in order") {
  const auto machine = ran(test::lowered(test::kernel_text(R"(
    .reg .v4 .b32 a; .reg .v2 .b16 b;
    mov.v4.b32 a, {10, 20, 30, 40};
    call (b), f, (a, 5);
    st.global.v2.b16 [%rd1], b;
    call (b.y), g, (b.x);
    st.global.v2.b16 [%rd1+4], b;)",
                                                           R"(
.func (.reg .v2 .u16 r) f(.reg .v4 .u32 v, .reg .u32 more)
{
  .reg .u32 sum;
  add.u32 sum, v.x, more; cvt.u16.u32 r.x, sum;
  sub.u32 sum, v.w, v.y; cvt.u16.u32 r.y, sum;
  ret;
}
.func (.reg .u16 r) g(.reg .u16 x) { add.u16 r, x, 100; ret; })")));
  CHECK(machine.word(0) == (15 | 20 << 16));
  CHECK(machine.word(1) == (15 | 115 << 16));
}

TEST_CASE(
    "vector registers of random shapes are parameters of recursive functions and of calls through "
    "registers") {
  std::mt19937 random(20240711);
  for (unsigned run = 0; run < 60; ++run) {
    CAPTURE(run);
    const Signature signature{random_shapes(random, 4), random_shapes(random, 3)};
    const std::vector<unsigned> bits = widths(signature.parameters);
    const std::vector<std::string> names = elements(signature.parameters, "a");
    Words given;
    std::string body =
        registers(signature.parameters, "a") + registers(signature.results, "b") + kTemporaries;
    for (std::size_t j = 0; j < bits.size(); ++j) {
      given.push_back(cut(std::uint64_t{random()} << 32 | random(), bits[j]));
      body += fmt::format("mov.u64 wide, {:#x};\n", given[j]) + from_wide(names[j], bits[j]);
    }
    const bool direct = run % 2 == 0;
    const std::string arguments = list(signature.parameters.size(), "a"),
                      results = list(signature.results.size(), "b");
    body += "mov.u32 %r1, %tid.x; shr.u32 %r2, %r1, 1; and.b32 %r1, %r1, 1; setp.ne.u32 %p1, %r1, 0;\n";
    if (direct)
      body += fmt::format("call ({}), first, (%r2, {});\n", results, arguments);
    else
      body += fmt::format(
          "mov.u64 %rd2, first; mov.u64 %rd3, second; selp.b64 %rd2, %rd3, %rd2, %p1;\n"
          "shape: .callprototype ({}) _ (.reg .u32 _, {});\ncall ({}), %rd2, (%r2, {}), shape;\n",
          declared(signature.results, "_"), declared(signature.parameters, "_"), results, arguments);
    const std::vector<std::string> got = elements(signature.results, "b");
    const std::vector<unsigned> got_bits = widths(signature.results);
    for (std::size_t j = 0; j < got.size(); ++j)
      body += to_wide(got[j], got_bits[j]) + fmt::format("st.global.u64 [%rd1+{}], wide;\n", j * 8);
    const std::string text = test::kernel_text(
        body, function_text(signature, "first", 1000) + function_text(signature, "second", 70000));
    CAPTURE(text);
    for (const CallForm form : {CallForm::functions, CallForm::activations}) {
      const cpu::ir::Module module = test::lowered(text, "k", form);
      for (std::uint32_t tid = 0; tid < 8; ++tid) {
        const auto machine = ran(module, tid);
        const Words expected = model(signature, given, direct || tid % 2 == 0 ? 1000 : 70000, tid / 2);
        for (std::size_t j = 0; j < expected.size(); ++j) REQUIRE(machine.double_word(j) == expected[j]);
      }
    }
  }
}
