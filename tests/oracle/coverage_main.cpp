// SPDX-License-Identifier: Apache-2.0
// Answers questions of tools/ptx-coverage about instructions:
//   ptx-coverage-check --forms     the rows of isa.def that forms.def tests, as "opcode|words|operands" lines
//   ptx-coverage-check             reads PTX modules from standard input, separated by "----" lines; answers
// each
//                                  with a line "runs", "invalid WHY" or "refused WHY"
#include <fmt/format.h>

#include <cstring>
#include <iostream>
#include <set>
#include <string>

#include "driver/loader.hpp"
#include "forms.hpp"
#include "ptx/forms.hpp"
#include "ptx/ptx.hpp"

using namespace quern;

namespace {

int print_forms() {
  const ptx::FormTable& table = ptx::FormTable::instance();
  std::set<std::uint16_t> seen;
  for (const oracle::FormKernel& kernel : oracle::form_kernels()) {
    Expected<ptx::Module> module = ptx::parse(kernel.ptx, "forms");
    if (!module || !ptx::verify(*module, "forms")) {
      fmt::print(stderr, "forms.def: a kernel that begins with {} is not valid PTX\n",
                 kernel.instances[0].text);
      return 1;
    }
    for (const ptx::Function& function : module->functions)
      for (const ptx::Instruction& instruction : function.body)
        if (instruction.form != ptx::kNoForm) seen.insert(instruction.form);
  }
  for (const std::uint16_t index : seen) {
    const ptx::Form& form = table.all()[index];
    fmt::print("{}|{}|{}\n", ptx::name(form.opcode), form.words, form.operands);
  }
  return 0;
}

/// The first line, starting at the last "cannot run on the CPU device: ".
std::string reason_of(std::string log) {
  log.resize(std::min(log.find('\n'), log.size()));
  for (const char* marker : {"CPU device: ", "error: "})
    if (const std::size_t at = log.find(marker); at != std::string::npos)
      return log.substr(at + std::strlen(marker));
  return log;
}

std::string verdict(const driver::DriverTable& table, const std::string& text) {
  Expected<ptx::Module> parsed = ptx::parse(text, "module");
  if (!parsed) return "invalid " + parsed.errors()[0].message;
  if (const Expected<void> valid = ptx::verify(*parsed, "module"); !valid)
    return "invalid " + valid.errors()[0].message;
  char log[8192] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  if (table.cuModuleLoadDataEx(&module, text.c_str(), 2, options, values) != CUDA_SUCCESS)
    return "refused " + reason_of(log);
  table.cuModuleUnload(module);
  return "runs";
}

int judge() {
  auto device = driver::load_cpu_plugin();
  if (!device) {
    fmt::print(stderr, "{}", to_string(device.errors()));
    return 1;
  }
  const driver::DriverTable& table = device->table;
  CUcontext context = nullptr;
  if (table.cuInit(0) != CUDA_SUCCESS || table.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
      table.cuCtxSetCurrent(context) != CUDA_SUCCESS)
    return 1;
  std::string text, line;
  while (std::getline(std::cin, line)) {
    if (line != "----") {
      text += line + "\n";
      continue;
    }
    fmt::print("{}\n", verdict(table, text));
    text.clear();
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return argc > 1 && std::string(argv[1]) == "--forms" ? print_forms() : judge();
}
