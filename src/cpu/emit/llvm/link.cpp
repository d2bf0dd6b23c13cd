// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/link.hpp"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "cpu/emit/llvm/defect.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::object::ELF64LEObjectFile;

/// jmp *displacement(%rip), padded to 8 bytes.
constexpr unsigned char kStub[] = {0xff, 0x25, 0, 0, 0, 0, 0xcc, 0xcc};
constexpr std::size_t kStubOperand = 2;
constexpr std::size_t kSlotBytes = 8;

template <class T>
T take(llvm::Expected<T> found) {
  if (!found) throw Defect(llvm::toString(found.takeError()));
  return *std::move(found);
}

std::size_t round_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

class Linker {
 public:
  explicit Linker(const ELF64LEObjectFile& file) : file_(file) {}

  LinkedCode link(std::string_view entry) {
    name_helpers();
    lay_out_sections(true);
    code_.bytes.resize(round_up(code_.bytes.size(), sizeof kStub));
    stubs_ = code_.bytes.size();
    for (std::size_t i = 0; i < code_.helpers.size(); ++i)
      code_.bytes.append(reinterpret_cast<const char*>(kStub), sizeof kStub);
    code_.text_bytes = code_.bytes.size();
    lay_out_sections(false);
    code_.bytes.resize(round_up(code_.bytes.size(), kImageAlignment));
    for (std::size_t i = 0; i < code_.helpers.size(); ++i)
      write_displacement(stub(i) + kStubOperand, slot(i), -4);
    for (const llvm::object::SectionRef& section : file_.sections()) relocate(section);
    code_.entry = find_entry(entry);
    return std::move(code_);
  }

 private:
  static bool is_code(const llvm::object::ELFSectionRef& section) {
    return (section.getFlags() & llvm::ELF::SHF_EXECINSTR) != 0;
  }
  /// Emitted code does not unwind (set_function_attributes), so unwinding tables are not loaded.
  static bool is_loaded(const llvm::object::ELFSectionRef& section) {
    return (section.getFlags() & llvm::ELF::SHF_ALLOC) != 0 && section.getSize() != 0 &&
           section.getType() != llvm::ELF::SHT_X86_64_UNWIND && take(section.getName()) != ".eh_frame";
  }

  void name_helpers() {
    for (const llvm::object::ELFSymbolRef symbol : file_.symbols()) {
      const auto flags = take(symbol.getFlags());
      const llvm::StringRef name = take(symbol.getName());
      if ((flags & llvm::object::SymbolRef::SF_Undefined) == 0 || name.empty()) continue;
      if (helper_index_.try_emplace(name.str(), code_.helpers.size()).second)
        code_.helpers.push_back(name.str());
    }
  }

  /// The section ".text" comes first: offsets in it are offsets in the image (sites.hpp).
  void lay_out_sections(bool code) {
    std::vector<llvm::object::ELFSectionRef> sections;
    for (const llvm::object::ELFSectionRef section : file_.sections())
      if (is_loaded(section) && is_code(section) == code) sections.push_back(section);
    const auto text = std::ranges::find_if(
        sections, [](const auto& section) { return take(section.getName()) == ".text"; });
    if (text != sections.end()) std::rotate(sections.begin(), text, std::next(text));
    for (const llvm::object::ELFSectionRef& section : sections) {
      const std::size_t align = std::max<std::size_t>(section.getAlignment().value(), 1);
      if (align > kMostAlignment) throw Defect("a section requires an alignment of " + std::to_string(align));
      code_.bytes.resize(round_up(code_.bytes.size(), align));
      section_offsets_[section.getIndex()] = code_.bytes.size();
      if (section.isBSS())
        code_.bytes.resize(code_.bytes.size() + section.getSize());
      else
        code_.bytes += take(section.getContents());
    }
  }

  void relocate(const llvm::object::ELFSectionRef& table) {
    const llvm::object::section_iterator target = take(table.getRelocatedSection());
    if (target == file_.section_end()) return;
    const auto offset = section_offsets_.find(target->getIndex());
    if (offset == section_offsets_.end()) return;
    for (const llvm::object::ELFRelocationRef relocation : table.relocations())
      apply(relocation, offset->second + relocation.getOffset());
  }

