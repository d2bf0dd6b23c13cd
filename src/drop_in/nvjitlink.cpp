// SPDX-License-Identifier: Apache-2.0
// Stands for NVIDIA's nvJitLink, which makes machine code of GPUs. It has the functions by which nvJitLink.h
// and NVIDIA's libraries (cuSPARSE, and what needs it: cuSOLVER, PyTorch) call nvJitLink, so that these load;
// each of them fails. It has no nvJitLinkVersion and none of the other names without a version: clients that
// look these up, such as Numba and cuda.core, conclude that nvJitLink is unusable and link PTX through the
// driver.
//
// QUERN_NVJITLINK_MAJOR is 12 or 13, a macro of the command line.
#include <cstddef>

namespace {

/// NVJITLINK_ERROR_INTERNAL of the enumeration nvJitLinkResult (nvJitLink's documentation, "Error codes").
constexpr int kInternalError = 6;

}  // namespace

extern "C" {

int quern_nvjitlink_create(void** handle, unsigned, const char**) {
  if (handle != nullptr) *handle = nullptr;
  return kInternalError;
}
int quern_nvjitlink_size(void*, std::size_t* size_bytes) {
  if (size_bytes != nullptr) *size_bytes = 0;
  return kInternalError;
}
int quern_nvjitlink_fail() { return kInternalError; }

// __nvJitLinkCreate_12_0 and so on: nvJitLink.h appends the toolkit's version to each function. The minor
// versions up to 9 have one meaning.
#define QUERN_FUNCTION(name, major, minor, does) \
  decltype(does) __nvJitLink##name##_##major##_##minor __attribute__((alias(#does)))
#define QUERN_FUNCTIONS(name, major, does) \
  QUERN_FUNCTION(name, major, 0, does);    \
  QUERN_FUNCTION(name, major, 1, does);    \
  QUERN_FUNCTION(name, major, 2, does);    \
  QUERN_FUNCTION(name, major, 3, does);    \
  QUERN_FUNCTION(name, major, 4, does);    \
  QUERN_FUNCTION(name, major, 5, does);    \
  QUERN_FUNCTION(name, major, 6, does);    \
  QUERN_FUNCTION(name, major, 7, does);    \
  QUERN_FUNCTION(name, major, 8, does);    \
  QUERN_FUNCTION(name, major, 9, does)
// Expands the major version first.
#define QUERN_OF_MAJOR(name, major, does) QUERN_FUNCTIONS(name, major, does)
#define QUERN_NVJITLINK(name, does) QUERN_OF_MAJOR(name, QUERN_NVJITLINK_MAJOR, does)

QUERN_NVJITLINK(Create, quern_nvjitlink_create);
QUERN_NVJITLINK(Destroy, quern_nvjitlink_fail);
QUERN_NVJITLINK(AddData, quern_nvjitlink_fail);
QUERN_NVJITLINK(AddFile, quern_nvjitlink_fail);
QUERN_NVJITLINK(Complete, quern_nvjitlink_fail);
QUERN_NVJITLINK(GetLinkedCubinSize, quern_nvjitlink_size);
QUERN_NVJITLINK(GetLinkedCubin, quern_nvjitlink_fail);
QUERN_NVJITLINK(GetLinkedPtxSize, quern_nvjitlink_size);
QUERN_NVJITLINK(GetLinkedPtx, quern_nvjitlink_fail);
QUERN_NVJITLINK(GetLinkedLTOIRSize, quern_nvjitlink_size);
QUERN_NVJITLINK(GetLinkedLTOIR, quern_nvjitlink_fail);
QUERN_NVJITLINK(GetErrorLogSize, quern_nvjitlink_size);
QUERN_NVJITLINK(GetErrorLog, quern_nvjitlink_fail);
QUERN_NVJITLINK(GetInfoLogSize, quern_nvjitlink_size);
QUERN_NVJITLINK(GetInfoLog, quern_nvjitlink_fail);

}  // extern "C"
