// SPDX-License-Identifier: Apache-2.0
// The author's own headers as texts, so that a source can be compiled on a machine that does not have them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/digest.hpp"
#include "quern/expected.hpp"

namespace quern::compile {

/// A request with the author's headers as texts, and what their files are called here.
struct WholeRequest {
  abi::KernelRequest request;
  std::map<std::string, std::string> files;  ///< name of a header to the file as NVRTC would name it
  /// Something is included that is neither the author's nor quern's: the toolkit's, by quern's headers too.
  bool needs_toolkit = false;
};

/// Reads every file that the source could include from the directories of its options, in their order, or
/// from beside itself, and adds it to request.headers under the name that NVRTC would ask for; removes the
/// options that name directories (-I). Directories below `toolkit_directories` are skipped: the server
/// has its own. What is not found there is left for the toolkit's headers. Conditions are not evaluated.
/// Fails, with code "not-remote", where texts cannot replace the files: options that read or write others, an
/// include that only a preprocessor can name, one name for two files, too many files.
Expected<WholeRequest> with_own_headers(const abi::KernelRequest& request,
                                        const std::vector<std::string>& toolkit_directories);

/// Covers all that determines a server's answer to the request, its toolkit aside.
base::Digest digest_of(const abi::KernelRequest& whole);

/// Names the files in the image's PTX and messages as a compilation here would have done.
void rename_files(abi::PtxImage& image, const std::map<std::string, std::string>& files);
void rename_files(Diagnostics& diagnostics, const std::map<std::string, std::string>& files);

}  // namespace quern::compile