  void apply(const llvm::object::ELFRelocationRef& relocation, std::size_t at) {
    const auto addend = take(relocation.getAddend());
    switch (relocation.getType()) {
      case llvm::ELF::R_X86_64_NONE:
        return;
      case llvm::ELF::R_X86_64_PC32:
      case llvm::ELF::R_X86_64_PLT32:
        return write_displacement(at, address_of(relocation), addend);
      case llvm::ELF::R_X86_64_GOTPCREL:
      case llvm::ELF::R_X86_64_GOTPCRELX:
      case llvm::ELF::R_X86_64_REX_GOTPCRELX:
        return write_displacement(at, slot(helper_of(relocation)), addend);
      case llvm::ELF::R_X86_64_64:
        return write_address(at, address_of(relocation), addend);
      default:
        throw Defect("its object has a relocation of type " + std::to_string(relocation.getType()));
    }
  }

  /// The address in the image of a symbol that the image defines, or of the stub that jumps to the symbol.
  std::size_t address_of(const llvm::object::ELFRelocationRef& relocation) const {
    const llvm::object::ELFSymbolRef symbol = *relocation.getSymbol();
    const llvm::object::section_iterator section = take(symbol.getSection());
    if (section == file_.section_end()) return stub(helper_of(relocation));
    const auto offset = section_offsets_.find(section->getIndex());
    if (offset == section_offsets_.end()) throw Defect("its object refers to a section that is not loaded");
    return offset->second + take(symbol.getValue());
  }

  std::size_t helper_of(const llvm::object::ELFRelocationRef& relocation) const {
    const std::string name = take(relocation.getSymbol()->getName()).str();
    const auto found = helper_index_.find(name);
    if (found == helper_index_.end())
      throw Defect("its object requires the absolute address of '" + name + "'");
    return found->second;
  }

  std::size_t stub(std::size_t helper) const { return stubs_ + helper * sizeof kStub; }
  std::size_t slot(std::size_t helper) const { return code_.bytes.size() + helper * kSlotBytes; }

  void write_displacement(std::size_t at, std::size_t target, std::int64_t addend) {
    const std::int64_t value = static_cast<std::int64_t>(target) + addend - static_cast<std::int64_t>(at);
    const auto displacement = static_cast<std::int32_t>(value);
    if (displacement != value || at + sizeof displacement > code_.bytes.size())
      throw Defect("a displacement in its object does not fit");
    std::memcpy(code_.bytes.data() + at, &displacement, sizeof displacement);
  }

  void write_address(std::size_t at, std::size_t target, std::int64_t addend) {
    const std::uint64_t offset = target + static_cast<std::uint64_t>(addend);
    if (at < code_.text_bytes || at + sizeof offset > code_.bytes.size() || offset >= code_.bytes.size())
      throw Defect("an address in its object lies outside of its constants");
    std::memcpy(code_.bytes.data() + at, &offset, sizeof offset);
    code_.addresses.push_back(at);
  }

  std::size_t find_entry(std::string_view entry) const {
    for (const llvm::object::ELFSymbolRef symbol : file_.symbols())
      if (take(symbol.getName()) == llvm::StringRef(entry)) {
        const llvm::object::section_iterator section = take(symbol.getSection());
        if (section == file_.section_end()) continue;  // the symbol is the name of the file
        if (const auto offset = section_offsets_.find(section->getIndex()); offset != section_offsets_.end())
          return offset->second + take(symbol.getValue());
      }
    throw Defect("its object has no function " + std::string(entry));
  }

  static constexpr std::size_t kMostAlignment = 4096;  // images are aligned to a page

  const ELF64LEObjectFile& file_;
  LinkedCode code_;
  std::map<std::uint64_t, std::size_t> section_offsets_;  ///< by index, offsets of the loaded sections
  std::map<std::string, std::size_t> helper_index_;
  std::size_t stubs_ = 0;
};

}  // namespace

Expected<LinkedCode> link_object(llvm::MemoryBufferRef object, std::string_view entry) {
  const auto defect = [](const std::string& message) {
    return Diagnostic{.code = "internal",
                      .message = "linking the machine code of a kernel: " + message,
                      .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
  };
  auto file = llvm::object::ELFObjectFile<llvm::object::ELF64LE>::create(object);
  if (!file) return defect(llvm::toString(file.takeError()));
  try {
    return Linker(*file).link(entry);
  } catch (const Defect& error) {
    return defect(error.what());
  }
}

}  // namespace quern::cpu::emit
