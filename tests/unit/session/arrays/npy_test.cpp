// SPDX-License-Identifier: Apache-2.0
// Reading and writing .npy files. The expected files come from NumPy (numpy_records.py in this folder prints
// them).
#include <doctest/doctest.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "numpy_records.hpp"

#include "../../support/arrays.hpp"
#include "../../support/messages.hpp"

using namespace quern;
using quern::test::counting;
using quern::test::holds;
using quern::test::message;

namespace {

/// A file name that is unique to this process.
struct TemporaryFile {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quern-npy-" + std::to_string(getpid()) + ".npy");
  TemporaryFile() = default;
  explicit TemporaryFile(std::string_view bytes) { std::ofstream(path, std::ios::binary) << bytes; }
  ~TemporaryFile() { std::filesystem::remove(path); }
  std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

NDArray load(const NumpyRecords& file) {
  return NDArray::load_npy(TemporaryFile(std::string_view(file.bytes, file.size)).path);
}

/// The contents of a file: the dict of the header without its padding, and the data.
struct Parts {
  std::string dict;
  std::string data;
  friend bool operator==(const Parts&, const Parts&) = default;
};
Parts parts(std::string_view file) {
  const std::size_t length = static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
  std::string_view dict = file.substr(10, length);
  dict = dict.substr(0, dict.rfind('}') + 1);
  return {std::string(dict), std::string(file.substr(10 + length))};
}
Parts written(const NDArray& array) {
  const TemporaryFile file;
  array.save_npy(file.path);
  CHECK((file.bytes().size() - array.size_bytes()) % 64 == 0);  // data begin at a multiple of 64
  return parts(file.bytes());
}

struct Inner {
  float x, y;
};
/// As in numpy_records.py, with align=True.
struct Cell {
  std::int8_t kind;
  Inner place;
  Inner corners[2];
  std::int16_t grid[2][3];
  double mass;
};

}  // namespace

TEST_CASE("nested records, array fields and padding that NumPy wrote are those of the C++ struct") {
  const NDArray cells = load(kAligned);
  CHECK(cells.element() == element_type_of<Cell>());
  REQUIRE(cells.size() == 3);
  const std::span<Cell> all = cells.values<Cell>();
  CHECK(all[1].kind == 11);
  CHECK(all[2].place.y == 2.5f);
  CHECK(all[2].corners[1].x == 21.0f);
  CHECK(all[0].grid[1][2] == 5);
  CHECK(all[2].grid[1][0] == 203);
  CHECK(all[2].mass == -2.0);
  CHECK(cells.field("corners").field("y").at<float>(1, 1) == 11.5f);
}

TEST_CASE("records at offsets of their own, nested twice, and with titles are read from NumPy's files") {
  const NDArray sparse = load(kSparse);
  CHECK(sparse.element().size_bytes == 20);
  CHECK(sparse.element().record->field("b").offset_bytes == 2);
  CHECK(sparse.element().record->field("a").offset_bytes == 9);
  CHECK(sparse.field("b").copy().at<std::int32_t>(1) == -7);
  CHECK(sparse.field("a").field("y").copy().at<float>(0) == 4.0f);
  const NDArray deep = load(kDeep);
  CHECK(deep.field("cells").shape().size() == 2);
  CHECK(deep.field("cells").field("v").copy().at<std::int32_t>(0, 1, 1) == 4);
  CHECK(deep.field("cells").field("w").field("x").copy().at<float>(0, 1) == 8.0f);
  CHECK(deep.field("t").copy().at<std::uint16_t>(0) == 65535);
  CHECK(load(kTitled).field("n").at<std::int32_t>(0) == 5);
}

TEST_CASE("a record array is written as NumPy writes it, byte for byte but for the blanks of the header") {
  for (const NumpyRecords& file : {kAligned, kSparse, kDeep, kHalf, kBfloat, kMixed}) {
    CAPTURE(file.what);
    CHECK(written(load(file)) == parts(std::string_view(file.bytes, file.size)));
  }
}

TEST_CASE("fields that were declared in another order than they lie in are written where they lie") {
  const RecordType turned({{"last", Dtype::float64, 8, {}}, {"first", Dtype::int16, 2, {2}}}, 16);
  const NDArray array({2}, turned);
  array.field("last").assign(1.5);
  array.field("first").assign(7);
  const Parts file = written(array);
  CHECK(file.dict ==
        "{'descr': [('', '|V2'), ('first', '<i2', (2,)), ('', '|V2'), ('last', '<f8')], 'fortran_order': "
        "False, "
        "'shape': (2,), }");
  const TemporaryFile again;
  array.save_npy(again.path);
  const NDArray read = NDArray::load_npy(again.path);
  CHECK(read.field("last").at<double>(1) == 1.5);
  CHECK(read.field("first").copy().at<std::int16_t>(1, 1) == 7);
}

TEST_CASE(
    "float16 files are NumPy's; bfloat16 files are those of ml_dtypes, and two plain bytes stay bytes") {
  const NDArray half = load(kHalf);
  REQUIRE(half.dtype() == Dtype::float16);
  CHECK(half.at<float16>(1).bits() == 0xc100);
  CHECK(half.at<float16>(2).bits() == 0x2e66);
  const NDArray brain = load(kBfloat);
  REQUIRE(brain.dtype() == Dtype::bfloat16);
  CHECK(brain.at<bfloat16>(1).bits() == 0xc020);
  CHECK(brain.at<bfloat16>(2).bits() == 0x3dcd);
  CHECK(load(kTwoBytes).element() == ElementType::opaque(2));
  const NDArray mixed = load(kMixed);
  CHECK(mixed.field("b").copy().at<bfloat16>(0).bits() == 0x3f80);
  CHECK(mixed.field("h").copy().at<float16>(0).bits() == 0x3c00);
}

TEST_CASE(".npy files keep shape, order, records and padding, and damaged ones are refused") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quern-interop-" + std::to_string(getpid()) + ".npy");
  struct Cell {
    char kind;
    double value[2];
  };
  const NDArray cells({3}, element_type_of<Cell>());
  cells.field("value")(2, 1).assign(2.5);
  for (const NDArray& array : {counting({2, 3}), counting({2, 3}).copy(Order::f), counting({}),
                               counting({0, 4}), cells, counting({4, 6})(Slice{{}, {}, 2}).copy()}) {
    array.save_npy(path);
    const NDArray read = NDArray::load_npy(path);
    CHECK(read.identical(array));
    CHECK(read.layout().order() == array.layout().order());
  }
  std::filesystem::resize_file(path, 130);
  CHECK(holds(message([&] { (void)NDArray::load_npy(path); }), "promises"));
  std::filesystem::resize_file(path, 20);
  CHECK(holds(message([&] { (void)NDArray::load_npy(path); }), "within its header"));
  std::filesystem::remove(path);
  CHECK_FALSE(message([&] { (void)NDArray::load_npy(path); }).empty());
}

