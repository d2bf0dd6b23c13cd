// SPDX-License-Identifier: Apache-2.0
// .npy files: NumPy Enhancement Proposal 1, "A Simple File Format for NumPy Arrays", versions 1.0 to 3.0.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.hpp"
#include "quern/attempt.hpp"
#include "quern/error.hpp"
#include "quern/file.hpp"
#include "quern/ndarray.hpp"

namespace quern {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr std::string_view kBfloat16 = "<V2";
constexpr unsigned kMaxDepth = 32;
constexpr std::size_t kMaxItemBytes = std::size_t{1} << 31;

/// Reads the header, a Python dict literal, in the subset of Python that NEP 1 allows.
class HeaderReader {
 public:
  HeaderReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  /// Reads the header and returns the layout of the array that it describes.
  Layout read_layout() {
    try {
      read();
      return Layout(shape, element.size_bytes, order);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::usage) throw;
      fail(error.what());  // an invalid type or shape
    }
  }

  [[noreturn]] void fail(const std::string& why, const char* hint = "write it with numpy.save") const {
    throw Error(ErrorCode::io, fmt::format("{} is not a readable .npy file: {}\nhint: {}", file_, why, hint));
  }

  ElementType element;
  std::size_t swap_bytes = 0;  ///< units of big-endian data to reverse; 0: none
  Order order = Order::c;
  Shape shape;

 private:
  void read() {
    expect('{');
    while (peek() != '}') {
      const std::string key = string();
      expect(':');
      if (!seen_.insert(key).second) fail("its header has '" + key + "' twice");
      if (key == "descr")
        element = descr(0, swap_bytes);
      else if (key == "fortran_order")
        order = boolean() ? Order::f : Order::c;
      else if (key == "shape")
        shape = tuple();
      else
        fail("unknown header key '" + key + "'");
      if (peek() == ',') ++at_;
    }
    expect('}');
    if (seen_.size() != 3) fail("the header lacks descr, fortran_order or shape");
  }
  char peek() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect(char c) {
    if (peek() != c) fail(fmt::format("its header is malformed at byte {}", at_));
    ++at_;
  }
  std::string string() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') fail(fmt::format("its header is malformed at byte {}", at_));
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("its header has an unfinished string");
    std::string value(text_.substr(at_ + 1, end - at_ - 1));
    if (value.find('\\') != std::string::npos)
      fail("a string of its header has escapes, which are not supported");
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
    fail("fortran_order is neither True nor False");
  }
  std::int64_t integer() {
    peek();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
    if (error != std::errc() || value < 0) fail("its shape is not made of whole numbers");
    at_ = static_cast<std::size_t>(end - text_.data());
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }
  Shape tuple() {
    Shape extents;
    expect('(');
    while (peek() != ')') {
      extents.push_back(integer());
      if (peek() == ',')
        ++at_;
      else if (peek() != ')')
        fail("its shape is malformed");
    }
    ++at_;
    return extents;
  }
  ElementType descr(unsigned depth, std::size_t& swap) {
    if (depth > kMaxDepth) fail("its record type is nested more than 32 deep");
    return peek() == '[' ? record(depth) : plain(string(), swap);
  }
  /// [('name', descr), ('name', descr, (2, 3)), ('', '|V4'), ...]; a field without a name is padding.
  ElementType record(unsigned depth) {
    std::vector<Field> fields;
    std::size_t at = 0;
    expect('[');
    while (peek() != ']') {
      Field field = one_field(depth);
      field.offset_bytes = at;
      at += field.size_bytes();
      if (at > kMaxItemBytes) fail("one record is larger than 2 GiB");
      if (!field.name.empty()) fields.push_back(std::move(field));
      if (peek() == ',') ++at_;
    }
    ++at_;
    return RecordType(std::move(fields), at);
  }
  Field one_field(unsigned depth) {
    Field field;
    expect('(');
    if (peek() == '(') {  // ('title', 'name')
      ++at_;
      string();
      expect(',');
      field.name = string();
      expect(')');
    } else {
      field.name = string();
    }
    expect(',');
    std::size_t swap = 0;
    field.element = descr(depth + 1, swap);
    if (swap > 1) fail("records with big-endian fields are not supported; convert with .newbyteorder('<')");
    if (peek() == ',') {
      ++at_;
      if (peek() == '(')
        field.shape = tuple();
      else if (peek() != ')')
        field.shape = {integer()};
    }
    expect(')');
    static_cast<void>(Layout(field.shape, field.element.size_bytes));  // refuses what overflows
    return field;
  }
  ElementType plain(std::string text, std::size_t& swap) {
    const bool big = text.starts_with('>');
    if (big) text.front() = '<';
    const bool is_bfloat = text == kBfloat16 && !big;  // as ml_dtypes spells it
    if (text.size() > 1 && (text[1] == 'S' || text[1] == 'a'))
      text[1] = 'V';  // bytes strings are opaque bytes
    if (!is_bfloat && text.starts_with("<V")) text.front() = '|';
    if (const std::optional<ElementType> found = element_of_typestr(text)) {
      if (found->size_bytes > kMaxItemBytes) fail("one element is larger than 2 GiB");
      const bool complex = found->dtype == Dtype::complex64 || found->dtype == Dtype::complex128;
      if (big && found->dtype) swap = complex ? found->size_bytes / 2 : found->size_bytes;
      return *found;
    }
    fail("element type '" + text + "' has no counterpart in kernels",
         "convert it before numpy.save: x.astype('float64'), or another of bool, int8 to int64, uint8 to "
         "uint64, "
         "float16 to float64, complex64 and complex128");
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t at_ = 0;
  std::set<std::string> seen_;
};

