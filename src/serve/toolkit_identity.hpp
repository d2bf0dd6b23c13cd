// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cache/disk_store.hpp"
#include "remote/messages.hpp"
#include "serve/worker/shared_messages.hpp"

namespace quern::serve {

/// The toolkit of a server as it was at one moment.
struct ToolkitState {
  remote::ToolkitIdentity identity;
  std::string stamp;  ///< toolkit_stamp()
};

/// NVRTC, the libraries beside it, every header of the toolkit, and quern's own part of a compilation: their
/// contents are its identity, so that equal installations on two machines have the same. `store` (may be
/// null) keeps the digest under the state of the files (toolkit_stamp()), so that they are read once: that
/// takes some tenths of a second.
ToolkitState identify_toolkit(const WorkerHello& hello, cache::DiskStore* store);

/// Digest of the names, inodes, sizes and times of all these files; 5 to 10 ms. The time of change cannot be
/// set by programs, so that files with the same state have the same contents.
std::string toolkit_stamp(const WorkerHello& hello);

}  // namespace quern::serve
