// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/digest.hpp"
#include "cpu/compiler/compiler.hpp"
#include "ptx/module.hpp"
#include "quern/diagnostic.hpp"

namespace quern::cpu::device {

/// PTX that runs here.
struct LoadablePtx {
  ptx::Module module;
  std::vector<KernelInfo> kernels;
};

/// The reason why an image does not load. Results: CUDA_ERROR_NO_BINARY_FOR_GPU (machine code),
/// CUDA_ERROR_INVALID_IMAGE (neither PTX nor a container), CUDA_ERROR_UNSUPPORTED_PTX_VERSION,
/// CUDA_ERROR_INVALID_PTX (everything else, including PTX for a newer architecture and instructions that this
/// device does not support: the diagnostics distinguish them by their code).
struct Refusal {
  CUresult result = CUDA_ERROR_INVALID_PTX;
  Diagnostics diagnostics;
};

/// Parses, verifies and inspects PTX text.
std::variant<LoadablePtx, Refusal> read_ptx(std::string_view text);

/// PTX that modules share which were loaded from equal texts. Immutable. (The forms of its instructions are
/// not set if the store knew its kernels; nothing in this component reads them.)
struct SharedPtx {
  SharedPtx(const base::Digest& text_digest, LoadablePtx read);
  SharedPtx(const SharedPtx&) = delete;
  SharedPtx& operator=(const SharedPtx&) = delete;

  const base::Digest digest;  ///< of the text
  const ptx::Module module;
  const std::vector<KernelInfo> kernels;
  // By name, since generated modules have tens of thousands; they refer to `module` and `kernels`.
  std::unordered_map<std::string_view, const ptx::Function*> ptx_by_name;
  std::unordered_map<std::string_view, const KernelInfo*> kernels_by_name;
};

/// PTX, and the time that this request spent on parsing and checking it. 0: the text was known, from this
/// process, an earlier one or a bundle.
struct ReadPtx {
  std::shared_ptr<const SharedPtx> ptx;
  std::uint64_t ns = 0;
};

/// Reads a text as read_ptx() does, once for equal texts: the last ones that were read are kept, with their
/// refusals (docs/decisions/0025-shared-machine-code.md). Thread-safe; not for forked children.
std::variant<ReadPtx, Refusal> shared_ptx(std::string_view text);

/// Counts of this process; a consistent reading of each, not of all.
struct TextStats {
  std::uint64_t checked = 0;      ///< PTX texts whose kernels were inspected here
  std::uint64_t from_memory = 0;  ///< loads of a text that the process had read, or was reading
  std::uint64_t from_disk = 0;    ///< texts that another process had checked
  std::uint64_t from_bundles = 0;
};
TextStats text_stats();

/// A module image: a NUL-terminated PTX text or a fat binary, in memory also through a wrapper.
struct Image {
  const void* address = nullptr;
  std::optional<std::size_t> bytes{};  ///< of a file's content, behind which there is a NUL; else not known
};

/// The text of a module image.
struct ImageText {
  std::string unpacked;    ///< out of a container
  std::string_view given;  ///< if the image is the text itself

  std::string_view view() const noexcept { return given.data() != nullptr ? given : unpacked; }
};
/// True if the text begins with `.version`, behind comments and blanks: others are no PTX.
bool begins_as_ptx(std::string_view text);
/// A Refusal of PTX that is for other devices, or for no device that there is.
std::optional<Refusal> check_target(const ptx::Module& module);
/// A Refusal for machine code, which is not terminated, and for fat binaries without PTX that runs here.
std::variant<ImageText, Refusal> text_of_image(const Image& image);

}  // namespace quern::cpu::device
