// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/read_ptx.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "cache/memory_cache.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/module/bundled.hpp"
#include "cpu/device/module/container.hpp"
#include "cpu/device/module/linking.hpp"
#include "cpu/device/module/stored.hpp"
#include "ptx/ptx.hpp"

namespace quern::cpu::device {
namespace {

/// Later than that of the driver's version: clients come with the latest NVRTC, whose texts need its version
/// seldom. Instructions that this device does not know are refused one by one.
constexpr std::pair<std::uint32_t, std::uint32_t> kMaxPtxVersion{9, 8};
/// "PTX ISA Version 1.0" is the first of the "Release History".
constexpr std::pair<std::uint32_t, std::uint32_t> kMinPtxVersion{1, 0};
constexpr std::uint64_t kMaxConstantBytes = 65536;
constexpr std::string_view kFileName = "<ptx>";

Refusal refuse(CUresult result, std::string code, std::string message, std::string hint,
               ptx::TextPosition position = {}) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.span = {.file = std::string(kFileName), .line = position.line, .column = position.column};
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return {result, {std::move(diagnostic)}};
}

/// "Module Directives: .target": a target with 'a' is for its own compute capability, one with 'f' for those
/// of its family from it on, any other for all from it on.
bool runs_target(const ptx::Module& module, std::uint32_t capability) {
  if (module.sm_suffix == 'a') return module.sm == capability;
  if (module.sm_suffix == 'f' && module.sm / 10 != capability / 10) return false;
  return module.sm <= capability;
}

std::string capability_text(std::uint32_t capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

}  // namespace

std::optional<Refusal> check_target(const ptx::Module& module) {
  const std::pair version(module.version_major, module.version_minor);
  if (version > kMaxPtxVersion)
    return refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "ptx-version",
                  fmt::format("PTX .version {}.{} is newer than this device reads (up to {}.{})",
                              version.first, version.second, kMaxPtxVersion.first, kMaxPtxVersion.second),
                  "compile with an older toolkit, or lower .version where nothing newer is used");
  if (version < kMinPtxVersion)
    return refuse(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "ptx-version",
                  fmt::format("there is no PTX .version {}.{}", version.first, version.second),
                  "name the version that the text is written in");
  const std::string target = module.sm_suffix == '\0' ? fmt::format("sm_{}", module.sm)
                                                      : fmt::format("sm_{}{}", module.sm, module.sm_suffix);
  const std::uint32_t capability = compute_capability();
  if (!runs_target(module, capability))
    return refuse(CUDA_ERROR_INVALID_PTX, "ptx-target",
                  fmt::format("the PTX is for {}; the CPU device has compute capability {}", target,
                              capability_text(capability)),
                  fmt::format("compile for compute_{} or an older architecture without suffix, or let "
                              "QUERN_CPU_COMPUTE_CAPABILITY give the device that of the target",
                              capability));
  if (module.address_size != 64)
    return refuse(CUDA_ERROR_INVALID_PTX, "ptx-unsupported",
                  fmt::format(".address_size {} is not supported", module.address_size),
                  "compile for 64-bit addresses", module.address_size_position);
  return std::nullopt;
}

namespace {

std::optional<Refusal> check_variables(const ptx::Module& module) {
  std::uint64_t constant_bytes = 0;
  const ptx::Variable* beyond = nullptr;  // the first that does not fit
  for (const ptx::Variable& variable : module.variables) {
    const bool placed = variable.space == ptx::Space::global || variable.space == ptx::Space::const_;
    if (variable.space == ptx::Space::const_) constant_bytes += variable.size_bytes();
    if (constant_bytes > kMaxConstantBytes && beyond == nullptr) beyond = &variable;
    if (placed && variable.linkage == ptx::Linkage::extern_)
      return refuse(CUDA_ERROR_INVALID_PTX, "ptx-unresolved",
                    fmt::format("'{}' is .extern and nothing defines it", variable.name),
                    "link the modules into one before loading", variable.position);
    if (ptx::kind(variable.type) == ptx::TypeKind::opaque)
      return refuse(CUDA_ERROR_INVALID_PTX, "ptx-unsupported",
                    fmt::format("'{}' is a {}: textures and surfaces are not supported", variable.name,
                                ptx::name(variable.type)),
                    "read through a pointer instead", variable.position);
  }
  if (beyond != nullptr)
    return refuse(CUDA_ERROR_INVALID_PTX, "constant-too-large",
                  fmt::format("the module has {} bytes of constant memory; the limit is {}", constant_bytes,
                              kMaxConstantBytes),
                  "move large tables to global memory", beyond->position);
  return std::nullopt;
}

/// Comments and blanks may stand before `.version`.
std::string_view without_comments(std::string_view text) {
  for (;;) {
    text.remove_prefix(std::min(text.size(), text.find_first_not_of(" \t\r\n\v\f")));
    const bool line = text.starts_with("//"), block = text.starts_with("/*");
    if (!line && !block) return text;
    const std::size_t end = line ? text.find('\n') : text.find("*/", 2);
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + (line ? 1 : 2));
  }
}