std::string quoted(const std::string& name) {
  const char quote = name.find('\'') == std::string::npos ? '\'' : '"';
  if (name.find(quote) != std::string::npos || name.find('\\') != std::string::npos)
    throw Error(ErrorCode::usage,
                fmt::format("cannot write field {} to a .npy file: its name needs escapes; rename it", name));
  return quote + name + quote;
}

std::string descr_text(const ElementType& element) {
  if (element.record == nullptr) return fmt::format("'{}'", typestr(element));
  // One after the other in memory, which need not be the order they were declared in.
  std::vector<const Field*> fields;
  for (const Field& field : element.record->fields()) fields.push_back(&field);
  std::ranges::sort(fields, {},
                    [](const Field* field) { return std::pair(field->offset_bytes, field->size_bytes()); });
  std::string text = "[";
  std::size_t at = 0;
  const auto pad = [&](std::size_t to) {
    if (to > at) text += fmt::format("{}('', '|V{}')", text.size() > 1 ? ", " : "", to - at);
    at = to;
  };
  for (const Field* field : fields) {
    pad(field->offset_bytes);
    text += fmt::format("{}({}, {}", text.size() > 1 ? ", " : "", quoted(field->name),
                        descr_text(field->element));
    if (!field->shape.empty()) text += ", " + shape_text(field->shape);
    text += ")";
    at += field->size_bytes();
  }
  pad(element.size_bytes);
  return text + "]";
}

std::size_t little_endian(std::string_view bytes) {
  std::size_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = (value << 8) | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

Expected<NDArray> NDArray::try_load_npy(const std::filesystem::path& path) {
  return attempt([&] { return load_npy(path); });
}

NDArray NDArray::load_npy(const std::filesystem::path& path) {
  const std::string file = path.string();
  const Expected<std::string> read = base::read_file(path);
  if (!read) throw Error(ErrorCode::io, to_string(read.errors()), read.errors());
  const std::string_view bytes = *read;
  HeaderReader nothing("", file);
  if (!bytes.starts_with(kMagic))
    nothing.fail(bytes.empty() ? "it is empty" : "it does not begin with the .npy magic bytes");
  if (bytes.size() < 12) nothing.fail("it ends within its header");
  const int version = bytes[6];
  if (version < 1 || version > 3)
    nothing.fail(fmt::format("format version {} is unknown (1 to 3 are)", version));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t header_bytes = little_endian(bytes.substr(8, length_bytes));
  const std::size_t begin = 8 + length_bytes + header_bytes;
  if (bytes.size() < begin) nothing.fail("it ends within its header");
  HeaderReader header(bytes.substr(8 + length_bytes, header_bytes), file);
  const Layout layout = header.read_layout();
  if (bytes.size() - begin < layout.size_bytes())
    header.fail(fmt::format("its header promises {} bytes of data, but only {} are there",
                            layout.size_bytes(), bytes.size() - begin));
  const NDArray array(header.shape, header.element, header.order);
  if (layout.size_bytes() > 0) std::memcpy(array.data(), bytes.data() + begin, layout.size_bytes());
  if (header.swap_bytes > 1)
    for (std::size_t i = 0; i < layout.size_bytes(); i += header.swap_bytes)
      std::reverse(array.data() + i, array.data() + i + header.swap_bytes);
  return array;
}

void NDArray::save_npy(const std::filesystem::path& path) const {
  const NDArray array = copy(layout_.order());
  std::string header =
      fmt::format("{{'descr': {}, 'fortran_order': {}, 'shape': {}, }}", descr_text(element_),
                  layout_.order() == Order::f ? "True" : "False", shape_text(shape()));
  const std::size_t length_bytes = header.size() + 64 > 65535 ? 4 : 2;
  header.append((64 - (8 + length_bytes + header.size() + 1) % 64) % 64,
                ' ');  // data begin at a multiple of 64
  header += '\n';
  std::string file(kMagic);
  file += static_cast<char>(length_bytes == 2 ? 1 : 2);
  file += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) file += static_cast<char>((header.size() >> (8 * i)) & 0xff);
  file += header;
  file.append(reinterpret_cast<const char*>(array.data()), array.size_bytes());
  if (const Expected<void> written = write_file_atomically(path, std::as_bytes(std::span(file))); !written)
    throw Error(ErrorCode::io, to_string(written.errors()), written.errors());
}

}  // namespace quern
