// SPDX-License-Identifier: Apache-2.0
// cuda_fp16.h, cuda_bf16.h, cuda_fp8.h.
#include <doctest/doctest.h>

#include <cmath>

#include "harness.hpp"
#include "unit/cpu/operations/narrow.hpp"

using namespace quern;
using namespace quern::cuda_test;
using quern::cpu::emit::testing::narrow_exact;
using quern::cpu::emit::testing::narrow_value;
using quern::cpu::emit::testing::round_narrow;
namespace ir = quern::cpu::ir;

namespace {

/// A 16-bit type as its header spells it.
struct Format {
  ir::Type type;
  const char* include;
  const char* scalar;
  const char* pair;
  const char* name;  ///< in conversions: half, bfloat16
  Bound bound;
};
const Format kHalf{ir::Type::f16, "#include <cuda_fp16.h>\n", "__half", "__half2",
                   "half",        {Bound::Kind::f16}};
const Format kBfloat{ir::Type::bf16, "#include <cuda_bf16.h>\n", "__nv_bfloat16", "__nv_bfloat162",
                     "bfloat16",     {Bound::Kind::bf16}};

std::vector<Bits> values(const Format& format) {
  if (format.type == ir::Type::f16)
    return {0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3800, 0x3c00, 0xbc00, 0x3c01,
            0x3bff, 0x3e00, 0x4100, 0xc100, 0x57f0, 0x77ff, 0x7bff, 0xfbff, 0x7c00, 0xfc00,
            0x7e00, 0x3555, 0x4248, 0x4900, 0xc880, 0x5640, 0x1400, 0x2e66};
  return {0,      0x8000, 1,      0x8001, 0x7f,   0x80,   0x3f00, 0x3f80, 0xbf80, 0x3f81,
          0x3f7f, 0x3fc0, 0x4020, 0xc020, 0x4f00, 0x7f7f, 0xff7f, 0x7f80, 0xff80, 0x7fc0,
          0x3eab, 0x4049, 0x4120, 0xc110, 0x42c8, 0x3b80, 0x3dcd, 0x0100};
}

using Unary = double (*)(double);
using Binary = double (*)(double, double);

/// Rows on scalars, and on each lane of the pairs {a, b} and {b, c}.
class Rows {
 public:
  explicit Rows(const Format& format) : format_(format) {}

  void exact(const std::string& scalar, const std::string& pair, ir::Op op) {
    const ir::Type type = format_.type;
    const auto one = [=](Bits x, Bits y, Bits z) {
      return narrow_exact(type, op, narrow_value(type, x), narrow_value(type, y), narrow_value(type, z));
    };
    rows.push_back({scalar, [=](Bits a, Bits b, Bits c) { return one(a, b, c); }, format_.bound});
    rows.push_back({"__low2" + std::string(format_.name) + "(" + pair + ")",
                    [=](Bits a, Bits b, Bits c) { return one(a, b, c); }, format_.bound});
    rows.push_back({"__high2" + std::string(format_.name) + "(" + pair + ")",
                    [=](Bits a, Bits b, Bits c) { return one(b, c, a); }, format_.bound});
  }
  void rounded(const std::string& device, Binary compute) {
    const ir::Type type = format_.type;
    rows.push_back({device,
                    [=](Bits a, Bits b, Bits) {
                      return round_narrow(type, compute(narrow_value(type, a), narrow_value(type, b)));
                    },
                    format_.bound});
  }
  void truth(const std::string& device, bool (*holds)(double, double)) {
    const ir::Type type = format_.type;
    rows.push_back({device, [=](Bits a, Bits b, Bits) -> Bits {
                      return holds(narrow_value(type, a), narrow_value(type, b)) ? 1 : 0;
                    }});
  }
  void pair_truth(const std::string& device, bool (*holds)(double, double), Bits yes) {
    const ir::Type type = format_.type;
    rows.push_back({device, [=](Bits a, Bits b, Bits c) -> Bits {
                      const double x = narrow_value(type, a), y = narrow_value(type, b),
                                   z = narrow_value(type, c);
                      return (holds(x, y) ? yes : 0) | (holds(y, z) ? yes : 0) << 16;
                    }});
  }
  void both(const std::string& device, bool (*holds)(double, double)) {
    const ir::Type type = format_.type;
    rows.push_back({device, [=](Bits a, Bits b, Bits c) -> Bits {
                      const double x = narrow_value(type, a), y = narrow_value(type, b),
                                   z = narrow_value(type, c);
                      return holds(x, y) && holds(y, z) ? 1 : 0;
                    }});
  }
  std::vector<Row> rows;

