// SPDX-License-Identifier: Apache-2.0
// The compilations of a bundle: the folder's files and their kernels, for each target.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/bundle.hpp"
#include "quern/expected.hpp"

namespace quern::session {

/// The targets of a bundle.
struct BundleTargets {
  std::vector<abi::Target> modules;  ///< architectures that sources are compiled for
  std::uint32_t cpu_isas = 0;        ///< QUERN_CPU_ISA_*: machine code of the CPU device; 0: none
};
/// Errors: code "usage" for a word that is not a target.
Expected<BundleTargets> read_bundle_targets(const std::vector<std::string>& words);

/// One request, for each target.
struct BundleUnit {
  std::string name;  ///< of the file, below the folder
  abi::KernelRequest request;
};

struct BundlePlan {
  std::vector<BundleUnit> units;  ///< in an order that depends on names alone
  std::size_t file_count = 0;
  std::vector<BundleProblem> failed;
  std::vector<BundleProblem> skipped;
};

/// The names of files in messages and in line information.
enum class BundleNames : std::uint8_t { below_folder, paths };

/// Errors: the folder cannot be read.
Expected<BundlePlan> plan_bundle(const std::filesystem::path& folder, const BundleOptions& options,
                                 BundleNames names);

}  // namespace quern::session
