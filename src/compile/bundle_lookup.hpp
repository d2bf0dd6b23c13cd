// SPDX-License-Identifier: Apache-2.0
// Finds the code of requests in bundles.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "compile/bundle_image.hpp"

namespace quern::compile {

/// Thread-safe, if the function that tells the toolkit is.
class BundleLookup {
 public:
  using Image = std::shared_ptr<const abi::PtxImage>;
  /// The toolkit of this machine, which may have no facts. Is asked only if a bundle has the request.
  using ToolkitHere = std::function<const Toolkit&()>;

  /// `any_toolkit`: bundles of other toolkits than the one here count too.
  BundleLookup(std::span<cache::Bundle* const> bundles, bool any_toolkit, ToolkitHere here)
      : bundles_(bundles), any_toolkit_(any_toolkit), here_(std::move(here)) {}

  struct Found {
    base::Digest key;  ///< of the image, fitted to the driver of the request
    Image image;
    bool was_in_memory = false;
  };
  /// The entry of a CUDA C++ request in the first bundle that has it. `in_memory` tells an image that was
  /// found before, or null.
  std::optional<Found> find(const abi::KernelRequest& cuda,
                            const std::function<Image(const base::Digest&)>& in_memory) const;

  /// Returns false if this machine has another toolkit, as far as the request depends on it.
  bool accepts(const ToolkitContents& theirs, const BundleRequest& request) const;

 private:
  std::optional<Found> find_in(cache::Bundle& bundle, const BundleRequest& wanted,
                               const std::function<Image(const base::Digest&)>& in_memory) const;

  const std::span<cache::Bundle* const> bundles_;
  const bool any_toolkit_;
  const ToolkitHere here_;
};

}  // namespace quern::compile
