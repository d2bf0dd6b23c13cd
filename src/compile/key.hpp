// SPDX-License-Identifier: Apache-2.0
// The key of a compilation: a digest of everything that NVRTC sees and that changes the image. Its components
// are kept beside the image, for `quern cache why`.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "compile/cuda_source.hpp"

namespace quern::compile {

using Components = std::vector<std::pair<std::string, std::string>>;

/// A key and what it was made of: names, and values as text or as the digest of one, in a fixed order.
struct CudaKey {
  base::Digest digest;
  Components components;
  /// The reason why only this process may use images under the key; empty if others may.
  std::string not_for_disk;
};

/// Returns nothing if the input of NVRTC is not known. `why` (may be null) receives the reason.
std::optional<CudaKey> cuda_key(const CudaPlan& plan, std::string* why = nullptr);

/// Looks at the files again. Returns false if one has changed since the key was made, and what NVRTC has
/// compiled since may not be that of the key.
bool is_still_right(const CudaKey& key, CudaPlan plan);

/// A list of names and values: the number of pairs, then name and value of each (base/byte_stream.hpp).
std::string components_bytes(const CudaKey& key);
/// Takes arbitrary bytes; nothing if they are not such a list.
std::optional<Components> read_components(std::string_view bytes);

}  // namespace quern::compile
