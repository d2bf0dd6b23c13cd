// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/toolkit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "compile/source/virtual_headers.hpp"
#include "compile/toolkit/library_identity.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using State = Candidate::State;

constexpr std::string_view kWhatToDo =
    "run tools/setup in quern's source, or `pip install nvidia-cuda-nvrtc nvidia-cuda-runtime "
    "nvidia-cuda-crt "
    "nvidia-cuda-cccl`, or install a CUDA toolkit (12 or newer) and set CUDA_HOME to it";

Candidate result(Candidate row, State state, std::string reason) {
  row.state = state;
  row.reason = std::move(reason);
  return row;
}

Candidate without_trying(const SearchLocation& location) {
  State state = State::missing;
  if (location.kind == SearchLocation::Kind::not_set) state = State::not_set;
  if (location.kind == SearchLocation::Kind::hidden) state = State::hidden;
  return result({location.origin, location.path, State::missing, ""}, state, location.reason);
}

// Opens the location's library, if it has one. A library that opens becomes `toolkit.nvrtc`.
Candidate try_nvrtc(const SearchInputs& around, const SearchLocation& location, Toolkit& toolkit) {
  if (!location.can_be_tried()) return without_trying(location);
  Candidate row{location.origin, location.path, State::missing, ""};
  if (location.kind == SearchLocation::Kind::root) {
    const std::optional<std::string> file = library_under(location.path);
    if (!file) return result(row, State::missing, "no libnvrtc.so in its library directories");
    row.path = *file;
  }
  if (toolkit.nvrtc && location.kind == SearchLocation::Kind::root)
    return result(row, State::found, "an earlier one is used");
  if (toolkit.nvrtc) return result(row, State::not_tried, "an earlier one is used");
  Expected<std::shared_ptr<const Nvrtc>> opened = Nvrtc::open(row.path);
  // The loader reports in no other way that there is none.
  if (!opened)
    return result(row, location.kind == SearchLocation::Kind::loader ? State::missing : State::unusable,
                  opened.errors().front().message);
  const bool named =
      location.kind == SearchLocation::Kind::library;  // by QUERN_NVRTC, which takes precedence
  if (!named && is_hidden(around, (*opened)->path()))
    return result(row, State::hidden, fmt::format("{} is hidden by QUERN_HIDE_TOOLKIT", (*opened)->path()));
  toolkit.nvrtc = *std::move(opened);
  row.path = toolkit.nvrtc->path();
  return result(row, State::used, fmt::format("NVRTC {}.{}", toolkit.nvrtc->major(), toolkit.nvrtc->minor()));
}

// The directory above the library directory of `library`: its headers would be there.
std::string root_of(const std::string& library) {
  std::error_code error;
  const fs::path real = fs::canonical(library, error);
  return error ? std::string() : real.parent_path().parent_path().string();
}

Candidate try_headers(const SearchLocation& location, Toolkit& toolkit) {
  if (location.kind != SearchLocation::Kind::root) return without_trying(location);
  Candidate row{location.origin, location.path, State::missing, ""};
  const std::vector<std::string> found = include_directories_under(location.path);
  if (found.empty()) return result(row, State::missing, "no cuda_fp16.h in its include directories");
  row.path = found.front();
  if (!toolkit.nvrtc) return result(row, State::found, "there is no NVRTC to use them");
  if (!toolkit.include_directories.empty()) return result(row, State::found, "earlier ones are used");
  const std::uint32_t version = cuda_version_of(found.front());
  const int nvrtc_major = toolkit.nvrtc->major();
  if (version != 0 && static_cast<int>(version / 1000) != nvrtc_major)
    return result(row, State::unusable,
                  fmt::format("headers of CUDA {} do not go with NVRTC {}", version / 1000, nvrtc_major));
  toolkit.include_directories = found;
  toolkit.headers_version = version;
  return result(row, State::used, "");
}

void find_headers(const std::vector<SearchLocation>& rows, cache::DiskStore* store, Toolkit& toolkit) {
  if (toolkit.nvrtc)
    if (const std::string root = root_of(toolkit.nvrtc->path()); !root.empty())
      toolkit.header_candidates.push_back(
          try_headers({"beside NVRTC", SearchLocation::Kind::root, root, ""}, toolkit));
  for (const SearchLocation& location : rows)
    if (location.kind == SearchLocation::Kind::root ||
        (!location.can_be_tried() && location.origin != "QUERN_NVRTC"))
      toolkit.header_candidates.push_back(try_headers(location, toolkit));
  toolkit.header_tree = std::make_shared<HeaderTree>(toolkit.include_directories, store);
  toolkit.standard_headers = standard_headers(toolkit.include_directories);
}

NvrtcFacts facts_of(const Nvrtc& nvrtc) {
  NvrtcFacts facts{nvrtc.path(), nvrtc.major(), nvrtc.minor(), nvrtc.architectures(), ""};
  const auto libraries = nvrtc_libraries(facts.path, facts.major, facts.minor);
  if (!libraries) return facts;
  std::string identity;
  for (const std::string& library : *libraries) {
    const std::optional<std::string> each = library_identity(library);
    if (!each) return facts;
    identity += (identity.empty() ? "" : " ") + *each;
  }
  facts.identity = std::move(identity);
  return facts;
}

Diagnostic missing_nvrtc(const std::vector<Candidate>& candidates) {
  Diagnostic diagnostic;
  diagnostic.code = "nvrtc-missing";
  diagnostic.message = "cannot compile CUDA C++: NVRTC (libnvrtc.so) was not found";
  for (const Candidate& row : candidates) {
    const std::string where = row.path.empty() ? row.origin : fmt::format("{} {}", row.origin, row.path);
    const std::string_view why = row.reason.empty() ? to_string(row.state) : std::string_view(row.reason);
    diagnostic.notes.push_back({{}, fmt::format("looked at {}: {}", where, why)});
  }
  diagnostic.hint = kWhatToDo;
  return diagnostic;
}

}  // namespace

std::optional<std::vector<std::string>> nvrtc_libraries(const std::string& path, int major, int minor) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error) return std::nullopt;
  const fs::path builtins = real.parent_path() / fmt::format("libnvrtc-builtins.so.{}.{}", major, minor);
  if (!fs::exists(builtins, error)) return std::nullopt;
  return std::vector<std::string>{real.string(), builtins.string()};
}

Toolkit find_toolkit(const SearchInputs& around, cache::DiskStore* store) {
  Toolkit toolkit;
  const std::vector<SearchLocation> rows = search_locations(around);
  for (const SearchLocation& location : rows) {
    const bool passed_over =
        around.nvrtc_file && location.kind != SearchLocation::Kind::library && location.can_be_tried();
    toolkit.nvrtc_candidates.push_back(
        passed_over
            ? Candidate{location.origin, location.path, State::not_tried, "QUERN_NVRTC names the one to use"}
            : try_nvrtc(around, location, toolkit));
  }
  if (toolkit.nvrtc) toolkit.facts = facts_of(*toolkit.nvrtc);
  find_headers(rows, store, toolkit);
  if (!toolkit.nvrtc) toolkit.missing = missing_nvrtc(toolkit.nvrtc_candidates);
  return toolkit;
}

}  // namespace quern::compile