 private:
  Format format_;
};

struct Comparison {
  const char* name;
  bool (*holds)(double, double);
};
bool unordered(double x, double y) { return std::isnan(x) || std::isnan(y); }
constexpr Comparison kComparisons[] = {
    {"eq", [](double x, double y) { return x == y; }},
    {"ne", [](double x, double y) { return !unordered(x, y) && x != y; }},
    {"lt", [](double x, double y) { return x < y; }},
    {"le", [](double x, double y) { return x <= y; }},
    {"gt", [](double x, double y) { return x > y; }},
    {"ge", [](double x, double y) { return x >= y; }},
    {"equ", [](double x, double y) { return unordered(x, y) || x == y; }},
    {"neu", [](double x, double y) { return x != y; }},
    {"ltu", [](double x, double y) { return !(x >= y); }},
    {"leu", [](double x, double y) { return !(x > y); }},
    {"gtu", [](double x, double y) { return !(x <= y); }},
    {"geu", [](double x, double y) { return !(x < y); }},
};

void check_format(const Format& format) {
  Rows rows(format);
  const bool is_half = format.type == ir::Type::f16;
  rows.exact("__hadd(a, b)", "__hadd2(x, y)", ir::Op::fadd);
  rows.exact("__hsub(a, b)", "__hsub2(x, y)", ir::Op::fsub);
  rows.exact("__hmul(a, b)", "__hmul2(x, y)", ir::Op::fmul);
  rows.exact("__hfma(a, b, c)", "__hfma2(x, y, z)", ir::Op::ffma);
  rows.exact("a + b", "x + y", ir::Op::fadd);
  rows.rounded("__hneg(a)", [](double x, double) { return -x; });
  rows.rounded("__habs(a)", [](double x, double) { return std::fabs(x); });
  rows.rounded("__hadd_sat(a, b)", [](double x, double y) {
    return x + y > 1 ? 1 : x + y > 0 ? x + y : 0.0;
  });
  rows.rounded("__hmul_sat(a, b)", [](double x, double y) {
    return x * y > 1 ? 1 : x * y > 0 ? x * y : 0.0;
  });
  rows.rounded("__hmax(a, b)",
               [](double x, double y) { return x == y ? (std::signbit(x) ? y : x) : std::fmax(x, y); });
  rows.rounded("__hmin(a, b)",
               [](double x, double y) { return x == y ? (std::signbit(x) ? x : y) : std::fmin(x, y); });
  rows.rounded("__hmax_nan(a, b)", [](double x, double y) {
    return unordered(x, y) ? NAN : x == y ? (std::signbit(x) ? y : x) : std::fmax(x, y);
  });
  rows.rounded("__hmin_nan(a, b)", [](double x, double y) {
    return unordered(x, y) ? NAN : x == y ? (std::signbit(x) ? x : y) : std::fmin(x, y);
  });
  rows.rounded("hsqrt(a)", [](double x, double) { return std::sqrt(x); });
  rows.rounded("hfloor(a)", [](double x, double) { return std::floor(x); });
  rows.rounded("hceil(a)", [](double x, double) { return std::ceil(x); });
  rows.rounded("htrunc(a)", [](double x, double) { return std::trunc(x); });
  rows.rounded("hrint(a)", [](double x, double) { return std::rint(x); });
  rows.rounded("a / b", [](double x, double y) { return x / y; });
  rows.truth("__hisnan(a)", [](double x, double) { return std::isnan(x); });
  rows.truth("__hisinf(a) != 0", [](double x, double) { return std::isinf(x); });
  const Bits one = is_half ? 0x3c00 : 0x3f80;
  for (const Comparison& comparison : kComparisons) {
    const std::string name = std::string("__h") + comparison.name;
    rows.truth(name + "(a, b)", comparison.holds);
    rows.pair_truth(name + "2(x, y)", comparison.holds, one);
    rows.pair_truth(name + "2_mask(x, y)", comparison.holds, 0xffff);
    rows.both(std::string("__hb") + comparison.name + "2(x, y)", comparison.holds);
  }
  const std::string type = format.scalar, pair = format.pair, name = format.name;
  const std::string make = is_half ? "__halves2half2" : "__halves2bfloat162";
  for (Row& row : rows.rows)
    if (row.device.find_first_of("xyz") != std::string::npos)
      row.device =
          "on(a, b, c, [](" + pair + " x, " + pair + " y, " + pair + " z) { return " + row.device + "; })";
  // hexp, hmax and similar names contain an x. The lambda does not harm them, but needs a, b, c.
  for (Row& row : rows.rows)
    if (row.device.starts_with("on(")) {
      const std::string open = "[](";
      row.device.replace(row.device.find(open), open.size(), "[=](");
    }
  const ir::Type ir_type = format.type;
  const auto widened = [ir_type](Bits a, Bits, Bits) {
    return bits_of(static_cast<float>(narrow_value(ir_type, a)));
  };
  rows.rows.push_back({"__" + name + "2float(a)", widened, single()});
  for (const auto& [suffix, round] :
       {std::pair<const char*, Unary>{"rn", [](double x) { return std::rint(x); }},
        {"rz", [](double x) { return std::trunc(x); }},
        {"rd", [](double x) { return std::floor(x); }},
        {"ru", [](double x) { return std::ceil(x); }}}) {
    const Unary to_whole = round;
    rows.rows.push_back({"__" + name + "2int_" + suffix + "(a)", [=](Bits a, Bits, Bits) -> Bits {
                           const double x = to_whole(narrow_value(ir_type, a));
                           if (std::isnan(x)) return 0;
                           return static_cast<std::uint32_t>(x >= 0x1p31    ? INT32_MAX
                                                             : x <= -0x1p31 ? INT32_MIN
                                                                            : static_cast<std::int32_t>(x));
                         }});
  }
  check({.includes = format.include,
         .type = type,
         .values = values(format),
         .rows = rows.rows,
         .prologue = "template <class F> __device__ auto on(" + type + " a, " + type + " b, " + type +
                     " c, F f) { return f(" + make + "(a, b), " + make + "(b, c), " + make + "(c, a)); }\n"});
}

/// Converts a float to one of the 8-bit formats, clamped to its largest number: finds the nearest of all
/// numbers of the format.
Bits nearest_of_eight_bits(double x, int fraction, int bias, Bits greatest) {
  if (std::isnan(x)) return 0x7f;
  const auto number = [&](Bits bits) {
    const int exponent = static_cast<int>(bits >> fraction);
    const double significand = static_cast<double>(bits & ((1u << fraction) - 1)) / (1 << fraction);
    return std::ldexp(exponent == 0 ? significand : 1 + significand, std::max(exponent, 1) - bias);
  };
  const double size = std::fabs(x);
  if (size >= number(greatest)) return greatest | (x < 0 ? 0x80 : 0);
  Bits best = 0;
  for (Bits bits = 1; bits <= greatest; ++bits) {
    const double distance = std::fabs(number(bits) - size), closest = std::fabs(number(best) - size);
    if (distance < closest || (distance == closest && (bits & 1) == 0)) best = bits;
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

}  // namespace

TEST_CASE("half precision: arithmetic, comparisons and conversions of cuda_fp16.h") { check_format(kHalf); }
TEST_CASE("bfloat16: arithmetic, comparisons and conversions of cuda_bf16.h") { check_format(kBfloat); }

TEST_CASE("floats become half and bfloat16 numbers in every rounding mode") {
  Table table{.includes = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n",
              .type = "float",
              .values = interesting_floats()};
  for (const double x : {65504.0, 65519.996, 65520.0, 5.9604645e-08, 2.9802322e-08, 2.9802326e-08, 6.1e-5,
                         1.00048828125, 1.0014648, 1.0078125 / 2, 1.01171875})
    table.values.push_back(bits_of(static_cast<float>(x)));
  table.rows.push_back({"__float2half_rn(a)", [](Bits a, Bits, Bits) {
                          return round_narrow(ir::Type::f16, static_cast<double>(f32(a)));
                        }});
  table.rows.push_back({"__float2bfloat16_rn(a)", [](Bits a, Bits, Bits) {
                          return round_narrow(ir::Type::bf16, static_cast<double>(f32(a)));
                        }});
  table.rows.push_back({"__floats2half2_rn(a, b)", [](Bits a, Bits b, Bits) {
                          return round_narrow(ir::Type::f16, static_cast<double>(f32(a))) |
                                 round_narrow(ir::Type::f16, static_cast<double>(f32(b))) << 16;
                        }});
  const auto directed = [&](const char* device, ir::Type type, int direction) {
    // -1: down, 1: up, 0: towards zero; moves from the nearest number by one unit in the last place.
    table.rows.push_back({device,
                          [=](Bits a, Bits, Bits) -> Bits {
                            const double x = static_cast<double>(f32(a));
                            Bits bits = round_narrow(type, x);
                            const double nearest = narrow_value(type, bits);
                            const bool lower = direction < 0 || (direction == 0 && x > 0);
                            if (std::isnan(x) || nearest == x) return bits;
                            const bool negative = (bits & 0x8000) != 0;
                            if (lower && nearest > x) bits = negative ? bits + 1 : bits - 1;
                            if (!lower && nearest < x) bits = negative ? bits - 1 : bits + 1;
                            return bits;
                          },
                          {type == ir::Type::f16 ? Bound::Kind::f16 : Bound::Kind::bf16}});
  };
  directed("__float2half_rz(a)", ir::Type::f16, 0);
  directed("__float2half_rd(a)", ir::Type::f16, -1);
  directed("__float2half_ru(a)", ir::Type::f16, 1);
  directed("__float2bfloat16_rz(a)", ir::Type::bf16, 0);
  directed("__float2bfloat16_rd(a)", ir::Type::bf16, -1);
  directed("__float2bfloat16_ru(a)", ir::Type::bf16, 1);
  check(table);
}

// Operations on both halves of words, which are computed in memory order; each half is compared with exact
// arithmetic.
TEST_CASE("pairs of halves are computed as their halves are") {
  if (!ready()) return;
  const Module module = cuda_test::session().load_cuda(R"(
    #include <cuda_fp16.h>
    extern "C" __global__ void k(const __half2* a, const __half2* b, const __half2* c, const float* by, float same, __half2* out, int n) {
      const int i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return;
      const float2 x = __half22float2(a[i]), y = __half22float2(b[i]);
      out[i] = __hfma2(a[i], b[i], c[i]);
      out[n + i] = __hfma2(c[0], b[i], a[i]);
      out[2 * n + i] = __floats2half2_rn(__fmaf_rn(x.x, same, y.x), __fmaf_rn(x.y, same, y.y));
      out[3 * n + i] = __floats2half2_rn(__fmul_rn(x.x, by[i]), __fmul_rn(x.y, by[i]));
      const __half2 sum = __hadd2(a[i], c[i]);
      out[4 * n + i] = sum;
      out[5 * n + i] = __hmul2(__lowhigh2highlow(sum), b[i]);
    })");
  const Kernel kernel = module.kernel("k");
  constexpr std::uint32_t kCount = 2000;  // full warps and one that is not
  const std::vector<Bits> special = values(kHalf);
  std::uint32_t seed = 1;
  const auto half = [&] {
    const std::uint32_t random = mixed(seed++);
    // Numbers near each other make sums that are halfway between two halves.
    return static_cast<std::uint32_t>(random >> 30 == 0   ? special[(random >> 8) % special.size()]
                                      : random >> 30 == 1 ? random >> 8 & 0xffff
                                                          : 0x3800 + (random >> 8 & 0x8fff));
  };
  std::vector<std::uint32_t> a(kCount), b(kCount), c(kCount);
  for (auto* const words : {&a, &b, &c})
    for (std::uint32_t& word : *words) word = half() | half() << 16;
  std::vector<float> by(kCount);
  for (float& factor : by) factor = static_cast<float>(mixed(seed++) % 2000) / 64 - 15;
  const float same = 1.0f / 3;
  auto out = cuda_test::session().to_device(std::vector<std::uint32_t>(std::size_t{6} * kCount));
  kernel({.grid = 8, .block = 256})(cuda_test::session().to_device(a), cuda_test::session().to_device(b),
                                    cuda_test::session().to_device(c), cuda_test::session().to_device(by),
                                    same, out, std::int32_t{kCount});
  const auto got = out.copy_to_host();
  const auto number = [](std::uint32_t word, int which) {
    return narrow_value(ir::Type::f16, word >> 16 * which & 0xffff);
  };
  const auto exact = [](ir::Op op, double x, double y, double z) {
    return narrow_exact(ir::Type::f16, op, x, y, z);
  };
  const auto rounded = [](float x) { return round_narrow(ir::Type::f16, static_cast<double>(x)); };
  std::size_t wrong = 0;
  for (std::uint32_t i = 0; i < kCount; ++i)
    for (const int which : {0, 1}) {
      const double x = number(a[i], which), y = number(b[i], which), z = number(c[i], which);
      const auto narrow_x = static_cast<float>(x), narrow_y = static_cast<float>(y);
      const auto other_sum = exact(ir::Op::fadd, number(a[i], 1 - which), number(c[i], 1 - which), 0);
      const std::uint64_t expected[] = {exact(ir::Op::ffma, x, y, z),
                                        exact(ir::Op::ffma, number(c[0], which), y, x),
                                        rounded(std::fma(narrow_x, same, narrow_y)),
                                        rounded(narrow_x * by[i]),
                                        exact(ir::Op::fadd, x, z, 0),
                                        exact(ir::Op::fmul, narrow_value(ir::Type::f16, other_sum), y, 0)};
      for (std::uint32_t row = 0; row < 6; ++row) {
        const std::uint32_t bits = got[row * kCount + i] >> 16 * which & 0xffff;
        const bool both_nan = (bits & 0x7fff) > 0x7c00 && (expected[row] & 0x7fff) > 0x7c00;
        if (bits == expected[row] || both_nan) continue;
        ++wrong;
        CHECK_MESSAGE(wrong > 10, "row ", row, ", word ", i, ", half ", which, ": ", bits, ", not ",
                      expected[row]);
      }
    }
  CHECK(wrong == 0);
}

TEST_CASE("floats become 8-bit numbers and back, as cuda_fp8.h has it") {
  Table table{.includes = "#include <cuda_fp8.h>\n", .type = "float", .values = interesting_floats()};
  for (const double x :
       {448.0,         464.0,         463.9,        480.0,   57344.0,   61440.0, 61439.0, 65536.0, 0.015625,
        0.0146,        0.001953125,   0.0009765625, 0.00097, 0.0009766, 1.0625,  1.1875,  1.125,   6.1035e-05,
        1.5258789e-05, 7.6293945e-06, 7.63e-06,     -0.001,  17.0,      19.0,    240.0,   0.0029})
    table.values.push_back(bits_of(static_cast<float>(x)));
  const auto e4m3 = [](Bits a) { return nearest_of_eight_bits(static_cast<double>(f32(a)), 3, 7, 0x7e); };
  const auto e5m2 = [](Bits a) { return nearest_of_eight_bits(static_cast<double>(f32(a)), 2, 15, 0x7b); };
  table.rows = {
      {"__nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E4M3)", [=](Bits a, Bits, Bits) { return e4m3(a); }},
      {"__nv_cvt_float_to_fp8(a, __NV_SATFINITE, __NV_E5M2)", [=](Bits a, Bits, Bits) { return e5m2(a); }},
      {"__nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E4M3)",
       [=](Bits a, Bits b, Bits) { return e4m3(a) | e4m3(b) << 8; }},
      {"__nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, __NV_E5M2)",
       [=](Bits a, Bits b, Bits) { return e5m2(a) | e5m2(b) << 8; }},
      {"__nv_cvt_fp8_to_halfraw((unsigned char)__float_as_uint(a), __NV_E5M2).x",
       [](Bits a, Bits, Bits) -> Bits { return (a & 0x7f) > 0x7c ? 0x7fff : (a & 0xff) << 8; }},
      {"float(__nv_fp8_e4m3(a))",
       [=](Bits a, Bits, Bits) {
         const Bits bits = e4m3(a);
         const int exponent = static_cast<int>(bits >> 3 & 15);
         const double significand = static_cast<double>(bits & 7) / 8;
         const double size = (bits & 0x7f) == 0x7f ? NAN
                                                   : std::ldexp(exponent == 0 ? significand : 1 + significand,
                                                                std::max(exponent, 1) - 7);
         return bits_of(static_cast<float>((bits & 0x80) != 0 ? -size : size));
       },
       single()},
  };
  check(table);
}

TEST_CASE("approximate functions of half precision") {
  Table table{.includes = "#include <cuda_fp16.h>\n", .type = "__half"};
  table.values = {0x3c00, 0xbc00, 0x3800, 0x4000, 0x4200, 0xc100,
                  0x2e66, 0x0400, 0x4900, 0x3555, 0xb555, 0x1400};
  const auto add = [&](const char* device, double relative, double (*reference)(double)) {
    // Compares as floats, for the bound.
    table.rows.push_back(
        {std::string("__half2float(") + device + ")",
         [=](Bits a, Bits, Bits) { return bits_of(reference(narrow_value(ir::Type::f16, a))); },
         single(relative * 0x1p24, 6e-8)});
  };
  add("htanh_approx(a)", 0x1p-10, [](double x) { return std::tanh(x); });
  add("hexp2(a)", 0x1p-9, [](double x) { return std::exp2(x); });
  add("hexp(a)", 0x1p-9, [](double x) { return std::exp(x); });
  add("hlog2(__habs(a))", 0x1p-9, [](double x) { return std::log2(std::fabs(x)); });
  add("hrcp(a)", 0x1p-10, [](double x) { return 1 / x; });
  add("hrsqrt(__habs(a))", 0x1p-10, [](double x) { return 1 / std::sqrt(std::fabs(x)); });
  add("hsin(a)", 0x1p-9, [](double x) { return std::sin(x); });
  add("hcos(a)", 0x1p-8, [](double x) { return std::cos(x); });
  check(table);
}
