// SPDX-License-Identifier: Apache-2.0
// Any bytes as a file of Kernel Python: translation ends without harm, with CUDA C++ or with at least one
// error.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "frontend/translate.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  quern::abi::KernelSource source{quern::abi::Language::python,
                                  std::string(reinterpret_cast<const char*>(data), size), "fuzz.py"};
  const auto kernels = quern::frontend::outline(source);
  if (!kernels) return quern::to_string(kernels.errors()).empty() ? std::abort(), 0 : 0;
  for (const quern::frontend::KernelOutline& kernel : *kernels)
    for (const char* type : {"float32[::1]", "int32", "float64[:, :]",
                             "Record([('x', float32, 0), ('y', int64, 8, (2,))], 24)[::1]"}) {
      std::string signature = "(";
      for (std::size_t i = 0; i < kernel.parameters.size(); ++i) signature += std::string(type) + ", ";
      const auto cuda =
          quern::frontend::translate(source, kernel.name, kernel.parameters.empty() ? "" : signature + ")");
      if (!cuda && !quern::has_error(cuda.errors())) {
        std::fprintf(stderr, "%s was refused without an error\n", kernel.name.c_str());
        std::abort();
      }
    }
  return 0;
}
