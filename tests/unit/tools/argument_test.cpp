// SPDX-License-Identifier: Apache-2.0
// Expected numbers come from NumPy 2 (numpy_reference.py in this folder prints them).
#include "arrays/argument.hpp"

#include <doctest/doctest.h>
#include <quern/error.hpp>

#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "arrays/npy.hpp"
#include "numpy_reference.hpp"

using namespace quern;
using namespace quern::cli;

namespace {

Array array_of(const char* text) { return std::get<Array>(parse_argument(text).value); }

std::string hex(const Array& array) {
  std::string text;
  for (std::int64_t i = 0; i < array.count(); ++i)
    for (std::size_t b = 0; b < array.element.size_bytes; ++b) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", std::to_integer<unsigned>(element_at(array, i)[b]));
      text += digits;
    }
  return text;
}

std::string message_of(const char* text) {
  try {
    parse_argument(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

struct TemporaryFile {
  std::string path = (std::filesystem::temp_directory_path() /
                      ("quern_argument_test_" + std::to_string(::getpid()) + ".npy"))
                         .string();
  explicit TemporaryFile(std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  ~TemporaryFile() { std::filesystem::remove(path); }
};

std::string file_of(const Array& array) {
  const TemporaryFile file("");
  write_npy(file.path, array);
  std::ifstream in(file.path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Array written_and_read(const Array& array) { return read_npy(TemporaryFile(file_of(array)).path); }

}  // namespace

TEST_CASE("array expressions hold what NumPy's functions hold, bit for bit") {
  for (const NumpyRow& row : kNumpyRows) {
    CAPTURE(row.argument);
    const Array array = array_of(row.argument);
    CHECK(typestr(array.element.type) == row.descr);
    CHECK(array.shape == row.shape);
    CHECK(hex(array) == row.hex);
  }
}

TEST_CASE("a tuple holds numbers, each with its own type") {
  const auto tuple = [](const char* text) { return std::get<TupleOf>(parse_argument(text).value).items; };
  const std::vector<Scalar> items = tuple("(3, 4.5, float32(1), true, -2)");
  REQUIRE(items.size() == 5);
  CHECK(items[0].natural_dtype() == Dtype::int64);
  CHECK(items[1].natural_dtype() == Dtype::float64);
  CHECK(items[2].dtype == Dtype::float32);
  CHECK(items[3].natural_dtype() == Dtype::bool_);
  CHECK(std::get<std::int64_t>(items[4].value) == -2);
  CHECK(tuple("(7,)").size() == 1);
  CHECK(parse_argument("p=(1, 2)").name == "p");
  for (const char* wrong : {"()", "(3)", "(3, 4", "(3 4)", "(3, x)", "(3, 4) 5", "(3, (4, 5))", "(,)"})
    CHECK_THROWS_AS(parse_argument(wrong), Error);
}

TEST_CASE("files that NumPy wrote are read with their values, in Fortran order, big-endian and as records") {
  for (const NumpyFile& file : kNumpyFiles) {
    CAPTURE(file.what);
    const TemporaryFile temporary(std::string_view(file.bytes, file.size));
    const Array array = std::get<Array>(parse_argument(temporary.path + file.suffix).value);
    CHECK(array.shape == file.shape);
    CHECK(hex(array) == file.hex);
  }
}

TEST_CASE("a written file reads back to the same array") {
  for (const char* text : {"arange(0, 24, 1, float32)", "zeros((0, 3), int8)", "full((2, 3, 4), 7, bfloat16)",
                           "full((), 2.5, float64)"}) {
    const Array array = array_of(text);
    const Array again = written_and_read(array);
    CHECK(again.shape == array.shape);
    CHECK(again.element == array.element);
    CHECK(hex(again) == hex(array));
  }
}

TEST_CASE("a Fortran-ordered array stays in Fortran order when written") {
  Array array = array_of("arange(0, 6, 1, int16)");
  array.shape = {2, 3};
  array.strides = {2, 4};
  const Array again = written_and_read(array);
  CHECK(again.strides == array.strides);
  CHECK(hex(again) == hex(array));
}

TEST_CASE("every truncation and every corruption of a header's byte is an error or an array, never a crash") {
  const std::string good = file_of(array_of("arange(0, 8, 1, int32)"));
  for (std::size_t size = 0; size < good.size(); ++size)
    CHECK_THROWS_AS(read_npy(TemporaryFile(good.substr(0, size)).path), Error);
  for (std::size_t i = 0; i < 80; ++i)
    for (int value = 0; value < 256; value += 7) {
      std::string bad = good;
      bad[i] = static_cast<char>(value);
      const TemporaryFile file(bad);
      try {
        read_npy(file.path);
      } catch (const Error& error) {
        CHECK(std::string(error.what()).find(file.path) != std::string::npos);
      }
    }
}

TEST_CASE("scalars are typed by their text and refuse what does not fit") {
  CHECK(std::get<Scalar>(parse_argument("3").value).natural_dtype() == Dtype::int64);
  CHECK(std::get<Scalar>(parse_argument("-2.5").value).natural_dtype() == Dtype::float64);
  CHECK(std::get<Scalar>(parse_argument("18446744073709551615").value).natural_dtype() == Dtype::uint64);
  CHECK(std::get<Scalar>(parse_argument("true").value).natural_dtype() == Dtype::bool_);
  CHECK(std::get<Scalar>(parse_argument("float32(2)").value).dtype == Dtype::float32);
  CHECK(std::get<LengthOf>(parse_argument("#2").value).argument == 2);
  CHECK(parse_argument("n=3").name == "n");
  CHECK(message_of("uint8(300)").find("300 does not fit uint8") != std::string::npos);
  CHECK(message_of("int32(1.5)").find("1.5 does not fit int32") != std::string::npos);
  CHECK_THROWS_AS(to_bytes(Scalar{1.5, {}}, Dtype::int64), Error);
}

TEST_CASE("what is no argument is refused with the place and a hint") {
  for (const char* text : {"",           "zeros",
                           "zeros(",     "zeros(3",
                           "zeros(-1)",  "zeros(3, floaty)",
                           "zeros(3) x", "#",
                           "#x",         "1.2.3",
                           "1e999",      "nofile.npy[",
                           "arange()",   "arange(0, 1, 0)",
                           "full(3)",    "random(3, int32)",
                           "value(3)",   "zeros((4,4), shape=3)",
                           "foo(3)",     "zeros((1000000000,1000000000,1000000000))",
                           "hello"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_argument(text), Error);
  }
}

TEST_CASE("numbers at the ends of their range neither overflow nor lose their meaning") {
  // Python: len(range(a, b, c)), list(range(a, b, c))
  const Array last = array_of("arange(9223372036854775805, 9223372036854775807, 1)");
  CHECK(last.shape == std::vector<std::int64_t>{2});
  CHECK(hex(last) == "fdffffffffffff7ffeffffffffffff7f");
  CHECK(array_of("arange(9223372036854775807, -9223372036854775808, -9223372036854775808)").count() == 2);
  CHECK(array_of("arange(0, -5, 1)").count() == 0);
  for (const char* text :
       {"--5", "+-5", "-nan(5)", "zeros((0, 4611686018427387904, 4))", "linspace(0, 1e300, 3, int32)",
        "full((2,), nan, int8)", "arange(0, 9223372036854775807, 1)"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(parse_argument(text), Error);
  }
}

TEST_CASE("a slice's step may be larger than its axis") {
  // numpy.arange(3)[::4611686018427387904], [2::-9223372036854775808]
  const TemporaryFile file(file_of(array_of("arange(3)")));
  const auto sliced = [&](const char* slice) { return hex(array_of((file.path + slice).c_str())); };
  CHECK(sliced("[::4611686018427387904]") == "0000000000000000");
  CHECK(sliced("[2::-9223372036854775808]") == "0200000000000000");
}

TEST_CASE("a .npy header that NumPy would not write is refused") {
  const auto with = [](std::string header) {
    const std::string length{static_cast<char>(header.size()), '\0'};
    return std::string("\x93NUMPY\x01", 7) + '\0' + length + header + std::string(64, '\0');
  };
  CHECK(read_npy(TemporaryFile(with("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }")).path)
            .count() == 2);
  for (const char* header :
       {"{'descr': '<f4', 'shape': (2,), }", "{'descr': '|S0', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': [], 'fortran_order': False, 'shape': (2,), }",
        "{'descr':", "{'descr': ", "{'descr': '<M8[\"', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 4611686018427387904, 4), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }"}) {
    CAPTURE(header);
    CHECK_THROWS_AS(read_npy(TemporaryFile(with(header)).path), Error);
  }
}

TEST_CASE("half precision conversions round once, to nearest even") {
  CHECK(to_half(1.0) == 0x3c00);
  CHECK(to_half(65504.0) == 0x7bff);
  CHECK(to_half(65520.0) == 0x7c00);
  CHECK(to_half(0x1p-25) == 0x0000);
  CHECK(to_half(0x1.8p-25) == 0x0001);
  CHECK(to_half(-0x1p-24) == 0x8001);
  CHECK(to_half(1.0 + 0x1p-11) == 0x3c00);
  CHECK(to_half(1.0 + 0x1p-11 + 0x1p-40) == 0x3c01);
  CHECK(to_bfloat16(1.0 + 0x1p-8) == 0x3f80);
  CHECK(to_bfloat16(1.0 + 0x1p-8 + 0x1p-50) == 0x3f81);
  CHECK(to_bfloat16(-3.5e38) == 0xff80);
}

TEST_CASE("dimensions are one to three whole numbers") {
  CHECK(parse_dimensions("8x4x2", "--block") == std::array<std::uint32_t, 3>{8, 4, 2});
  CHECK(parse_dimensions("64", "--block") == std::array<std::uint32_t, 3>{64, 1, 1});
  for (const char* text : {"", "x", "8x", "8x4x2x1", "-1", "8 x 4", "99999999999"})
    CHECK_THROWS_AS(parse_dimensions(text, "--block"), Error);
}
