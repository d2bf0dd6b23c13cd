// SPDX-License-Identifier: Apache-2.0
#include "npy.hpp"

#include <fmt/format.h>
#include <quern/error.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "files.hpp"

namespace quern::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::size_t kMaxRank = 64;  // NumPy's own limit

[[noreturn]] void fail(const std::string& file, const std::string& why) {
  throw Error(ErrorCode::io,
              fmt::format("{} is not a readable .npy file: {}\nhint: write it with numpy.save", file, why));
}

// What a descr says: bytes of one element, the Dtype if it is a plain one, and whether bytes must be swapped.
struct Described {
  Element element;
  std::size_t swap_bytes = 0;  ///< size of the units to reverse; 0: none
};

// Reads the header, a Python dict literal, without being a Python parser: just the values that NEP 1 allows.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  void read() {
    expect('{');
    while (peek() != '}') {
      const std::string key = string();
      expect(':');
      if (key == "descr")
        descr_ = descr();
      else if (key == "fortran_order")
        fortran_ = boolean();
      else if (key == "shape")
        shape_ = shape();
      else
        fail(file_, "unknown header key '" + key + "'");
      if (peek() == ',') ++at_;
    }
    expect('}');
    if (!descr_ || !fortran_ || !shape_) fail(file_, "the header lacks descr, fortran_order or shape");
  }

  const Described& described() const { return *descr_; }
  bool fortran() const { return *fortran_; }
  std::int64_t data_bytes() {
    std::int64_t bytes = static_cast<std::int64_t>(descr_->element.size_bytes);
    bool empty = false;
    for (const std::int64_t extent : *shape_) {
      empty = empty || extent == 0;
      bytes = checked(bytes, std::max<std::int64_t>(extent, 1));
    }
    return empty ? 0 : bytes;
  }
  const std::vector<std::int64_t>& extents() const { return *shape_; }

 private:
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (peek() != c) fail(file_, fmt::format("its header is malformed at byte {}", at_));
    ++at_;
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(file_, fmt::format("its header is malformed at byte {}", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail(file_, "its header has an unfinished string");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    peek();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}})
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    fail(file_, "fortran_order is neither True nor False");
  }
  std::int64_t integer() {
    peek();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail(file_, "its shape is not made of whole numbers");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }
  std::vector<std::int64_t> shape() {
    std::vector<std::int64_t> extents;
    expect('(');
    while (peek() != ')') {
      extents.push_back(integer());
      if (extents.size() > kMaxRank) fail(file_, "it has more than 64 dimensions");
      if (peek() == ',')
        ++at_;
      else if (peek() != ')')
        fail(file_, "its shape is malformed");
    }
    ++at_;
    return extents;
  }
  Described descr() {
    const bool is_record = peek() == '[';
    const std::size_t begin = at_;
    Described result = is_record ? record(0) : plain(string());
    if (is_record) result.element.descr = text_.substr(begin, at_ - begin);
    if (result.element.size_bytes == 0) fail(file_, "its elements have no bytes");
    return result;
  }
  // [('name', descr), ('name', descr, (2, 3)), (('title', 'name'), ...), ...]
  Described record(unsigned depth) {
    if (depth > 32) fail(file_, "its record type is nested more than 32 deep");
    Described result;
    expect('[');
    while (peek() != ']') {
      expect('(');
      if (peek() == '(') {
        ++at_;
        string();
        expect(',');
        string();
        expect(')');
      } else {
        string();
      }
      expect(',');
      const Described field = peek() == '[' ? record(depth + 1) : plain(string());
      if (field.swap_bytes > 1)
        fail(file_, "records with big-endian fields are not supported; convert with .newbyteorder('<')");
      std::int64_t count = 1;
      if (peek() == ',') {
        ++at_;
        if (peek() == '(')
          for (const std::int64_t extent : shape()) count = checked(count, extent);
        else if (peek() != ')')
          count = integer();
      }
      expect(')');
      result.element.size_bytes +=
          static_cast<std::size_t>(checked(count, static_cast<std::int64_t>(field.element.size_bytes)));
      if (result.element.size_bytes > (std::size_t{1} << 31)) fail(file_, "one record is larger than 2 GiB");
      if (peek() == ',') ++at_;
    }
    ++at_;
    return result;
  }
  std::int64_t checked(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product) || product > (std::int64_t{1} << 47))
      fail(file_, "its size overflows");
    return product;
  }
  // [ns], [25s]
  static bool is_unit(std::string_view text) {
    if (text.size() < 3 || text.front() != '[' || text.back() != ']') return false;
    const std::string_view inside = text.substr(1, text.size() - 2);
    return std::all_of(inside.begin(), inside.end(), [](unsigned char c) { return std::isalnum(c) != 0; });
  }
  Described plain(const std::string& text) {
    if (text.size() < 2) fail(file_, "unknown element type '" + text + "'");
    std::string_view rest = text;
    char order = '|';
    if (std::string_view("<>|=").find(rest.front()) != std::string_view::npos) {
      order = rest.front();
      rest.remove_prefix(1);
    }
    const char kind = rest.empty() ? '\0' : rest.front();
    std::size_t size = 0;
    const auto [end, error] =
        std::from_chars(rest.data() + (rest.empty() ? 0 : 1), rest.data() + rest.size(), size);
    const bool date = kind == 'M' || kind == 'm';
    const std::string_view unit = rest.substr(static_cast<std::size_t>(end - rest.data()));
    if (error != std::errc() || !(unit.empty() || (date && is_unit(unit))) || size > (std::size_t{1} << 31))
      fail(file_, "unknown element type '" + text + "'");
    if (kind == 'O') fail(file_, "it holds Python objects, which have no bytes that a kernel could read");
    if (kind == 'U') size *= 4;
    Described result;
    result.element.size_bytes = size;
    result.element.descr = text;
    if (order == '>') {
      result.swap_bytes = kind == 'c' ? size / 2 : kind == 'U' ? 4 : (kind == 'S' || kind == 'V') ? 0 : size;
      if (result.swap_bytes > 1) result.element.descr.front() = '<';
    }
    const std::string word = fmt::format("{}{}", kind, size);
    for (int i = 0; i <= static_cast<int>(Dtype::complex128); ++i) {
      const Element element = element_of(static_cast<Dtype>(i));
      if (element.descr.substr(1) == word) result.element = element;
    }
    if (!result.element.dtype && std::string_view("SUVMm").find(kind) == std::string_view::npos)
      fail(file_, "element type '" + text + "' has no counterpart in kernels");
    return result;
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::optional<Described> descr_;
  std::optional<bool> fortran_;
  std::optional<std::vector<std::int64_t>> shape_;
};

