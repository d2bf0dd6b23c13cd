// SPDX-License-Identifier: Apache-2.0
// The entries that the device keeps on disk, in the store that all processes of a user share: machine code,
// and facts about the kernels of PTX that it has checked. Entries are those of this build of the library and
// of this processor; without a store, or if the library has no build-id, nothing is kept.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "cpu/compiler/compiler.hpp"

namespace quern::cpu::device {

using MakeImage = std::function<Expected<CodeImage>()>;

/// A digest of PTX, kernel and specialisation, and what it was made of, for `quern cache`.
struct CodeKey {
  base::Digest digest;
  std::vector<std::pair<std::string, std::string>> components;
};

/// The key of the code of a kernel, whatever generates it.
CodeKey code_key(const base::Digest& ptx, std::string_view kernel, const Specialisation& specialisation);
/// The components of an entry's key.
std::string components_bytes(const CodeKey& key);

/// The image under `key`; calls `make` if there is none, and keeps what it returns. Processes that ask for
/// one image at once wait for one of them. `was_stored` says that `make` was not called. Thread-safe.
Expected<CodeImage> stored_image(const CodeKey& key, const MakeImage& make, bool& was_stored);

/// The image under `key`; nothing: there is none.
std::optional<CodeImage> find_stored(const CodeKey& key);

/// Keeps the image in place of a stored one that does not load.
void replace_image(const CodeKey& key, const CodeImage& image);

/// The result of inspect() for the PTX text with digest `ptx`, which then was without errors; nothing: not
/// known.
std::optional<std::vector<KernelInfo>> stored_kernels(const base::Digest& ptx);
void store_kernels(const base::Digest& ptx, const std::vector<KernelInfo>& kernels);

}  // namespace quern::cpu::device
