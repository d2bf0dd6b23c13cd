// SPDX-License-Identifier: Apache-2.0
// PTX module -> machine code for one kernel and one block shape: the list of passes, in one place
// (compiler.cpp). Thread-safe; immutable after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/code/image.hpp"
#include "cpu/code/kernel_info.hpp"
#include "cpu/engine/abi.hpp"
#include "cpu/ir/ir.hpp"
#include "cpu/specialisation.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// Executable code of one kernel. Kept alive by its users; unmapped by the last one.
struct KernelCode : CodeFacts {
  engine::RunBlocks run = nullptr;
  const std::byte* text_begin = nullptr;  ///< machine code range: a fault with its pc in here is the kernel's
  const std::byte* text_end = nullptr;
  std::shared_ptr<void> memory;  ///< owns the mapping
  std::size_t mapped_bytes = 0;
};

/// Machine code from `offset` on belongs to instruction `value` of function `function`; ir::kNone: to no
/// instruction.
struct CodeSite {
  std::uint64_t offset = 0;  ///< from KernelCode::text_begin
  std::uint32_t function = ir::kNone;
  ir::Value value = ir::kNone;
};

/// Facts about a kernel's machine code that the explanation of a fault needs.
struct CodeSites {
  ir::Module module;  ///< that the code was made of; its instructions' locations are KernelCode::locations
  std::uint64_t digest = 0;     ///< KernelCode::digest of the code that `sites` is about
  std::vector<CodeSite> sites;  ///< by offset, ascending; each reaches to the next one's begin
};

enum class Stage : std::uint8_t { simt, llvm, assembly };

/// Facts about every defined kernel; rejects unsupported code (instruction, line, reason) before any launch.
Expected<std::vector<KernelInfo>> inspect(const ptx::Module& module, std::string_view file_name);

/// Compiles `kernel` of `module` for `specialisation`.
Expected<CodeImage> compile_image(const ptx::Module& module, std::string_view kernel,
                                  const Specialisation& specialisation);

/// The code of the diagnostic for machine code that the system refused to map.
inline constexpr std::string_view kNoMappingCode = "out-of-memory";

/// Maps the machine code of an image into memory. Errors: as map_code() (code/load.hpp) has them.
Expected<std::shared_ptr<const KernelCode>> load_image(const CodeImage& image);

/// Both in one.
Expected<std::shared_ptr<const KernelCode>> compile(const ptx::Module& module, std::string_view kernel,
                                                    const Specialisation& specialisation);

/// Compiles the kernel again to map its machine code to instructions.
Expected<CodeSites> find_sites(const ptx::Module& module, std::string_view kernel,
                               const Specialisation& specialisation);

/// The output of a stage for the kernel, as text.
Expected<std::string> stage_text(const ptx::Module& module, std::string_view kernel,
                                 const Specialisation& specialisation, Stage stage);

/// All that determines machine code beside PTX, kernel and specialisation, as text: this build of the library
/// and the processor. Empty: the library has no build-id, so that its code must not be stored.
const std::string& generator_identity();

/// The widest instruction set of this processor that the emitter uses; QUERN_CPU_ISA (baseline, avx2, avx512)
/// narrows it.
Isa host_isa();

}  // namespace quern::cpu