TEST_CASE("a .npy file whose header describes no array is refused with the file's name and the reason") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quern-header-" + std::to_string(getpid()) + ".npy");
  const auto answer = [&](const std::string& descr, const std::string& shape) {
    const std::string header = "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}";
    std::string file("\x93NUMPY\x01\0", 8);
    file += {static_cast<char>(header.size()), '\0'};
    std::ofstream(path, std::ios::binary) << file + header;
    const std::string text = message([&] { (void)NDArray::load_npy(path); });
    CHECK(holds(text, path.string()));
    return text;
  };
  CHECK(holds(answer("[('t', '<i2'), ('t', '<i4')]", "(1,)"), "must be there and differ"));
  CHECK(holds(answer("'<f4', 'descr': '<f4'", "(1,)"), "twice"));
  CHECK(holds(answer("[('a\\x62', '<i2')]", "(1,)"), "escapes"));
  CHECK(holds(answer("'<f4'", "(4611686018427387904, 4)"), "shape"));
  std::filesystem::remove(path);
}

TEST_CASE("field names with quotes go through a .npy file") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quern-names-" + std::to_string(getpid()) + ".npy");
  const auto save = [&](const std::string& name) {
    Field field;
    field.name = name;
    field.element = Dtype::int32;
    const NDArray array({2}, RecordType({field}, 4));
    array.save_npy(path);
    CHECK(NDArray::load_npy(path).element() == array.element());
  };
  save("it's");
  save("the \"one\"");
  CHECK(holds(message([&] { save("it's \"one\""); }), "rename it"));
  std::filesystem::remove(path);
}
