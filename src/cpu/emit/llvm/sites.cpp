// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/sites.hpp"

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/DebugInfo/DWARF/DWARFContext.h>
#include <llvm/IR/DIBuilder.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/xxhash.h>

#include <algorithm>

namespace quern::cpu::emit {
namespace {

/// Name of the scope of all sites while code is emitted.
constexpr const char* kScope = "quern.sites";

llvm::DISubprogram* make_scope(llvm::DIBuilder& builder, llvm::DIFile* file, llvm::StringRef name) {
  llvm::DISubroutineType* const type = builder.createSubroutineType(builder.getOrCreateTypeArray({}));
  return builder.createFunction(file, name, "", file, 1, type, 1, llvm::DINode::FlagZero,
                                llvm::DISubprogram::SPFlagDefinition);
}

std::uint32_t first_site(const ir::Module& module, const ir::Function& function) {
  std::size_t sites = 0;
  for (const ir::Function& each : module.functions) {
    if (&each == &function) break;
    sites += each.insts.size();
  }
  return static_cast<std::uint32_t>(sites);
}

/// Each function needs a scope of its own, and every call a debug location.
void place_in(llvm::Function& function, llvm::DISubprogram* scope) {
  function.setSubprogram(scope);
  llvm::LLVMContext& context = function.getContext();
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& inst : block) {
      const llvm::DebugLoc& at = inst.getDebugLoc();
      inst.setDebugLoc(llvm::DILocation::get(context, at ? at.getLine() : 0, 0, scope));
    }
}

/// The contents of the sections whose names begin like this.
std::vector<llvm::StringRef> contents_of(const llvm::object::ObjectFile& file, llvm::StringRef prefix) {
  std::vector<llvm::StringRef> found;
  for (const llvm::object::SectionRef& section : file.sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    if (!name) {
      llvm::consumeError(name.takeError());
      continue;
    }
    if (!name->starts_with(prefix)) continue;
    if (llvm::Expected<llvm::StringRef> contents = section.getContents())
      found.push_back(*contents);
    else
      llvm::consumeError(contents.takeError());
  }
  return found;
}

CodeSite site_of(const ir::Module& module, std::uint64_t offset, std::uint32_t line) {
  CodeSite made{.offset = offset};
  if (line == 0) return made;
  std::uint32_t site = line - 1;
  for (std::uint32_t f = 0; f < module.functions.size(); ++f) {
    const auto size = static_cast<std::uint32_t>(module.functions[f].insts.size());
    if (site < size) {
      made.function = f;
      made.value = site;
      return made;
    }
    site -= size;
  }
  return made;
}

}  // namespace

void begin_sites(llvm::Module& module) {
  module.addModuleFlag(llvm::Module::Warning, "Debug Info Version", llvm::DEBUG_METADATA_VERSION);
  llvm::DIBuilder builder(module);
  llvm::DIFile* const file = builder.createFile("sites", "/");
  builder.createCompileUnit(llvm::dwarf::DW_LANG_C, file, "quern", true, "", 0, "",
                            llvm::DICompileUnit::LineTablesOnly);
  module.getOrInsertNamedMetadata(kScope)->addOperand(make_scope(builder, file, kScope));
  builder.finalize();
}

llvm::DISubprogram* scope_of_sites(const llvm::Module& module) {
  const llvm::NamedMDNode* const named = module.getNamedMetadata(kScope);
  return named == nullptr ? nullptr : llvm::cast<llvm::DISubprogram>(named->getOperand(0));
}

void set_site(llvm::IRBuilder<>& builder, llvm::DISubprogram& scope, const ir::Module& of,
              const ir::Function& function, ir::Value value) {
  const unsigned site = first_site(of, function) + value + 1;
  builder.SetCurrentDebugLocation(llvm::DILocation::get(builder.getContext(), site, 0, &scope));
}

void clear_site(llvm::IRBuilder<>& builder) { builder.SetCurrentDebugLocation({}); }

void end_sites(llvm::Module& module) {
  llvm::DISubprogram* const emission = scope_of_sites(module);
  if (emission == nullptr) return;
  llvm::DIBuilder builder(module, true, emission->getUnit());
  for (llvm::Function& function : module)
    if (!function.isDeclaration())
      place_in(function, make_scope(builder, emission->getFile(), function.getName()));
  builder.finalize();
  module.eraseNamedMetadata(module.getNamedMetadata(kScope));
}

std::vector<CodeSite> read_sites(llvm::MemoryBufferRef object, const ir::Module& of) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file) {
    llvm::consumeError(file.takeError());
    return {};
  }
  const auto ignore = [](llvm::Error error) { llvm::consumeError(std::move(error)); };
  const std::unique_ptr<llvm::DWARFContext> context = llvm::DWARFContext::create(
      **file, llvm::DWARFContext::ProcessDebugRelocations::Process, nullptr, "", ignore, ignore);
  std::vector<CodeSite> sites;
  for (const auto& unit : context->compile_units())
    if (const llvm::DWARFDebugLine::LineTable* const table = context->getLineTableForUnit(unit.get()))
      for (const llvm::DWARFDebugLine::Row& row : table->Rows)
        sites.push_back(site_of(of, row.Address.Address, row.EndSequence ? 0 : row.Line));
  // A stable sort that takes few steps: rows are in order except at the starts of sequences.
  const auto before = [](const CodeSite& a, const CodeSite& b) { return a.offset < b.offset; };
  for (auto site = sites.begin(); site != sites.end(); ++site)
    std::rotate(std::upper_bound(sites.begin(), site, *site, before), site, site + 1);
  return sites;
}

std::uint64_t code_digest(llvm::MemoryBufferRef object) {
  auto file = llvm::object::ObjectFile::createObjectFile(object);
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  // Kernels may differ in their constants only.
  std::string all;
  for (const char* const prefix : {".text", ".rodata"})
    for (const llvm::StringRef contents : contents_of(**file, prefix)) all += contents;
  return llvm::xxh3_64bits(all);
}

}  // namespace quern::cpu::emit
