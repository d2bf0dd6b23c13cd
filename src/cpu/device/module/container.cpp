// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/container.hpp"

#include <elf.h>
#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "cpu/device/driver.hpp"
#include "cpu/device/module/lz4.hpp"
#include "cpu/engine/host_pages.hpp"

namespace quern::cpu::device {
namespace {

constexpr std::uint32_t kFatBinaryMagic = 0xba55ed50;
constexpr std::uint32_t kWrapperMagic = 0x466243b1;
constexpr std::uint32_t kElfMagic = 0x464c457f;
constexpr std::string_view kArchiveMagic = "!<arch>\n";
/// Of a fat binary's own sizes: a text larger than that is taken for a damaged one.
constexpr std::uint64_t kMostTextBytes = std::uint64_t{1} << 30;

enum class EntryKind : std::uint16_t { ptx = 1, elf = 2 };
constexpr std::uint64_t kLz4Flag = 0x2000;
constexpr std::uint64_t kZstdFlag = 0x8000;

struct FatHeader {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t header_bytes;
  std::uint64_t bytes;
};
struct EntryHeader {
  std::uint16_t kind;
  std::uint16_t unused;
  std::uint32_t header_bytes;
  std::uint64_t payload_bytes;
  std::uint32_t compressed_bytes;
  std::uint32_t unused2;
  std::uint16_t minor;
  std::uint16_t major;
  std::uint32_t architecture;
  std::uint64_t unused3;
  std::uint64_t flags;
  std::uint64_t unused4;
  std::uint64_t decompressed_bytes;
};
static_assert(sizeof(FatHeader) == 16 && sizeof(EntryHeader) == 64);

/// A plain struct at `offset`; nothing if it does not lie in `bytes`.
template <class T>
std::optional<T> read_at(std::string_view bytes, std::uint64_t offset) noexcept {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::optional<std::string_view> part(std::string_view bytes, std::uint64_t offset,
                                     std::uint64_t size) noexcept {
  if (offset > bytes.size() || bytes.size() - offset < size) return std::nullopt;
  return bytes.substr(offset, size);
}

Refusal refuse(CUresult result, std::string code, const std::string& name, std::string message,
               std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.span.file = name;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return {result, {std::move(diagnostic)}};
}
Refusal damaged(const std::string& name, std::string_view what) {
  return refuse(CUDA_ERROR_INVALID_IMAGE, "image-damaged", name, fmt::format("{} is damaged", what),
                "make it anew");
}

/// The size of the fat binary that begins there, with its header.
std::optional<std::uint64_t> said_bytes(std::string_view bytes) noexcept {
  const std::optional<FatHeader> header = read_at<FatHeader>(bytes, 0);
  std::uint64_t size = 0;
  if (!header || header->magic != kFatBinaryMagic ||
      __builtin_add_overflow(header->bytes, header->header_bytes, &size))
    return std::nullopt;
  return size;
}

/// The memory at an address; empty if it cannot be read. Where that cannot be found out, the caller vouches
/// for it.
std::string_view readable_at(const void* address, std::uint64_t bytes) {
  const bool can =
      engine::host_access(address, bytes).value_or(engine::HostAccess::read) != engine::HostAccess::none;
  return can ? std::string_view(static_cast<const char*>(address), bytes) : std::string_view();
}

struct Entry {
  EntryHeader header;
  std::string_view payload;
};

/// False if the compressed bytes cannot become a text of that size.
bool may_become(std::string_view compressed, const EntryHeader& header) {
  constexpr std::uint64_t kMostLz4Ratio = 255;  // a byte of a length stands for that many at most
  if ((header.flags & kLz4Flag) != 0) return header.decompressed_bytes / kMostLz4Ratio <= compressed.size();
  const unsigned long long said = ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  return said == ZSTD_CONTENTSIZE_UNKNOWN || said == header.decompressed_bytes;
}

std::optional<std::string> text_of(const Entry& entry) {
  const EntryHeader& header = entry.header;
  if ((header.flags & (kLz4Flag | kZstdFlag)) == 0)
    return std::string(entry.payload.substr(0, entry.payload.find('\0')));
  if (header.compressed_bytes > entry.payload.size() || header.decompressed_bytes > kMostTextBytes)
    return std::nullopt;
  const std::string_view compressed = entry.payload.substr(0, header.compressed_bytes);
  if (!may_become(compressed, header)) return std::nullopt;
  std::string text(header.decompressed_bytes, '\0');
  if ((header.flags & kLz4Flag) != 0) {
    if (!decompress_lz4(compressed, text)) return std::nullopt;
  } else {
    const std::size_t size = ZSTD_decompress(text.data(), text.size(), compressed.data(), compressed.size());
    if (ZSTD_isError(size) != 0 || size != text.size()) return std::nullopt;
  }
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

struct Found {
  std::optional<Entry> best;  ///< the PTX to take
  std::string others;         ///< the entries that do not run here, for messages
};

/// Nothing: the entries are damaged.
std::optional<Found> look_through(std::string_view entries) {
  Found found;
  for (std::uint64_t at = 0; at < entries.size();) {
    const std::optional<EntryHeader> header = read_at<EntryHeader>(entries, at);
    if (!header || header->header_bytes < sizeof(EntryHeader)) return std::nullopt;
    const std::uint64_t begin = at + header->header_bytes;
    const std::optional<std::string_view> payload = part(entries, begin, header->payload_bytes);
    if (!payload) return std::nullopt;
    const bool is_ptx = header->kind == static_cast<std::uint16_t>(EntryKind::ptx);
    const bool runs = is_ptx && header->architecture <= compute_capability();
    if (runs && (!found.best || header->architecture > found.best->header.architecture))
      found.best = Entry{*header, *payload};
    if (!runs)
      found.others += fmt::format("{}{} for sm_{}", found.others.empty() ? "" : ", ",
                                  is_ptx ? "PTX"
                                  : header->kind == static_cast<std::uint16_t>(EntryKind::elf)
                                      ? "machine code"
                                      : "code for link-time optimisation",
                                  header->architecture);
    at = begin + header->payload_bytes;
  }
  return found;
}

}  // namespace

Container container_of(std::string_view bytes) noexcept {
  if (bytes.starts_with(kArchiveMagic)) return Container::archive;
  const std::uint32_t magic = read_at<std::uint32_t>(bytes, 0).value_or(0);
  if (magic == kFatBinaryMagic) return Container::fat_binary;
  if (magic == kWrapperMagic) return Container::wrapper;
  return magic == kElfMagic ? Container::elf : Container::none;
}

std::string_view first_fat_binary(std::string_view bytes) noexcept {
  const std::optional<std::uint64_t> size = said_bytes(bytes);
  return size && *size <= bytes.size() ? bytes.substr(0, *size) : std::string_view();
}

std::string_view fat_binary_at(const void* image) {
  const std::optional<std::uint64_t> size = said_bytes(readable_at(image, sizeof(FatHeader)));
  return size ? readable_at(image, *size) : std::string_view();
}

std::string_view wrapped_fat_binary(const void* wrapper) {
  constexpr std::size_t kAddressOffset = 8;
  const void* image = nullptr;
  const std::string_view bytes = readable_at(wrapper, kAddressOffset + sizeof image);
  if (bytes.empty()) return {};
  std::memcpy(&image, bytes.data() + kAddressOffset, sizeof image);
  return fat_binary_at(image);
}

std::variant<std::vector<NamedPtx>, Refusal> ptx_of_fat_binaries(std::string_view bytes,
                                                                 const std::string& name) {
  constexpr std::string_view kWhat = "the fat binary";
  std::vector<NamedPtx> texts;
  for (std::uint64_t at = 0; at < bytes.size();) {
    if (bytes[at] == '\0') {  // sections are padded
      ++at;
      continue;
    }
    const std::optional<FatHeader> header = read_at<FatHeader>(bytes, at);
    if (!header || header->magic != kFatBinaryMagic || header->header_bytes < sizeof(FatHeader))
      return damaged(name, kWhat);
    const std::optional<std::string_view> entries = part(bytes, at + header->header_bytes, header->bytes);
    const std::optional<Found> found = entries ? look_through(*entries) : std::nullopt;
    if (!found) return damaged(name, kWhat);
    if (!found->best)
      return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "image-machine-code", name,
                    fmt::format("a fat binary has no PTX that runs here (it has {})",
                                found->others.empty() ? "nothing" : found->others),
                    fmt::format("compile with PTX for compute_{} or an older architecture: "
                                "-gencode arch=compute_80,code=compute_80",
                                compute_capability()));
    std::optional<std::string> text = text_of(*found->best);
    if (!text) return damaged(name, kWhat);
    texts.push_back({name, *std::move(text)});
    at += header->header_bytes + header->bytes;
  }
  if (texts.empty()) return damaged(name, kWhat);
  return texts;
}

std::variant<std::vector<NamedPtx>, Refusal> ptx_of_object(std::string_view bytes, const std::string& name) {
  constexpr std::string_view kWhat = "the object file";
  constexpr std::uint16_t kCudaMachine = 190;  // EM_CUDA
  const std::optional<Elf64_Ehdr> header = read_at<Elf64_Ehdr>(bytes, 0);
  if (!header || header->e_ident[EI_CLASS] != ELFCLASS64) return damaged(name, kWhat);
  if (header->e_machine == kCudaMachine)
    return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "image-machine-code", name,
                  "the image is machine code for a GPU (cubin); the CPU device runs PTX",
                  "load or link the PTX of the module instead");
  const auto section = [&](std::uint64_t index) {
    return read_at<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  const std::optional<Elf64_Shdr> names = section(header->e_shstrndx);
  if (!names || header->e_shoff > bytes.size()) return damaged(name, kWhat);
  std::vector<NamedPtx> texts;
  for (std::uint64_t index = 0; index < header->e_shnum; ++index) {
    const std::optional<Elf64_Shdr> each = section(index);
    const std::optional<std::string_view> rest =
        each && names->sh_offset <= bytes.size()
            ? part(bytes, names->sh_offset + each->sh_name, 1)
                  ? std::optional(bytes.substr(names->sh_offset + each->sh_name))
                  : std::nullopt
            : std::nullopt;
    if (!rest) return damaged(name, kWhat);
    const std::string_view section_name = rest->substr(0, rest->find('\0'));
    if (section_name != ".nv_fatbin" && section_name != "__nv_relfatbin") continue;
    const std::optional<std::string_view> content = part(bytes, each->sh_offset, each->sh_size);
    if (!content) return damaged(name, kWhat);
    auto found = ptx_of_fat_binaries(*content, name);
    if (auto* refusal = std::get_if<Refusal>(&found)) return std::move(*refusal);
    for (NamedPtx& text : std::get<std::vector<NamedPtx>>(found)) texts.push_back(std::move(text));
  }
  if (texts.empty())
    return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "image-no-code", name,
                  "the object file has no code for a device", "compile it with nvcc, with PTX");
  return texts;
}

std::variant<std::vector<Member>, Refusal> members_of_archive(std::string_view bytes,
                                                              const std::string& name) {
  // Source: ar(5) of the GNU and BSD variants: 60-byte headers, sizes in decimal digits.
  constexpr std::size_t kHeaderBytes = 60;
  constexpr std::string_view kWhat = "the archive";
  if (!bytes.starts_with(kArchiveMagic)) return damaged(name, kWhat);
  std::vector<Member> members;
  std::string_view long_names;
  for (std::uint64_t at = kArchiveMagic.size(); at < bytes.size();) {
    const std::optional<std::string_view> header = part(bytes, at, kHeaderBytes);
    if (!header || header->substr(58, 2) != "`\n") return damaged(name, kWhat);
    std::uint64_t size = 0;
    const std::string_view digits = header->substr(48, 10);
    if (std::from_chars(digits.data(), digits.data() + digits.size(), size).ec != std::errc())
      return damaged(name, kWhat);
    const std::optional<std::string_view> content = part(bytes, at + kHeaderBytes, size);
    if (!content) return damaged(name, kWhat);
    at += kHeaderBytes + size + size % 2;
    std::string_view its_name = header->substr(0, 16);
    its_name = its_name.substr(0, its_name.find_last_not_of(' ') + 1);
    if (its_name == "//") {
      long_names = *content;
    } else if (its_name != "/" && its_name != "/SYM64/") {
      if (its_name.size() > 1 && its_name.front() == '/') {
        std::uint64_t offset = 0;
        std::from_chars(its_name.data() + 1, its_name.data() + its_name.size(), offset);
        its_name = offset < long_names.size() ? long_names.substr(offset) : std::string_view();
        its_name = its_name.substr(0, its_name.find('\n'));
      }
      if (its_name.ends_with('/')) its_name.remove_suffix(1);
      members.push_back({fmt::format("{}({})", name, its_name), *content});
    }
  }
  return members;
}

}  // namespace quern::cpu::device