/// Reads no byte behind one that no cubin has: the size is not known.
bool is_elf_header(const char* bytes) {
  constexpr char kClasses[] = {1, 2};  // of 32 and 64 bits
  constexpr char kLittleEndian = 1, kVersion = 1;
  return std::ranges::count(kClasses, bytes[4]) == 1 && bytes[5] == kLittleEndian && bytes[6] == kVersion;
}

}  // namespace

bool begins_as_ptx(std::string_view text) { return without_comments(text).starts_with(".version"); }

std::variant<ImageText, Refusal> text_of_image(const Image& image) {
  // Byte by byte: a text may be shorter than four.
  const char* const bytes = static_cast<const char*>(image.address);
  std::size_t count = 0;
  while (count < 4 && bytes[count] != '\0') ++count;
  std::string_view fat_binary;
  switch (container_of({bytes, count})) {
    case Container::none:
    case Container::archive:  // refused by its first line
      return ImageText{{}, bytes};
    case Container::elf:
      if (!is_elf_header(bytes))
        return refuse(CUDA_ERROR_INVALID_IMAGE, "image-damaged",
                      "the image begins as machine code (cubin), but its header is damaged",
                      "compile the module again");
      return refuse(CUDA_ERROR_NO_BINARY_FOR_GPU, "image-machine-code",
                    "the image is machine code for a GPU (cubin); the CPU device loads PTX",
                    "load the PTX of the module instead");
    case Container::fat_binary:
      fat_binary = image.bytes ? first_fat_binary({bytes, *image.bytes}) : fat_binary_at(bytes);
      break;
    case Container::wrapper:
      if (!image.bytes) fat_binary = wrapped_fat_binary(bytes);  // in a file, it has no address
      break;
  }
  auto found = ptx_of_fat_binaries(fat_binary, std::string(kFileName));
  if (auto* refusal = std::get_if<Refusal>(&found)) return std::move(*refusal);
  return ImageText{std::move(std::get<std::vector<NamedPtx>>(found).front().text), {}};
}

namespace {

/// Returns the error for a text that does not parse. One that does not begin as PTX is no image at all.
CUresult result_of_text(std::string_view text) {
  return begins_as_ptx(text) ? CUDA_ERROR_INVALID_PTX : CUDA_ERROR_INVALID_IMAGE;
}

/// Parses the text and checks what it is for.
std::variant<ptx::Module, Refusal> parse(std::string_view text) {
  Expected<ptx::Module> module = ptx::parse(text, kFileName);
  if (!module) return Refusal{result_of_text(text), std::move(module).errors()};
  if (std::optional<Refusal> refusal = check_target(*module)) return std::move(*refusal);
  module = with_driver_functions(*std::move(module), std::string(kFileName));
  if (!module) return Refusal{CUDA_ERROR_INVALID_PTX, std::move(module).errors()};
  return std::move(*module);
}

std::variant<LoadablePtx, Refusal> check(ptx::Module module) {
  if (Expected<void> verified = ptx::verify(module, kFileName); !verified)
    return Refusal{CUDA_ERROR_INVALID_PTX, std::move(verified).errors()};
  if (std::optional<Refusal> refusal = check_variables(module)) return std::move(*refusal);
  Expected<std::vector<KernelInfo>> kernels = inspect(module, kFileName);
  if (!kernels) return Refusal{CUDA_ERROR_INVALID_PTX, std::move(kernels).errors()};
  return LoadablePtx{std::move(module), std::move(*kernels)};
}

std::variant<LoadablePtx, Refusal> read(std::string_view text) {
  std::variant<ptx::Module, Refusal> parsed = parse(text);
  if (auto* refusal = std::get_if<Refusal>(&parsed)) return std::move(*refusal);
  return check(std::get<ptx::Module>(std::move(parsed)));
}

}  // namespace

