// SPDX-License-Identifier: Apache-2.0
// NVRTC and the toolkit's headers, found.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/digest.hpp"
#include "compile/nvrtc.hpp"
#include "compile/places.hpp"

namespace quern::compile {

/// The result of the search, and every candidate that it examined. Immutable once made.
struct Toolkit {
  std::shared_ptr<const Nvrtc> nvrtc;  ///< null: none; `missing` says what to tell the user
  Diagnostic missing;
  std::vector<std::string>
      include_directories;            ///< cuda_fp16.h, cooperative_groups.h; libcu++ and CUB. May be empty
  std::uint32_t headers_version = 0;  ///< CUDA_VERSION of the headers; 0: not known
  base::Digest headers_digest;        ///< identity of the headers: where they are and which release they are
  std::vector<abi::HeaderText> standard_headers;  ///< that libcu++ stands for
  std::vector<Candidate> nvrtc_candidates;
  std::vector<Candidate> header_candidates;
};

/// Walks the table of places: the first NVRTC that opens is used, and the first headers of its major version,
/// those beside it before all others. A library named by QUERN_NVRTC is the only one tried.
Toolkit find_toolkit(const Surroundings& around);

}  // namespace quern::compile
