// SPDX-License-Identifier: Apache-2.0
#include "cpu/code/build_id.hpp"

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace quern::cpu {
namespace {

/// Shorter ids are not digests of the contents.
constexpr std::size_t kLeastIdBytes = 16;

std::string hex(std::string_view bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const char each : bytes) {
    const auto byte = static_cast<unsigned char>(each);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// `notes`: a segment of ELF notes; the name and the content of each are padded to 4 bytes.
std::string id_among(std::string_view notes) {
  constexpr std::string_view kName("GNU\0", 4);
  const auto padded = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    notes.remove_prefix(sizeof note);
    const std::size_t name_bytes = padded(note.n_namesz), content_bytes = padded(note.n_descsz);
    if (notes.size() < name_bytes + content_bytes) return {};
    if (note.n_type == NT_GNU_BUILD_ID && notes.starts_with(kName) && note.n_descsz >= kLeastIdBytes)
      return hex(notes.substr(name_bytes, note.n_descsz));
    notes.remove_prefix(name_bytes + content_bytes);
  }
  return {};
}

struct Search {
  std::uintptr_t address = 0;
  std::string id;
};

int visit(dl_phdr_info* object, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  bool is_ours = false;
  for (int i = 0; i < object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    is_ours = is_ours || (segment.p_type == PT_LOAD &&
                          search.address - (object->dlpi_addr + segment.p_vaddr) < segment.p_memsz);
  }
  if (!is_ours) return 0;
  for (int i = 0; i < object->dlpi_phnum && search.id.empty(); ++i) {
    const ElfW(Phdr)& segment = object->dlpi_phdr[i];
    if (segment.p_type == PT_NOTE)
      search.id = id_among({reinterpret_cast<const char*>(object->dlpi_addr + segment.p_vaddr),  // NOLINT
                            segment.p_memsz});
  }
  return 1;
}

}  // namespace

std::string own_build_id() {
  Search search{.address = reinterpret_cast<std::uintptr_t>(&own_build_id), .id = {}};
  ::dl_iterate_phdr(&visit, &search);
  return search.id;
}

}  // namespace quern::cpu
