// SPDX-License-Identifier: Apache-2.0
// For the shared libraries, which are never unloaded: their static objects, LLVM's included, live until the
// process's end. exit() would destroy them while other threads still compile or run kernels. (What atexit()
// registers comes here, too, and is never called; on_exit() is another list.)

extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) noexcept {
  return 0;
}
