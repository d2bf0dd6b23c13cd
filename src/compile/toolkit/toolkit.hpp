// SPDX-License-Identifier: Apache-2.0
// NVRTC and the toolkit's headers, found.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cache/disk_store.hpp"
#include "compile/toolkit/header_tree.hpp"
#include "compile/toolkit/nvrtc.hpp"
#include "compile/toolkit/search_locations.hpp"

namespace quern::compile {

/// Facts about an NVRTC that are known without opening it.
struct NvrtcFacts {
  std::string path;
  int major = 0;
  int minor = 0;
  std::vector<std::uint32_t> architectures;  ///< ascending
  /// Covers the contents of its libraries. Empty if not all of them were found, and what it compiles is not
  /// kept on disk.
  std::string identity;
};

/// The result of the search, and every candidate that it examined. Immutable once made.
struct Toolkit {
  std::optional<NvrtcFacts> facts;  ///< absent if there is none; `missing` is the message for the user
  std::shared_ptr<const Nvrtc>
      nvrtc;  ///< null if it was not opened, since an earlier process found the facts
  Diagnostic missing;
  std::vector<std::string>
      include_directories;            ///< cuda_fp16.h, cooperative_groups.h; libcu++ and CUB. May be empty
  std::uint32_t headers_version = 0;  ///< CUDA_VERSION of the headers; 0 if not known
  std::shared_ptr<HeaderTree> header_tree;        ///< identity of the headers
  std::vector<abi::HeaderText> standard_headers;  ///< that libcu++ stands for
  std::vector<Candidate> nvrtc_candidates;
  std::vector<Candidate> header_candidates;
};

/// Walks the table of locations: the first NVRTC that opens is used, and the first headers of its major
/// version, those beside it before all others. A library named by QUERN_NVRTC is the only one tried. `store`
/// (may be null) is for the identity of the headers.
Toolkit find_toolkit(const SearchInputs& around, cache::DiskStore* store = nullptr);

/// The libraries that make up the NVRTC at `path`: itself and its built-in functions, which lie beside it.
/// Returns nothing if they do not have it, and the loader finds it elsewhere.
std::optional<std::vector<std::string>> nvrtc_libraries(const std::string& path, int major, int minor);

}  // namespace quern::compile
