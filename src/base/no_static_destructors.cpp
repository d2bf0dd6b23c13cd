// SPDX-License-Identifier: Apache-2.0
// For the shared libraries, which are never unloaded: their static objects, LLVM's included, live until the
// process's end. exit() would destroy them while other threads still compile or run kernels. (Functions
// registered by atexit() are discarded, too, and never called; on_exit() has a separate list.)

extern "C" __attribute__((visibility("hidden"))) int __cxa_atexit(void (*)(void*), void*, void*) noexcept {
  return 0;
}
