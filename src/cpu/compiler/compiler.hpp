// SPDX-License-Identifier: Apache-2.0
// Compiles a kernel of a PTX module to machine code for one block shape (passes.cpp has the list of passes).
// Thread-safe; immutable after construction.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/abi/specialisation.hpp"
#include "cpu/abi/state.hpp"
#include "cpu/code/image.hpp"
#include "cpu/code/kernel_info.hpp"
#include "cpu/ir/code_sites.hpp"
#include "ptx/module.hpp"
#include "quern/expected.hpp"

namespace quern::cpu {

/// Executable code of one kernel. Its users share ownership; the last one unmaps it.
struct KernelCode : CodeFacts {
  engine::RunBlocks run = nullptr;
  /// machine code range: a fault with its pc in this range is a fault of the kernel
  const std::byte* text_begin = nullptr;
  const std::byte* text_end = nullptr;
  std::shared_ptr<void> memory;  ///< owns the mapping
  std::size_t mapped_bytes = 0;
  /// the parameters of the compilation; nullopt: those of the request
  std::optional<Specialisation> made_for;
};

enum class Stage : std::uint8_t { simt, llvm, assembly };

/// The total time of all runs of a pass.
struct PassTime {
  std::string_view name;
  unsigned runs = 0;
  std::chrono::nanoseconds time{0};
};

struct StageRequest {
  Stage stage = Stage::simt;
  std::string_view pass;  ///< shows the kernel after this pass; empty: at the end of the stage
  /// not null: gets a row for each pass that ran, in the order of first runs
  std::vector<PassTime>* times = nullptr;
};

/// Returns facts about every defined kernel, without a launch. Errors: unsupported code (instruction, line,
/// reason).
Expected<std::vector<KernelInfo>> inspect(const ptx::Module& module, std::string_view file_name);

/// Compiles `kernel` of `module` for `specialisation`.
Expected<CodeImage> compile_image(const ptx::Module& module, std::string_view kernel,
                                  const Specialisation& specialisation);

/// The code of the diagnostic for machine code that the system refused to map.
inline constexpr std::string_view kNoMappingCode = "out-of-memory";

/// Maps the machine code of an image into memory. Errors: those of map_code() (code/load.hpp).
Expected<std::shared_ptr<const KernelCode>> load_image(const CodeImage& image);

/// Calls compile_image() and load_image().
Expected<std::shared_ptr<const KernelCode>> compile(const ptx::Module& module, std::string_view kernel,
                                                    const Specialisation& specialisation);

/// Compiles the kernel again to map its machine code to instructions.
Expected<CodeSites> find_sites(const ptx::Module& module, std::string_view kernel,
                               const Specialisation& specialisation);

/// Returns the output of a stage for the kernel, as text. Errors: also a pass that the stage does not have
/// (code "usage"); the message lists the passes that it has.
Expected<std::string> stage_text(const ptx::Module& module, std::string_view kernel,
                                 const Specialisation& specialisation, const StageRequest& request);

/// Everything that determines machine code besides PTX, kernel and specialisation, as text: this build of the
/// library and the processor. Empty: the library has no build-id, so its code must not be stored.
const std::string& generator_identity();

/// The widest instruction set of this processor that the emitter uses; QUERN_CPU_ISA (baseline, avx2, avx512)
/// narrows it.
Isa host_isa();

/// True if this processor runs portable code (Specialisation::portable) for `isa`.
bool runs_portable(Isa isa);

}  // namespace quern::cpu
