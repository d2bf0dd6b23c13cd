// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/library_identity.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <span>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "base/file.hpp"

namespace quern::compile {
namespace {

constexpr std::uint64_t kMostNoteBytes = 1 << 20;
constexpr std::size_t kLeastIdBytes = 8;  // shorter ones are no hashes

bool read_at(std::ifstream& file, std::uint64_t at, void* to, std::size_t size) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(static_cast<char*>(to), static_cast<std::streamsize>(size));
  return file.gcount() == static_cast<std::streamsize>(size);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes)
    for (const int shift : {4, 0}) text += "0123456789abcdef"[(static_cast<unsigned char>(c) >> shift) & 15];
  return text;
}

constexpr std::size_t padded(std::size_t size) { return (size + 3) / 4 * 4; }

std::string id_among(std::string_view notes) {
  while (notes.size() >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const std::size_t name_bytes = padded(note.n_namesz);
    if (notes.size() < name_bytes || notes.size() - name_bytes < note.n_descsz) return {};
    const bool is_id = note.n_type == NT_GNU_BUILD_ID && notes.starts_with(std::string_view("GNU\0", 4));
    if (is_id && note.n_descsz >= kLeastIdBytes) return hex(notes.substr(name_bytes, note.n_descsz));
    notes.remove_prefix(std::min(notes.size(), name_bytes + padded(note.n_descsz)));
  }
  return {};
}

std::string build_id(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header;
  if (!read_at(file, 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_phentsize != sizeof(Elf64_Phdr))
    return {};
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) return {};
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMostNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!read_at(file, segment.p_offset, notes.data(), notes.size())) return {};
    if (std::string id = id_among(notes); !id.empty()) return id;
  }
  return {};
}

}  // namespace

std::optional<std::string> library_identity(const std::string& path) {
  if (const std::string id = build_id(path); !id.empty()) return "build-id:" + id;
  const Expected<std::string> content = base::read_file(path);
  if (!content) return std::nullopt;
  return "sha256:" + base::sha256(std::as_bytes(std::span(*content))).hex();
}

}  // namespace quern::compile
