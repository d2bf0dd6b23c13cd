// SPDX-License-Identifier: Apache-2.0
// Compiled modules and failed compilations on disk.
#pragma once

#include <optional>

#include "abi/kernel_request.hpp"
#include "cache/disk_store.hpp"
#include "compile/key.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// The outcome of an earlier compilation under the key: an image without `compile_ms`, or the errors.
/// Returns nothing if there is none.
std::optional<Expected<abi::PtxImage>> recall_image(cache::DiskStore& store, const CudaKey& key);

/// Keeps the outcome for later processes. A failure is kept if NVRTC found errors in the source: not where it
/// was cancelled, lacked memory or could not open a file.
void remember_image(cache::DiskStore& store, const CudaKey& key, const Expected<abi::PtxImage>& outcome);

}  // namespace quern::compile
