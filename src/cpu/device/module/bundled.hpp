// SPDX-License-Identifier: Apache-2.0
// Machine code in bundles (cache/bundle.hpp): made without a device for a class of processors, so that it
// runs on each that has the instruction set. It belongs to this build of the library and to one PTX text.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "cache/bundle_format.hpp"
#include "cpu/compiler/compiler.hpp"

namespace quern::cpu::device {

/// Code that runs in place of the code for the specialisation that was asked for.
struct BundledImage {
  CodeImage image;
  Specialisation made_for;
};

/// Code of the process's bundles for a launch like `wanted`: for its instruction set, else for the widest
/// narrower one.
std::optional<BundledImage> bundled_image(const base::Digest& ptx, std::string_view kernel,
                                          const Specialisation& wanted);
std::optional<std::vector<KernelInfo>> bundled_kernels(const base::Digest& ptx);

struct BundleWish {
  std::vector<std::array<std::uint32_t, 3>> blocks;  ///< for kernels that do not fix theirs
  std::vector<Isa> isas;
};
struct BundledCode {
  std::vector<cache::BundleEntry> entries;
  std::vector<std::string>
      without_code;  ///< kernels for which no block shape is known, or none that they allow
};
/// The entries of a PTX text: facts about its kernels, and code of each for each block shape and instruction
/// set. Kernels with .reqntid or .maxntid (__launch_bounds__) have code for that shape too.
Expected<BundledCode> make_bundled_code(std::string_view ptx, const BundleWish& wish);

}  // namespace quern::cpu::device
