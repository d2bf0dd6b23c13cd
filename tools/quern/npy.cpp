// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/npy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "tools/quern/npy_descr.hpp"
#include "tools/quern/python_literal.hpp"

namespace tool {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr std::size_t kMaxHeaderBytes = std::size_t{16} << 20;
constexpr std::size_t kMaxDimensions = 64;

quern::Diagnostic broken(const std::string& name, const std::string& what,
                         std::string hint = "write it again with numpy.save") {
  quern::Diagnostic diagnostic;
  diagnostic.code = "npy";
  diagnostic.message = fmt::format("cannot read {}: {}", name, what);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

/// Where the header's text is, and where the elements begin.
struct Frame {
  std::string_view header;
  std::size_t data_offset = 0;
};

quern::Expected<Frame> read_frame(std::string_view file, const std::string& name) {
  if (file.size() < 10 || !file.starts_with(kMagic))
    return broken(name, "it is not a .npy file (it does not begin with the bytes \\x93NUMPY)");
  const auto byte = [&](std::size_t at) { return std::size_t{static_cast<unsigned char>(file[at])}; };
  const std::size_t major = byte(6);
  if (major < 1 || major > 3)
    return broken(name,
                  fmt::format("its format version is {}.{}, versions 1 to 3 are known", major, byte(7)));
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  if (file.size() < 8 + length_bytes) return broken(name, "it ends within its header");
  std::size_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= byte(8 + i) << (8 * i);
  const std::size_t begin = 8 + length_bytes;
  if (length > kMaxHeaderBytes) return broken(name, fmt::format("its header claims {} bytes", length));
  if (length > file.size() - begin)
    return broken(name, fmt::format("its header claims {} bytes, the file has {} after it begins", length,
                                    file.size() - begin));
  return Frame{file.substr(begin, length), begin + length};
}

/// Versions 1 and 2 are written in Latin-1, version 3 in UTF-8, as everything here.
std::string to_utf8(std::string_view latin1) {
  std::string text;
  for (const char c : latin1) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x80) {
      text += c;
    } else {
      text += static_cast<char>(0xc0 | code >> 6);
      text += static_cast<char>(0x80 | (code & 0x3f));
    }
  }
  return text;
}

struct Header {
  Descr descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;
};

bool read_shape(const PythonLiteral& literal, std::vector<std::int64_t>& shape) {
  const PythonLiteral::Sequence* sequence = literal.sequence();
  if (sequence == nullptr || !sequence->tuple || sequence->items.size() > kMaxDimensions) return false;
  for (const PythonLiteral& item : sequence->items) {
    if (item.integer() == nullptr || *item.integer() < 0) return false;
    shape.push_back(*item.integer());
  }
  return true;
}

quern::Expected<Header> read_header(std::string_view text, const std::string& name) {
  const quern::Expected<PythonLiteral> literal = read_python_literal(text);
  if (!literal)
    return broken(name, fmt::format("its header is not a Python dict: {}", literal.errors().front().message));
  const PythonLiteral::Dict* dict = literal->dict();
  if (dict == nullptr) return broken(name, "its header is not a Python dict");
  Header header;
  bool seen[3] = {};
  for (const auto& [key, value] : dict->items) {
    if (key == "descr") {
      quern::Expected<Descr> descr = read_descr(value);
      if (!descr) return broken(name, descr.errors().front().message, descr.errors().front().hint);
      header.descr = *std::move(descr);
      seen[0] = true;
    } else if (key == "fortran_order" && value.boolean() != nullptr) {
      header.fortran_order = *value.boolean();
      seen[1] = true;
    } else if (key == "shape" && read_shape(value, header.shape)) {
      seen[2] = true;
    } else {
      return broken(name, fmt::format("the header's '{}' is not understood", key));
    }
  }
  if (!seen[0] || !seen[1] || !seen[2])
    return broken(name, "its header lacks 'descr', 'fortran_order' or 'shape'");
  return header;
}

