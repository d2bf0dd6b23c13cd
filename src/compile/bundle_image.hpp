// SPDX-License-Identifier: Apache-2.0
// Compiled modules in bundles (cache/bundle.hpp). Their keys cover no path, so that a bundle that is made in
// one folder can be used in another: the names of files stay out, and the author's headers count as texts.
//
// The toolkit is part of a key by its contents. A machine without NVRTC cannot compare it; there the toolkit
// that the bundle names counts.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "abi/kernel_request.hpp"
#include "cache/bundle.hpp"
#include "compile/key.hpp"
#include "compile/own_headers.hpp"
#include "compile/toolkit/toolkit_contents.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The entry by which a bundle says its toolkit, and back; nothing if the bundle has none.
cache::BundleEntry toolkit_entry(const ToolkitContents& toolkit);
std::optional<ToolkitContents> toolkit_of(cache::Bundle& bundle);

/// A request of CUDA C++ as bundles know it.
struct BundleRequest {
  WholeRequest whole;
  base::Digest digest;  ///< of all but toolkit and target
};
/// Errors: code "not-remote" for sources whose headers cannot be told, and for options that put the working
/// directory into the code.
Expected<BundleRequest> bundle_request(const abi::KernelRequest& cuda);

/// `sm`: 0 for PTX alone.
base::Digest bundle_key(const BundleRequest& request, const ToolkitContents& toolkit, std::uint32_t sm);

/// The key's components, for `quern cache why`.
Components bundle_components(const BundleRequest& request, const ToolkitContents& toolkit, std::uint32_t sm);

/// The image's entry, for the request under the name `file`: without times, and without the paths of the
/// toolkit's headers.
cache::BundleEntry image_entry(const BundleRequest& request, const ToolkitContents& toolkit,
                               const std::vector<std::string>& toolkit_directories, abi::PtxImage image);

}  // namespace quern::compile