std::variant<LoadablePtx, Refusal> read_ptx(std::string_view text) {
  return base::secluded([&] { return read(text); });
}

SharedPtx::SharedPtx(const base::Digest& text_digest, LoadablePtx read)
    : digest(text_digest), module(std::move(read.module)), kernels(std::move(read.kernels)) {
  ptx_by_name.reserve(module.functions.size());
  for (const ptx::Function& function : module.functions)  // the first of a name counts
    ptx_by_name.try_emplace(function.name, &function);
  kernels_by_name.reserve(kernels.size());
  for (const KernelInfo& kernel : kernels) kernels_by_name.try_emplace(kernel.name, &kernel);
}

namespace {

struct ReadText {
  std::variant<std::shared_ptr<const SharedPtx>, Refusal> result;
  std::size_t text_bytes = 0;
};

/// Measured: kernels take 5 to 16 times the memory of their text when read.
constexpr std::size_t kBytesPerTextByte = 16;
constexpr std::size_t kMinReadBytes = 4096;
constexpr std::uint64_t kMaxReadBytes = std::uint64_t{64} << 20;

using ReadTexts = cache::MemoryCache<ReadText>;
/// Never destroyed, as the driver itself is not.
ReadTexts& read_texts() {
  static auto* const all = new ReadTexts(kMaxReadBytes, [](const ReadText& text) {
    return std::max(text.text_bytes * kBytesPerTextByte, kMinReadBytes);
  });
  return *all;
}

struct Counters {
  std::atomic<std::uint64_t> checked{0};
  std::atomic<std::uint64_t> from_disk{0};
  std::atomic<std::uint64_t> from_bundles{0};
};
constinit Counters counters;

using SharedResult = decltype(ReadText::result);

/// `spent_ns`: written if the text was not known.
SharedResult read_shared(const base::Digest& digest, std::string_view text, std::uint64_t& spent_ns) {
  const std::int64_t begin_ns = base::now_ns();
  std::variant<ptx::Module, Refusal> parsed = parse(text);
  if (auto* refusal = std::get_if<Refusal>(&parsed)) return std::move(*refusal);
  auto module = std::get<ptx::Module>(std::move(parsed));
  if (std::optional<std::vector<KernelInfo>> kernels = bundled_kernels(digest)) {
    ++counters.from_bundles;
    return std::make_shared<const SharedPtx>(digest, LoadablePtx{std::move(module), *std::move(kernels)});
  }
  if (std::optional<std::vector<KernelInfo>> kernels = stored_kernels(digest)) {
    ++counters.from_disk;
    return std::make_shared<const SharedPtx>(digest, LoadablePtx{std::move(module), *std::move(kernels)});
  }
  std::variant<LoadablePtx, Refusal> checked = check(std::move(module));
  if (auto* refusal = std::get_if<Refusal>(&checked)) return std::move(*refusal);
  ++counters.checked;
  auto& loadable = std::get<LoadablePtx>(checked);
  spent_ns = static_cast<std::uint64_t>(base::now_ns() - begin_ns);
  store_kernels(digest, loadable.kernels);
  return std::make_shared<const SharedPtx>(digest, std::move(loadable));
}

std::variant<ReadPtx, Refusal> with_time(const SharedResult& result, std::uint64_t ns) {
  if (const auto* refusal = std::get_if<Refusal>(&result)) return *refusal;
  return ReadPtx{std::get<std::shared_ptr<const SharedPtx>>(result), ns};
}

}  // namespace

std::variant<ReadPtx, Refusal> shared_ptx(std::string_view text) {
  const base::Digest digest = base::sha256(std::as_bytes(std::span(text)));
  if (const ReadTexts::Value known = read_texts().find(digest)) return with_time(known->result, 0);
  return base::secluded([&]() -> std::variant<ReadPtx, Refusal> {
    std::uint64_t spent_ns = 0;
    Expected<ReadTexts::Value> read =
        read_texts().get_or_compute(digest, [&]() -> Expected<ReadTexts::Value> {
          return std::make_shared<const ReadText>(ReadText{read_shared(digest, text, spent_ns), text.size()});
        });
    if (!read) return Refusal{CUDA_ERROR_UNKNOWN, std::move(read).errors()};
    return with_time((*read)->result, spent_ns);
  });
}

TextStats text_stats() {
  const cache::CacheStats memory = read_texts().stats();
  return {counters.checked, memory.hits + memory.waits, counters.from_disk, counters.from_bundles};
}

}  // namespace quern::cpu::device
