// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"
// The above declares every version, for what follows.
#include "fake_compiler.hpp"

namespace quern::fuzz {
namespace {

/// Kernels that end, and that are safe with the machine's parameters.
constexpr std::array<const char*, 6> kNames{"fill", "empty", "index", "small", "shared_user", "missing"};

}  // namespace

void Machine::call_module() {
  const CUmodule of = input_.below(2) == 0 ? module_ : any(modules_);
  CUmodule loaded = nullptr;
  CUfunction found = nullptr;
  CUdeviceptr variable = 0;
  std::size_t size = 0;
  int value = 0;
  unsigned count = 0;
  switch (input_.below(13)) {
    case 0: {
      if (modules_.full()) return;
      const std::string image = text();
      return modules_.add_if(cuModuleLoadData(&loaded, input_.rarely() ? nullptr : image.c_str()), loaded);
    }
    case 1:
      cuModuleUnload(any(modules_));
      return;
    case 2:
    case 3:
      return functions_.add_if(cuModuleGetFunction(&found, of, kNames[input_.below(kNames.size())]), found);
    case 4:
      cuModuleGetGlobal_v2(&variable, input_.rarely() ? nullptr : &size, of,
                           input_.rarely() ? nullptr : "counter");
      return;
    case 5: {
      std::array<CUfunction, 4> all{};
      cuModuleGetFunctionCount(&count, of);
      cuModuleEnumerateFunctions(all.data(), static_cast<unsigned>(input_.below(5)), of);
      return;
    }
    case 6:
      cuFuncGetAttribute(&value, static_cast<CUfunction_attribute>(input_.number()), function());
      return;
    case 7: {
      const auto attribute = static_cast<CUfunction_attribute>(input_.number());
      cuFuncSetAttribute(function(), attribute, input_.number());
      return;
    }
    case 8: {
      const CUfunction its = function();
      const char* name = nullptr;
      cuFuncGetModule(&loaded, its);
      cuFuncGetName(input_.rarely() ? nullptr : &name, its);
      std::size_t offset = 0;
      cuFuncGetParamInfo(its, input_.number() & 0xff, &offset, &size);
      return;
    }
    case 9: {
      const CUfunction its = function();
      cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, its, input_.number(), bytes());
      cuOccupancyAvailableDynamicSMemPerBlock(&size, its, input_.number(), input_.number());
      return;
    }
    case 10: {
      const auto shared = [](int) -> std::size_t { return 16; };
      int grid = 0;
      cuOccupancyMaxPotentialBlockSize(&grid, &value, function(), input_.below(2) == 0 ? nullptr : +shared,
                                       bytes(), input_.number());
      return;
    }
    case 11: {
      const CUDA_KERNEL_NODE_PARAMS params = kernel();
      CUlaunchAttribute attribute{};
      attribute.id = static_cast<CUlaunchAttributeID>(input_.below(16));
      attribute.value.cooperative = static_cast<int>(input_.below(3));
      CUlaunchConfig config{};
      config.gridDimX = input_.rarely() ? input_.word() : params.gridDimX;
      config.gridDimY = config.gridDimZ = 1;
      config.blockDimX = config.blockDimY = config.blockDimZ = 1;
      config.hStream = stream();
      config.attrs = &attribute;
      config.numAttrs = static_cast<unsigned>(input_.below(2));
      // More blocks than the memory has words would end in a fault.
      cuLaunchKernelEx(&config, config.gridDimX > 64 ? nullptr : params.func, params.kernelParams, nullptr);
      return;
    }
    default: {
      const CUfunction its = function();
      cuFuncLoad(its);
      cuFuncSetCacheConfig(its, static_cast<CUfunc_cache>(input_.number()));
    }
  }
}

void Machine::call_library() {
  const CUlibrary of = any(libraries_);
  const CUkernel kernel_handle = any(kernels_);
  CUlibrary loaded = nullptr;
  CUmodule its_module = nullptr;
  CUkernel found = nullptr;
  CUfunction its_function = nullptr;
  CUdeviceptr variable = 0;
  std::size_t size = 0;
  int value = 0;
  unsigned count = 0;
  switch (input_.below(10)) {
    case 0: {
      if (libraries_.full()) return;
      const std::string image = text();
      return libraries_.add_if(cuLibraryLoadData(&loaded, input_.rarely() ? nullptr : image.c_str(), nullptr,
                                                 nullptr, 0, nullptr, nullptr, 0),
                               loaded);
    }
    case 1:
      cuLibraryUnload(of);
      return;
    case 2:
    case 3:
      return kernels_.add_if(cuLibraryGetKernel(&found, of, kNames[input_.below(kNames.size())]), found);
    case 4:
      return modules_.add_if(cuLibraryGetModule(&its_module, of), its_module);
    case 5:
      cuLibraryGetGlobal(&variable, &size, of, input_.rarely() ? nullptr : "counter");
      cuLibraryGetManaged(&variable, &size, of, "counter");
      return;
    case 6:
      return functions_.add_if(cuKernelGetFunction(&its_function, kernel_handle), its_function);
    case 7: {
      const auto attribute = static_cast<CUfunction_attribute>(input_.number());
      cuKernelSetAttribute(attribute, input_.number(), kernel_handle, input_.rarely() ? 1 : 0);
      cuKernelGetAttribute(&value, attribute, kernel_handle, 0);
      return;
    }
    case 8: {
      std::array<CUkernel, 4> all{};
      cuLibraryGetKernelCount(&count, of);
      cuLibraryEnumerateKernels(all.data(), static_cast<unsigned>(input_.below(5)), of);
      return;
    }
    default: {
      const char* name = nullptr;
      cuKernelGetName(&name, kernel_handle);
      cuKernelGetLibrary(&loaded, kernel_handle);
      std::size_t offset = 0;
      cuKernelGetParamInfo(kernel_handle, input_.below(4), &offset, input_.rarely() ? nullptr : &size);
      if (input_.below(2) != 0) return;
      // A kernel stands for its function, in the current context.
      cuLaunchKernel(reinterpret_cast<CUfunction>(kernel_handle), 1, 1, 1, 1, 1, 1, 0, stream(),
                     parameters_.data(), nullptr);
    }
  }
}

void Machine::call_link() {
  const CUlinkState link = any(links_);
  switch (input_.below(5)) {
    case 0: {
      if (links_.full()) return;
      CUlinkState made = nullptr;
      return links_.add_if(cuLinkCreate_v2(0, nullptr, nullptr, &made), made);
    }
    case 1:
    case 2: {
      std::string image = text();
      const auto kind = static_cast<CUjitInputType>(input_.rarely() ? input_.number() : CU_JIT_INPUT_PTX);
      cuLinkAddData_v2(link, kind, input_.rarely() ? nullptr : image.data(),
                       input_.rarely() ? input_.below(image.size()) : image.size() + 1,
                       input_.rarely() ? nullptr : "a", 0, nullptr, nullptr);
      return;
    }
    case 3: {
      void* image = nullptr;
      std::size_t size = 0;
      if (cuLinkComplete(link, &image, &size) != CUDA_SUCCESS || modules_.full()) return;
      CUmodule loaded = nullptr;
      return modules_.add_if(cuModuleLoadData(&loaded, image), loaded);
    }
    default:
      cuLinkDestroy(link);
  }
}

}  // namespace quern::fuzz
