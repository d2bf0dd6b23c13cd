// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/static_objects.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <span>

namespace quern::compile {

#if defined(__x86_64__)
namespace {

/// Replaces __cxa_atexit(): accepts a handler and drops it.
extern "C" int quern_compile_never(void (*)(void*), void*, void*) noexcept { return 0; }

/// A library's dynamic section: addresses may or may not have been relocated by the loader.
class Dynamic {
 public:
  explicit Dynamic(const link_map& map) : base_(map.l_addr), entries_(map.l_ld) {}

  std::uint64_t value(std::int64_t tag) const noexcept {
    for (const ElfW(Dyn)* entry = entries_; entry->d_tag != DT_NULL; ++entry)
      if (entry->d_tag == tag) return entry->d_un.d_val;
    return 0;
  }
  template <class T>
  const T* address(std::int64_t tag) const noexcept {
    const std::uint64_t at = value(tag);
    if (at == 0) return nullptr;
    return reinterpret_cast<const T*>(at < base_ ? at + base_ : at);
  }
  void* at(std::uint64_t offset) const noexcept { return reinterpret_cast<void*>(base_ + offset); }

 private:
  std::uint64_t base_;
  const ElfW(Dyn) * entries_;
};

void point_elsewhere(void* slot) noexcept {
  const auto page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  void* const page = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(slot) & ~(page_bytes - 1));
  if (::mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) return;
  *static_cast<int (**)(void (*)(void*), void*, void*)>(slot) = &quern_compile_never;
}

}  // namespace

void keep_static_objects(void* handle) noexcept {
  link_map* map = nullptr;
  if (::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return;
  const Dynamic dynamic(*map);
  const auto* symbols = dynamic.address<ElfW(Sym)>(DT_SYMTAB);
  const auto* names = dynamic.address<char>(DT_STRTAB);
  if (symbols == nullptr || names == nullptr) return;
  const std::pair<std::int64_t, std::int64_t> tables[] = {{DT_JMPREL, DT_PLTRELSZ}, {DT_RELA, DT_RELASZ}};
  for (const auto& [table, size] : tables) {
    const auto* first = dynamic.address<ElfW(Rela)>(table);
    if (first == nullptr) continue;
    for (const ElfW(Rela) & each : std::span(first, dynamic.value(size) / sizeof *first)) {
      const auto kind = ELF64_R_TYPE(each.r_info);
      if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) continue;
      if (std::strcmp(names + symbols[ELF64_R_SYM(each.r_info)].st_name, "__cxa_atexit") == 0)
        point_elsewhere(dynamic.at(each.r_offset));
    }
  }
}
#else
void keep_static_objects(void*) noexcept {}
#endif

}  // namespace quern::compile
