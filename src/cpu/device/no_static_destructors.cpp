// SPDX-License-Identifier: Apache-2.0
// In the plug-in and the stand-alone driver alone, which are never unloaded: their static objects, LLVM's
// included, live until the process's end. exit() would destroy them while other threads still compile or run
// kernels.

extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) noexcept {
  return 0;
}
