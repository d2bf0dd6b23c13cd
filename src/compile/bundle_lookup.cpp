// SPDX-License-Identifier: Apache-2.0
#include "compile/bundle_lookup.hpp"

#include <vector>

#include "compile/image_format.hpp"
#include "compile/ptx/ptx_version.hpp"

namespace quern::compile {
namespace {

/// A module of a bundle, fitted to the driver that is to load it.
std::optional<BundleLookup::Image> read_module(cache::Bundle& bundle, const base::Digest& key,
                                               std::uint32_t driver_version) {
  const std::optional<std::string> content = bundle.get(cache::EntryKind::ptx_image, key);
  if (!content) return std::nullopt;
  Expected<abi::PtxImage> image = read_image(*content);
  if (!image || (!fit_to_driver(image->ptx, driver_version) && image->machine_code.empty()))
    return std::nullopt;
  return std::make_shared<const abi::PtxImage>(*std::move(image));
}

}  // namespace

bool BundleLookup::accepts(const ToolkitContents& theirs, const BundleRequest& request) const {
  if (any_toolkit_) return true;
  const Toolkit& here = here_();
  if (!here.facts) return true;
  const bool with_headers = request.whole.needs_toolkit;
  const std::optional<ToolkitContents> ours = toolkit_contents(here, with_headers);
  return ours && ours->nvrtc == theirs.nvrtc && (!with_headers || ours->headers == theirs.headers);
}

std::optional<BundleLookup::Found> BundleLookup::find_in(
    cache::Bundle& bundle, const BundleRequest& wanted,
    const std::function<Image(const base::Digest&)>& in_memory) const {
  const std::optional<ToolkitContents> theirs = toolkit_of(bundle);
  if (!theirs) return std::nullopt;
  const abi::Target& target = wanted.whole.request.target;
  std::vector<std::uint32_t> machines{0};
  if (target.sm) machines.insert(machines.begin(), *target.sm);
  for (const std::uint32_t sm : machines) {
    const base::Digest key = bundle_key(wanted, *theirs, sm);
    const base::Digest fitted =
        base::DigestBuilder().add(key.hex()).add(std::uint64_t{target.driver_version}).finish();
    if (Image known = in_memory(fitted)) return Found{fitted, std::move(known), true};
    std::optional<Image> image = read_module(bundle, key, target.driver_version);
    if (image && !accepts(*theirs, wanted)) return std::nullopt;
    if (image) return Found{fitted, *std::move(image), false};
  }
  return std::nullopt;
}

std::optional<BundleLookup::Found> BundleLookup::find(
    const abi::KernelRequest& cuda, const std::function<Image(const base::Digest&)>& in_memory) const {
  if (bundles_.empty()) return std::nullopt;
  const Expected<BundleRequest> wanted = bundle_request(cuda);
  if (!wanted) return std::nullopt;
  for (cache::Bundle* const bundle : bundles_)
    if (std::optional<Found> found = find_in(*bundle, *wanted, in_memory)) return found;
  return std::nullopt;
}

}  // namespace quern::compile
