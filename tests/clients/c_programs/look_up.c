// SPDX-License-Identifier: Apache-2.0
// Opens the driver by dlopen and takes every function from cuGetProcAddress, as language bindings do.
// Not linked with the driver.
#include <dlfcn.h>

#include "program.h"

typedef CUresult (*Look)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

static void* find(Look look, const char* name, int version) {
  void* its_function = NULL;
  CHECK(look(name, &its_function, version, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
  REQUIRE(its_function != NULL);
  return its_function;
}

int main(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(library != NULL);
  const Look look = (Look)dlsym(library, "cuGetProcAddress_v2");
  REQUIRE(look != NULL);

  void* missing = (void*)1;
  CUdriverProcAddressQueryResult why;
  REQUIRE(look("cuNoSuchFunction", &missing, 13000, 0, &why) != CUDA_ERROR_INVALID_VALUE);
  REQUIRE(missing == NULL && why == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  look("cuGraphAddNode", &missing, 11000, 0, &why);
  REQUIRE(missing == NULL && why == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

  CHECK(((CUresult(*)(unsigned))find(look, "cuInit", 2000))(0));
  int count = 0, version = 0;
  CHECK(((CUresult(*)(int*))find(look, "cuDeviceGetCount", 2000))(&count));
  CHECK(((CUresult(*)(int*))find(look, "cuDriverGetVersion", 2020))(&version));
  REQUIRE(count >= 1 && version >= 12000);

  // Below 3020 the size is an unsigned int, from then on a size_t.
  size_t wide = (size_t)-1;
  unsigned narrow[2] = {0, 77};
  CHECK(((CUresult(*)(size_t*, CUdevice))find(look, "cuDeviceTotalMem", 3020))(&wide, 0));
  CHECK(((CUresult(*)(unsigned*, CUdevice))find(look, "cuDeviceTotalMem", 2000))(narrow, 0));
  REQUIRE(wide != (size_t)-1 && wide > 0 && narrow[1] == 77);
  return 0;
}