void swap_units(std::vector<std::byte>& bytes, std::size_t unit) {
  for (std::size_t i = 0; i + unit <= bytes.size(); i += unit)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + unit));
}

void make_fortran(Array& array) {
  std::int64_t step = static_cast<std::int64_t>(array.element.size_bytes);
  for (std::size_t i = 0; i < array.shape.size(); ++i) {
    array.strides[i] = step;
    step *= std::max<std::int64_t>(array.shape[i], 1);
  }
}

std::uint32_t little_endian(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<std::uint8_t>(bytes[i]);
  return value;
}

}  // namespace

Array parse_npy(std::string_view bytes, const std::string& file) {
  if (!bytes.starts_with(kMagic))
    fail(file, bytes.empty() ? "it is empty" : "it does not begin with the .npy magic bytes");
  if (bytes.size() < 10) fail(file, "it ends within its header");
  const int version = bytes[6];
  if (version < 1 || version > 3)
    fail(file, fmt::format("format version {} is unknown (1 to 3 are)", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (bytes.size() < 8 + length_bytes) fail(file, "it ends within its header");
  const std::size_t header_bytes = little_endian(bytes.substr(8, length_bytes));
  const std::size_t data_begin = 8 + length_bytes + header_bytes;
  if (bytes.size() < data_begin) fail(file, "it ends within its header");
  HeaderReader header(bytes.substr(8 + length_bytes, header_bytes), file);
  header.read();

  const Described& described = header.described();
  const std::int64_t needed = header.data_bytes();
  const std::size_t present = bytes.size() - data_begin;
  if (present < static_cast<std::size_t>(needed))
    fail(file, fmt::format("its header promises {} bytes of data, but only {} are there", needed, present));
  Array array = make_array(described.element, header.extents());
  if (needed > 0)
    std::memcpy(array.bytes->data(), bytes.data() + data_begin, static_cast<std::size_t>(needed));
  if (described.swap_bytes > 1) swap_units(*array.bytes, described.swap_bytes);
  if (header.fortran()) make_fortran(array);
  return array;
}

Array read_npy(const std::string& path) { return parse_npy(read_whole_file(path), path); }

std::string format_npy(const Array& given) {
  const Array array = contiguous(given);
  const bool fortran = !array.c_contiguous();
  std::string shape;
  for (const std::int64_t extent : array.shape)
    shape += fmt::format("{}{}", shape.empty() ? "" : ", ", extent);
  if (array.shape.size() == 1) shape += ',';
  const bool record = array.element.descr.front() == '[';
  const char* quote = record ? "" : "'";
  std::string header = fmt::format("{{'descr': {0}{1}{0}, 'fortran_order': {2}, 'shape': ({3}), }}", quote,
                                   array.element.descr, fortran ? "True" : "False", shape);
  const std::size_t length_bytes = header.size() + 64 > 65535 ? 4 : 2;
  const std::size_t before = 8 + length_bytes;
  header.append((64 - (before + header.size() + 1) % 64) % 64, ' ');  // data begin at a multiple of 64
  header += '\n';
  std::string file(kMagic);
  file += static_cast<char>(length_bytes == 2 ? 1 : 2);
  file += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) file += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  file += header;
  file.append(reinterpret_cast<const char*>(array.bytes->data()), array.bytes->size());
  return file;
}

void write_npy(const std::string& path, const Array& array) { write_whole_file(path, format_npy(array)); }

}  // namespace quern::cli
