// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/fatal.hpp"

#include <llvm/Support/ErrorHandling.h>

#include <csetjmp>
#include <string>

namespace quern::cpu::emit {
namespace {

/// The state to which guarded work returns after a fatal error of LLVM. The reason is stored in an array:
/// longjmp would not destroy a std::string of the abandoned frame.
struct Landing {
  std::jmp_buf place;
  bool exhausted = false;
  char reason[512] = {};
};
thread_local Landing* landing = nullptr;

[[noreturn]] void leave(Landing& to) { std::longjmp(to.place, 1); }  // NOLINT(cert-err52-cpp): see fatal.hpp

/// If no guarded work runs on this thread, both handlers return, and LLVM ends the process as usual.
void on_fatal_error(void*, const char* reason, bool) {
  if (landing == nullptr) return;
  const std::string_view text(reason);
  landing->reason[text.copy(landing->reason, sizeof landing->reason - 1)] = '\0';
  leave(*landing);
}

void on_exhausted_memory(void*, const char*, bool) {
  if (landing == nullptr) return;
  landing->exhausted = true;
  leave(*landing);
}

/// This LLVM is linked statically and has no other user. Its handlers are for all threads.
void install_handlers() {
  static const bool installed = [] {
    llvm::install_fatal_error_handler(on_fatal_error);
    llvm::install_bad_alloc_error_handler(on_exhausted_memory);
    return true;
  }();
  (void)installed;
}

/// A separate function, so that no variable that changes is live across the jump. Returns false after a jump.
bool run(Landing& to, llvm::function_ref<void()> work) {
  if (setjmp(to.place) != 0) return false;  // NOLINT(cert-err52-cpp): see fatal.hpp
  work();
  return true;
}

/// Guarded work may run other guarded work.
class Landed {
 public:
  explicit Landed(Landing& to) : before_(landing) { landing = &to; }
  ~Landed() { landing = before_; }
  Landed(const Landed&) = delete;
  Landed& operator=(const Landed&) = delete;

 private:
  Landing* before_;
};

}  // namespace

Expected<void> guard_llvm(std::string_view kernel, llvm::function_ref<void()> work) {
  install_handlers();
  Landing to;
  const Landed landed(to);
  if (run(to, work)) return {};
  if (to.exhausted) throw std::bad_alloc();
  return Diagnostic{.code = "internal",
                    .message = "compiling kernel " + std::string(kernel) +
                               " for the CPU device: LLVM ended with a fatal error: " + to.reason,
                    .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

void call_llvm(llvm::function_ref<void()> call) {
  bool exhausted = false;
  try {
    call();
  } catch (const std::bad_alloc&) {
    exhausted = true;
  }
  if (exhausted) llvm::report_bad_alloc_error("no memory for compiling a kernel");
}

}  // namespace quern::cpu::emit
