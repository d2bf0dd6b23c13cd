// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/jit.hpp"

#include <llvm/ExecutionEngine/JITSymbol.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>
#include <llvm/Object/ObjectFile.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace quern::cpu::emit {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }
std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

/// One mapping for all sections (so that every section reaches every other with 32-bit displacements): code,
/// then constants, then data, each from a page boundary. Written while writable, then sealed: never writable
/// and executable at once. Constants and data get the code's protection, so that the system joins the
/// mappings of neighbours: their number is limited (vm.max_map_count), and each block shape has code.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (base_ != nullptr) munmap(base_, bytes_);
  }

  bool reserve(std::size_t code, std::size_t constants, std::size_t data) {
    const std::size_t page = page_bytes();
    code_ = {0, round_up(code, page), 0};
    constants_ = {code_.limit, code_.limit + round_up(constants, page), code_.limit};
    data_ = {constants_.limit, constants_.limit + round_up(data, page), constants_.limit};
    bytes_ = std::max(data_.limit, page);
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return false;
    base_ = static_cast<std::byte*>(memory);
    return true;
  }
  std::uint8_t* take_code(std::size_t bytes, std::size_t align) { return take(code_, bytes, align); }
  std::uint8_t* take_constants(std::size_t bytes, std::size_t align) {
    return take(constants_, bytes, align);
  }
  std::uint8_t* take_data(std::size_t bytes, std::size_t align) { return take(data_, bytes, align); }

  /// False with errno set if the system call fails.
  bool seal() { return mprotect(base_, bytes_, PROT_READ | PROT_EXEC) == 0; }
  const std::byte* text_begin() const { return base_ + code_.begin; }
  const std::byte* text_end() const { return base_ + code_.next; }

 private:
  struct Part {
    std::size_t begin = 0;
    std::size_t limit = 0;
    std::size_t next = 0;
  };

  std::uint8_t* take(Part& part, std::size_t bytes, std::size_t align) {
    const std::size_t at = round_up(part.next, align);
    if (base_ == nullptr || at + bytes > part.limit) return nullptr;
    part.next = at + bytes;
    return reinterpret_cast<std::uint8_t*>(base_ + at);
  }
  std::byte* base_ = nullptr;
  std::size_t bytes_ = 0;
  Part code_;
  Part constants_;
  Part data_;
};

class MappingManager final : public llvm::RuntimeDyld::MemoryManager {
 public:
  explicit MappingManager(Mapping& mapping) : mapping_(mapping) {}
  bool reserved() const { return reserved_; }
  /// Why nothing could be reserved.
  const std::string& error() const { return error_; }

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(uintptr_t code, llvm::Align, uintptr_t constants, llvm::Align, uintptr_t data,
                              llvm::Align) override {
    // Room for the alignment of each section within its part, and for the table of addresses that the linker
    // adds.
    constexpr std::size_t kSlack = 4096;
    reserved_ = mapping_.reserve(code + kSlack, constants + kSlack, data + kSlack);
    if (!reserved_) error_ = std::strerror(errno);
  }
  std::uint8_t* allocateCodeSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef) override {
    return reserved_ ? mapping_.take_code(size, std::max(align, 1u)) : scratch(size, align);
  }
  std::uint8_t* allocateDataSection(uintptr_t size, unsigned align, unsigned, llvm::StringRef,
                                    bool read_only) override {
    if (!reserved_) return scratch(size, align);
    return read_only ? mapping_.take_constants(size, std::max(align, 1u))
                     : mapping_.take_data(size, std::max(align, 1u));
  }
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string* error) override {
    if (mapping_.seal()) return false;
    if (error != nullptr) *error = std::strerror(errno);
    return true;
  }

 private:
  /// Memory for a section whose mapping was refused: without it LLVM would end the link with a fatal error.
  std::uint8_t* scratch(std::size_t bytes, std::size_t align) {
    scratch_.push_back(std::make_unique<std::uint8_t[]>(bytes + align));
    const auto at = reinterpret_cast<std::uintptr_t>(scratch_.back().get());
    return scratch_.back().get() + (align > 1 ? round_up(at, align) - at : 0);
  }

  Mapping& mapping_;
  std::vector<std::unique_ptr<std::uint8_t[]>> scratch_;
  bool reserved_ = false;
  std::string error_ = "the system refuses it";
};

class TableResolver final : public llvm::LegacyJITSymbolResolver {
 public:
  explicit TableResolver(std::span<const Helper> symbols) : symbols_(symbols) {}
  llvm::JITSymbol findSymbol(const std::string& name) override {
    for (const Helper& symbol : symbols_)
      if (symbol.name == name)
        return {static_cast<llvm::JITTargetAddress>(reinterpret_cast<std::uintptr_t>(symbol.address)),
                llvm::JITSymbolFlags::Exported};
    return nullptr;
  }
  llvm::JITSymbol findSymbolInLogicalDylib(const std::string&) override { return nullptr; }

 private:
  std::span<const Helper> symbols_;
};

Diagnostic defect(const std::string& message) {
  return Diagnostic{.code = "internal",
                    .message = "loading the machine code of a kernel: " + message,
                    .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

Diagnostic no_memory(const std::string& reason) {
  return Diagnostic{.code = "out-of-memory",
                    .message = "the machine code of a kernel could not be mapped into memory: " + reason,
                    .hint =
                        "raise the number of mappings (sysctl vm.max_map_count) or the address space "
                        "(ulimit -v), or use fewer block shapes, since each one has code of its own"};
}

}  // namespace

Expected<LoadedCode> load_object(llvm::MemoryBufferRef object, std::string_view entry,
                                 std::span<const Helper> symbols) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file) return defect(llvm::toString(file.takeError()));

  auto mapping = std::make_shared<Mapping>();
  MappingManager manager(*mapping);
  TableResolver resolver(symbols);
  llvm::RuntimeDyld linker(manager, resolver);
  const auto info = linker.loadObject(**file);
  if (!manager.reserved()) return no_memory(manager.error());
  if (info == nullptr || linker.hasError()) return defect(linker.getErrorString().str());
  linker.resolveRelocations();
  if (linker.hasError()) return defect(linker.getErrorString().str());
  const llvm::JITEvaluatedSymbol symbol = linker.getSymbol(llvm::StringRef(entry.data(), entry.size()));
  if (!symbol) return defect("it has no function " + std::string(entry));
  std::string error;
  if (manager.finalizeMemory(&error)) return no_memory(error);

  LoadedCode code;
  code.entry = reinterpret_cast<void*>(
      static_cast<std::uintptr_t>(symbol.getAddress()));  // NOLINT(performance-no-int-to-ptr)
  code.text_begin = mapping->text_begin();
  code.text_end = mapping->text_end();
  code.memory = std::move(mapping);
  return code;
}

}  // namespace quern::cpu::emit
