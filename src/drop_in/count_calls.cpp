// SPDX-License-Identifier: Apache-2.0
// The counting library, which `quern exec --stats` preloads: it stands between a program and the CPU device's
// libcuda.so.1, and counts the program's calls and their answers (counts_file.hpp).
//
// It exports every function that our libcuda.so.1 exports, which programs that are linked with libcuda.so.1
// find first, and dlsym(), so that programs which ask for a function get one of these. Each is a thunk: it
// notes the call, replaces the caller's return address by its own, and jumps to the function. What
// cuGetProcAddress gives out gets thunks without a symbol. Thunks do not depend on the types of functions.
#include <cuda.h>
#include <dlfcn.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "driver/cpu_plugin.h"
#include "drop_in/counts_file.hpp"

// The exported thunks, then those without a symbol. 16 bytes each: a push of the index, and a jump.
#define QUERN_UNNAMED "2048"
#define QUERN_EXPORT(index, symbol)                           \
  ".balign 16\n"                                              \
  ".globl " #symbol                                           \
  "\n"                                                        \
  ".type " #symbol ", @function\n" #symbol ": pushq $" #index \
  "\njmp quern_thunk_body\n"                                  \
  ".size " #symbol ", . - " #symbol "\n"
// clang-format off
asm(".text\n.balign 16\n"
    "quern_thunks:\n"
#include <exported_functions.def>
    ".balign 16\n"
    "quern_unnamed_thunks:\n"
    ".rept " QUERN_UNNAMED "\n"
    ".balign 16\n"
    "pushq $(. - quern_thunks) / 16\n"
    "jmp quern_thunk_body\n"
    ".endr\n"
    // The stack: index, the caller's return address, arguments.
    "quern_thunk_body:\n"
    "pushq %rdi\npushq %rsi\npushq %rdx\npushq %rcx\npushq %r8\npushq %r9\n"
    "subq $32, %rsp\nmovups %xmm0, (%rsp)\nmovups %xmm1, 16(%rsp)\n"
    "movq 80(%rsp), %rdi\n"
    "leaq 88(%rsp), %rsi\n"
    "call quern_enter_call\n"
    "movq %rax, %r11\n"
    "movups (%rsp), %xmm0\nmovups 16(%rsp), %xmm1\naddq $32, %rsp\n"
    "popq %r9\npopq %r8\npopq %rcx\npopq %rdx\npopq %rsi\npopq %rdi\n"
    "addq $8, %rsp\n"
    "jmp *%r11\n"
    "quern_after_call:\n"
    "subq $8, %rsp\n"
    "pushq %rax\n"
    "movl %eax, %edi\n"
    "call quern_leave_call\n"
    "movq %rax, 8(%rsp)\n"
    "popq %rax\n"
    "ret\n"
    // The real dlsym() looks at its return address: it must be the program's.
    ".globl dlsym\n.type dlsym, @function\n"
    "dlsym:\n"
    "pushq %rdi\npushq %rsi\nsubq $8, %rsp\n"
    "call quern_is_of_a_driver\n"
    "addq $8, %rsp\npopq %rsi\npopq %rdi\n"
    "testb %al, %al\n"
    "jnz quern_find_function\n"
    "jmp *quern_real_dlsym(%rip)\n"
    ".size dlsym, . - dlsym\n");
// clang-format on
#undef QUERN_EXPORT

extern "C" {
[[gnu::visibility("hidden")]] extern char quern_thunks[];
[[gnu::visibility("hidden")]] extern char quern_after_call[];
using Dlsym = void* (*)(void*, const char*);
[[gnu::used, gnu::visibility("hidden")]] constinit Dlsym quern_real_dlsym = nullptr;
}