void swap_bytes(HostArray& array, const std::vector<Swap>& swaps) {
  const std::size_t size = array.element.size_bytes;
  for (std::size_t at = 0; size > 0 && at + size <= array.data->size(); at += size)
    for (const Swap& swap : swaps)
      for (std::size_t i = 0; i < swap.count; ++i) {
        std::byte* const value = array.data->data() + at + swap.offset + i * swap.value_bytes;
        std::reverse(value, value + swap.value_bytes);
      }
}

/// The file's order of axes to the array's: Fortran order is C order of the reversed shape, seen transposed.
HostArray place(const Header& header, std::span<const std::byte> bytes) {
  std::vector<std::int64_t> shape = header.shape;
  if (header.fortran_order) std::reverse(shape.begin(), shape.end());
  HostArray array = make_array(header.descr.element, std::move(shape));
  if (!bytes.empty()) std::memcpy(array.data->data(), bytes.data(), bytes.size());
  swap_bytes(array, header.descr.swaps);
  return header.fortran_order ? array.transposed() : array;
}

}  // namespace

quern::Expected<HostArray> parse_npy(std::span<const std::byte> file, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  const quern::Expected<Frame> frame = read_frame(text, name);
  if (!frame) return frame.errors();
  const bool utf8 = text[6] == 3;
  const quern::Expected<Header> header =
      read_header(utf8 ? std::string(frame->header) : to_utf8(frame->header), name);
  if (!header) return header.errors();
  const std::optional<std::size_t> bytes = checked_bytes(header->shape, header->descr.element.size_bytes);
  if (!bytes) return broken(name, "its shape is larger than an address space");
  const std::size_t there = file.size() - frame->data_offset;
  if (*bytes > there)
    return broken(name,
                  fmt::format("its header promises {} bytes of elements, the file holds {}; it is cut short",
                              *bytes, there));
  return place(*header, file.subspan(frame->data_offset, *bytes));
}

quern::Expected<HostArray> read_npy(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::error_code ignored;
  if (!file || std::filesystem::is_directory(path, ignored)) {
    quern::Diagnostic diagnostic =
        broken(path.string(), std::strerror(file ? EISDIR : errno), "check the file's name");
    diagnostic.code = "io";
    return diagnostic;
  }
  const std::streamoff size = file.tellg();
  if (size < 0) return broken(path.string(), "it is a pipe or a device", "give a regular file");
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) return broken(path.string(), "it could not be read to its end", "check the disk it is on");
  return parse_npy(bytes, path.string());
}

std::string npy_bytes(const HostArray& array) {
  const HostArray ordered = array.contiguous();
  std::string shape = "(";
  for (std::size_t axis = 0; axis < array.shape.size(); ++axis)
    shape += fmt::format("{}{}", axis == 0 ? "" : ", ", array.shape[axis]);
  shape += array.shape.size() == 1 ? ",)" : ")";
  std::string header =
      fmt::format("{{'descr': {}, 'fortran_order': False, 'shape': {}, }}", array.element.descr, shape);
  const bool ascii =
      std::all_of(header.begin(), header.end(), [](char c) { return static_cast<unsigned char>(c) < 128; });
  const std::size_t length_bytes = ascii && header.size() + 128 < 65536 ? 2 : 4;
  const std::size_t before = 8 + length_bytes;
  header.append(63 - (before + header.size()) % 64,
                ' ');  // so that the elements begin at a multiple of 64 bytes
  header += '\n';
  std::string file(kMagic);
  file += static_cast<char>(!ascii ? 3 : length_bytes == 4 ? 2 : 1);
  file += '\0';
  for (std::size_t i = 0; i < length_bytes; ++i) file += static_cast<char>(header.size() >> (8 * i) & 0xff);
  file += header;
  const std::span<const std::byte> bytes = ordered.bytes();
  file.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return file;
}

}  // namespace tool
