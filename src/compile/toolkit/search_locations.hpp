// SPDX-License-Identifier: Apache-2.0
// The locations where NVRTC and the toolkit's headers are searched, as data: one ordered table that the
// search walks and `quern doctor` prints.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace quern::compile {

/// The inputs of the search: the environment and the usual locations in the file system, read once so that
/// tests can set them.
struct SearchInputs {
  std::optional<std::string> nvrtc_file;  ///< QUERN_NVRTC: this library and no other
  std::optional<std::string> cuda_home;   ///< CUDA_HOME
  std::optional<std::string> cuda_path;   ///< CUDA_PATH
  bool hide_toolkit = false;              ///< QUERN_HIDE_TOOLKIT: skip CUDA_HOME, CUDA_PATH and system_roots
  std::vector<std::string> system_roots;  ///< /usr/local/cuda and /usr/local/cuda-*, newest first
  std::vector<std::string> loader_names;  ///< names that the loader's path is asked for
  std::vector<std::string>
      fetched_roots;  ///< toolkits that tools/setup fetched (build tree), or an installation has
  std::vector<std::string> python_roots;  ///< `nvidia/...` directories of wheels in site-packages directories
  friend bool operator==(const SearchInputs&, const SearchInputs&) = default;
};

/// The variables on which the search depends, those that are set.
using SearchEnvironment = std::map<std::string, std::string>;
SearchEnvironment search_environment();

/// The current search environment of the process, with these variables.
SearchInputs surroundings(const SearchEnvironment& environment = search_environment());

/// The same where `library_file` is the library or program that holds quern.
SearchInputs surroundings_of(const SearchEnvironment& environment, const std::string& library_file);

/// One candidate of the search, before it is tried.
struct SearchLocation {
  enum class Kind : std::uint8_t {
    library,  ///< `path` is the library itself
    loader,   ///< `path` is a bare name for the loader
    root,     ///< `path` is a directory with lib and include directories in it
    // Nothing to try; `reason` says why.
    not_set,  ///< the variable is not set
    hidden,   ///< by QUERN_HIDE_TOOLKIT
    absent,
  };
  std::string origin;  ///< "CUDA_HOME", "loader path", ...
  Kind kind = Kind::root;
  std::string path;
  std::string reason;

  bool can_be_tried() const { return kind < Kind::not_set; }
};

/// Every location, in the order in which they are tried.
std::vector<SearchLocation> search_locations(const SearchInputs& around);

/// The library or program that holds quern, as the loader names it; empty if not known.
std::string own_library();
/// The folders whose content surroundings() depends on: of installed toolkits; of the build tree that holds
/// quern; of Python installations.
std::vector<std::string> searched_folders(const SearchEnvironment& environment, bool with_python);

/// The NVRTC libraries that library_under() looks for, in its order.
std::vector<std::string> library_candidates_under(const std::string& root);

/// The first NVRTC library in the usual library directories under `root`; nothing if there is none.
std::optional<std::string> library_under(const std::string& root);

/// The include directory under `root` that holds the kernel headers (cuda_fp16.h), and that of libcu++ and
/// CUB if it is a separate directory. Empty if there is none.
std::vector<std::string> include_directories_under(const std::string& root);

/// CUDA_VERSION as cuda.h in `include_directory` defines it (13000); 0 if it is not known.
std::uint32_t cuda_version_of(const std::string& include_directory);

/// True if `file` lies, links followed, in one of the roots that QUERN_HIDE_TOOLKIT hides.
bool is_hidden(const SearchInputs& around, const std::string& file);

/// The outcome for one candidate: a row of `quern doctor`.
struct Candidate {
  enum class State : std::uint8_t { used, found, not_tried, missing, unusable, not_set, hidden };
  std::string origin;
  std::string path;
  State state = State::missing;
  std::string reason;  ///< why, where the state does not say it all
};
std::string_view to_string(Candidate::State state) noexcept;

}  // namespace quern::compile