namespace quern::drop_in {
namespace {

constexpr std::string_view kExports[] = {
#define QUERN_EXPORT(index, symbol) #symbol,
#include <exported_functions.def>
};
constexpr std::size_t kExportCount = std::size(kExports);
// CUDA 13.0 has 530 names, some of which are asked for in several versions, and for a thread's own stream.
constexpr std::size_t kUnnamedCount = 2048;
constexpr std::size_t kThunkBytes = 16;

/// A function that was given out. `function` is set last.
struct Thunk {
  std::atomic<const char*> name{nullptr};  ///< of one without a symbol
  std::atomic<CountsRow*> row{nullptr};
  std::atomic<void*> function{nullptr};
};
constinit Thunk thunks[kExportCount + kUnnamedCount];

/// A call that has not returned. There may be several: the driver calls functions of the program.
struct Call {
  CountsRow* row;
  void* caller;
};
struct Calls {
  Call stack[32];
  std::size_t count;
  std::size_t last;  ///< the thunk that was entered last
};
[[gnu::tls_model("initial-exec")]] constinit thread_local Calls calls = {};

void* real_dlsym(void* library, const char* name) noexcept {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5"})
    if (quern_real_dlsym == nullptr)
      quern_real_dlsym = reinterpret_cast<Dlsym>(::dlvsym(RTLD_NEXT, "dlsym", version));
  void* volatile found = quern_real_dlsym(library, name);  // no tail call: this library is the one that asks
  return found;
}

void count(const char* kind, const char* name) noexcept {
  if (CountsRow* const row = counts_row(kind, name)) row->add(CountsRow::calls);
}

void note_generation(const QuernCpuGeneration* generation) {
  if (generation->finished != 0) count("compile", "kernels");
}

/// True if `library` finds the functions of our device, which from then on tells what it compiles.
bool is_our_device(void* library) noexcept {
  const auto device = reinterpret_cast<decltype(&quern_cpu_device)>(real_dlsym(library, "quern_cpu_device"));
  if (device == nullptr) return false;
  device()->set_generate_sink(&note_generation);
  return true;
}

void* address_of(std::size_t index) noexcept { return quern_thunks + kThunkBytes * index; }

/// kExportCount: no such export.
std::size_t index_of(std::string_view name) noexcept {
  std::size_t index = 0;
  while (index < kExportCount && kExports[index] != name) ++index;
  return index;
}

const char* name_of(std::size_t index) noexcept {
  return index < kExportCount ? kExports[index].data() : thunks[index].name.load(std::memory_order_acquire);
}

/// A thunk for a function that has no exported one, the same for the same function and name. If none is left,
/// the function itself.
void* thunk_for(const char* name, void* function) noexcept {
  for (std::size_t index = kExportCount; index < std::size(thunks); ++index) {
    Thunk& thunk = thunks[index];
    const char* known = thunk.name.load(std::memory_order_acquire);
    if (known == nullptr) {
      const char* const copy = ::strdup(name);
      if (copy == nullptr) return function;
      if (thunk.name.compare_exchange_strong(known, copy)) {
        thunk.function.store(function, std::memory_order_release);
        return address_of(index);
      }
      std::free(const_cast<char*>(copy));  // another thread was first: known is its name
    }
    if (thunk.function.load(std::memory_order_acquire) == function && std::strcmp(known, name) == 0)
      return address_of(index);
  }
  return function;
}

CUresult answer_not_found() noexcept { return CUDA_ERROR_NOT_FOUND; }

void* function_of(std::size_t index) noexcept {
  Thunk& thunk = thunks[index];
  if (void* const known = thunk.function.load(std::memory_order_acquire)) return known;
  // A program or a library is linked with the driver, which need not be in the global scope, or with none.
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_LAZY);
  void* const function = real_dlsym(driver != nullptr ? driver : RTLD_NEXT, name_of(index));
  if (function == nullptr) return reinterpret_cast<void*>(&answer_not_found);
  is_our_device(driver != nullptr ? driver : RTLD_NEXT);  // for what it compiles
  thunk.function.store(function, std::memory_order_release);
  return function;
}

CountsRow* row_of(std::size_t index) noexcept {
  CountsRow* row = thunks[index].row.load(std::memory_order_acquire);
  if (row == nullptr) {
    row = counts_row("call", name_of(index));
    thunks[index].row.store(row, std::memory_order_release);
  }
  return row;
}

/// For both versions of cuGetProcAddress: only the second has `status`, which is passed on as it came.
CUresult get_proc_address(const char* name, void** function, int version, cuuint64_t flags, void* status) {
  const auto real =
      reinterpret_cast<CUresult (*)(const char*, void**, int, cuuint64_t, void*)>(function_of(calls.last));
  const CUresult result = real(name, function, version, flags, status);
  if (name == nullptr || function == nullptr) return result;
  if (result == CUDA_ERROR_NOT_FOUND || (result == CUDA_SUCCESS && *function == nullptr))
    count("missing", name);
  else if (result == CUDA_SUCCESS)
    *function = thunk_for(name, *function);
  return result;
}

bool is_capital(char letter) noexcept { return letter >= 'A' && letter <= 'Z'; }

}  // namespace
}  // namespace quern::drop_in

using namespace quern::drop_in;

extern "C" {

/// The function to jump to. Puts the address behind the call into `*caller`, whose old value it keeps.
[[gnu::used, gnu::visibility("hidden")]] void* quern_enter_call(std::size_t index, void** caller) noexcept {
  const int kept_errno = errno;
  const std::string_view name = name_of(index);
  void* function = function_of(index);
  CountsRow* const row = row_of(index);
  if (row != nullptr) row->add(CountsRow::calls);
  calls.last = index;
  if (name == "cuGetProcAddress" || name == "cuGetProcAddress_v2")
    function = reinterpret_cast<void*>(&get_proc_address);
  // cuGetExportTable looks at its return address.
  if (name != "cuGetExportTable" && calls.count < std::size(calls.stack)) {
    calls.stack[calls.count++] = {row, *caller};
    *caller = quern_after_call;
  }
  errno = kept_errno;
  return function;
}

/// The caller's return address.
[[gnu::used, gnu::visibility("hidden")]] void* quern_leave_call(CUresult result) noexcept {
  const Call call = calls.stack[--calls.count];
  if (call.row == nullptr || result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) return call.caller;
  call.row->add(result == CUDA_ERROR_NOT_SUPPORTED ? CountsRow::not_supported : CountsRow::failed);
  return call.caller;
}

/// True if dlsym(library, name) may ask for a function of a CUDA driver.
[[gnu::used, gnu::visibility("hidden")]] bool quern_is_of_a_driver(void* library, const char* name) noexcept {
  if (quern_real_dlsym == nullptr) static_cast<void>(real_dlsym(RTLD_NEXT, "dlsym"));
  return library != RTLD_NEXT && name != nullptr && name[0] == 'c' && name[1] == 'u' && is_capital(name[2]);
}

[[gnu::used, gnu::visibility("hidden")]] void* quern_find_function(void* library, const char* name) noexcept {
  // Behind this library, which has all the names itself.
  void* const scope = library == RTLD_DEFAULT ? RTLD_NEXT : library;
  const std::size_t index = index_of(name);
  void* found = real_dlsym(scope, name);
  if (index < kExportCount && found == address_of(index)) found = real_dlsym(RTLD_NEXT, name);
  if (found == nullptr) {
    if (library != RTLD_DEFAULT && is_our_device(library)) count("missing", name);
    return real_dlsym(RTLD_NEXT, name);  // once more: dlerror() tells of the last call
  }
  if (!is_our_device(scope)) return found;
  if (index == kExportCount) return thunk_for(name, found);
  thunks[index].function.store(found, std::memory_order_release);
  return address_of(index);
}

}  // extern "C"
