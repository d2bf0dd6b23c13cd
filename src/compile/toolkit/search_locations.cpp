// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/search_locations.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/env.hpp"
#include "base/file.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLibraryDirectories[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
constexpr const char* kLibraryNames[] = {"libnvrtc.so", "libnvrtc.so.13", "libnvrtc.so.12"};
constexpr const char* kIncludeDirectories[] = {"include", "targets/x86_64-linux/include"};
// Directories below each prefix into which pip installs, and the directories that the wheels create there
// (CUDA 13's, then CUDA 12's layout).
constexpr const char* kSitePatterns[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages"};
constexpr const char* kWheelDirectories[] = {"nvidia/cu13", "nvidia/cuda_nvrtc", "nvidia/cuda_runtime"};

struct PythonPrefix {
  const char* variable;  // its value begins the pattern; null if there is none
  const char* rest;
};
constexpr PythonPrefix kPythonPrefixes[] = {
    {"VIRTUAL_ENV", ""},           {"CONDA_PREFIX", ""},    {"HOME", "/.local"},
    {"PYENV_ROOT", "/versions/*"}, {nullptr, "/usr/local"}, {nullptr, "/usr"},
};

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string real_path(const std::string& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(path, error);
  return error ? path : real.string();
}

std::vector<std::string> matches(const std::string& pattern) {
  struct Found : glob_t {
    Found() : glob_t{} {}
    ~Found() { ::globfree(this); }
  } found;
  if (::glob(pattern.c_str(), 0, nullptr, &found) != 0) return {};
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

std::vector<std::string> system_toolkits() {
  std::vector<std::string> roots = matches("/usr/local/cuda");
  std::vector<std::string> versioned = matches("/usr/local/cuda-*");
  // Newest first: "cuda-12.9" sorts before "cuda-13.0" as text; "cuda-9" is too old to matter.
  std::reverse(versioned.begin(), versioned.end());
  roots.insert(roots.end(), versioned.begin(), versioned.end());
  return roots;
}

std::optional<std::string> value_of(const SearchEnvironment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::nullopt : std::optional(found->second);
}

/// Folders below which Python's packages lie; they may hold a star.
std::vector<std::string> python_prefixes(const SearchEnvironment& environment) {
  std::vector<std::string> prefixes;
  for (const PythonPrefix& prefix : kPythonPrefixes) {
    const std::optional<std::string> start =
        prefix.variable != nullptr ? value_of(environment, prefix.variable) : std::optional<std::string>("");
    if (start) prefixes.push_back(*start + prefix.rest);
  }
  return prefixes;
}

/// The folders of Python packages above `library`: those of the installation that it is part of.
std::vector<std::string> own_site_packages(const fs::path& library) {
  std::vector<std::string> sites;
  for (fs::path folder = library.parent_path(); folder.has_relative_path(); folder = folder.parent_path())
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages")
      sites.push_back(folder.string());
  return sites;
}

std::vector<std::string> wheel_roots(const SearchEnvironment& environment, const fs::path& library) {
  std::vector<std::string> roots;
  for (const std::string& site : own_site_packages(library))
    for (const char* wheel : kWheelDirectories)
      if (std::string root = fmt::format("{}/{}", site, wheel); exists(root))
        roots.push_back(std::move(root));
  for (const std::string& prefix : python_prefixes(environment))
    for (const char* site : kSitePatterns)
      for (const char* wheel : kWheelDirectories)
        for (std::string& root : matches(fmt::format("{}/{}/{}", prefix, site, wheel)))
          if (std::find(roots.begin(), roots.end(), root) == roots.end()) roots.push_back(std::move(root));
  return roots;
}

// The library or program that holds this function; empty if it is not known.
fs::path this_library() {
  const std::string path = own_library();
  return path.empty() ? path : real_path(path);
}

constexpr const char* kMarker = "quern-source-root";

// In a build tree, the toolkit that tools/setup fetched into the source tree. The build's top folder holds a
// file with the source tree's path, so that no installed library has it; a file of another owner is ignored.
std::optional<std::string> fetched_for_the_build(const fs::path& library) {
  struct stat own{}, marker{};
  if (::stat(library.c_str(), &own) != 0) return std::nullopt;
  for (fs::path folder = library.parent_path(); folder.has_relative_path(); folder = folder.parent_path()) {
    const fs::path file = folder / kMarker;
    if (::stat(file.c_str(), &marker) != 0) continue;
    const Expected<std::string> root = base::read_file(file);
    if (!root || marker.st_uid != own.st_uid) return std::nullopt;
    return root->substr(0, root->find('\n')) + "/.quern/cuda";
  }
  return std::nullopt;
}

void add_variable(std::vector<SearchLocation>& rows, const char* name,
                  const std::optional<std::string>& value, bool hidden) {
  if (!value)
    rows.push_back({name, SearchLocation::Kind::not_set, "", ""});
  else if (hidden)
    rows.push_back({name, SearchLocation::Kind::hidden, *value, "hidden by QUERN_HIDE_TOOLKIT"});
  else
    rows.push_back({name, SearchLocation::Kind::root, *value, ""});
}

void add_all(std::vector<SearchLocation>& rows, const char* origin, SearchLocation::Kind kind,
             const std::vector<std::string>& paths) {
  for (const std::string& path : paths) rows.push_back({origin, kind, path, ""});
}

}  // namespace

SearchEnvironment search_environment() {
  SearchEnvironment environment;
  const auto add = [&](const char* name) {
    if (std::optional<std::string> value = base::env(name)) environment.emplace(name, *std::move(value));
  };
  for (const char* name : {"QUERN_NVRTC", "CUDA_HOME", "CUDA_PATH", "LD_LIBRARY_PATH"}) add(name);
  for (const PythonPrefix& prefix : kPythonPrefixes)
    if (prefix.variable != nullptr) add(prefix.variable);
  if (base::env_switch("QUERN_HIDE_TOOLKIT", &base::warn_of_env).value_or(false))
    environment.emplace("QUERN_HIDE_TOOLKIT", "1");
  return environment;
}

SearchInputs surroundings(const SearchEnvironment& environment) {
  return surroundings_of(environment, this_library().string());
}

SearchInputs surroundings_of(const SearchEnvironment& environment, const std::string& library_file) {
  SearchInputs around;
  around.nvrtc_file = value_of(environment, "QUERN_NVRTC");
  around.cuda_home = value_of(environment, "CUDA_HOME");
  around.cuda_path = value_of(environment, "CUDA_PATH");
  around.hide_toolkit = environment.contains("QUERN_HIDE_TOOLKIT");
  around.system_roots = system_toolkits();
  around.loader_names.assign(std::begin(kLibraryNames), std::end(kLibraryNames));
  const fs::path library = library_file;
  if (std::optional<std::string> fetched = fetched_for_the_build(library))
    around.fetched_roots.push_back(*std::move(fetched));
  if (!library.empty()) around.fetched_roots.push_back((library.parent_path() / "quern" / "cuda").string());
  around.python_roots = wheel_roots(environment, library);
  return around;
}

std::vector<SearchLocation> search_locations(const SearchInputs& around) {
  std::vector<SearchLocation> rows;
  if (around.nvrtc_file)
    rows.push_back({"QUERN_NVRTC", SearchLocation::Kind::library, *around.nvrtc_file, ""});
  else
    rows.push_back({"QUERN_NVRTC", SearchLocation::Kind::not_set, "", ""});
  add_variable(rows, "CUDA_HOME", around.cuda_home, around.hide_toolkit);
  add_variable(rows, "CUDA_PATH", around.cuda_path, around.hide_toolkit);
  if (around.hide_toolkit)
    for (const std::string& root : around.system_roots)
      rows.push_back({"system toolkit", SearchLocation::Kind::hidden, root, "hidden by QUERN_HIDE_TOOLKIT"});
  else if (around.system_roots.empty())
    rows.push_back({"system toolkit", SearchLocation::Kind::absent, "/usr/local/cuda*", "no such directory"});
  else
    add_all(rows, "system toolkit", SearchLocation::Kind::root, around.system_roots);
  add_all(rows, "loader path", SearchLocation::Kind::loader, around.loader_names);
  add_all(rows, "fetched by tools/setup", SearchLocation::Kind::root, around.fetched_roots);
  if (around.python_roots.empty())
    rows.push_back(
        {"Python wheel", SearchLocation::Kind::absent, "nvidia/cu13", "not in any site-packages directory"});
  else
    add_all(rows, "Python wheel", SearchLocation::Kind::root, around.python_roots);
  return rows;
}

std::string own_library() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_library), &info) == 0 || info.dli_fname == nullptr)
    return {};
  return info.dli_fname;
}

std::vector<std::string> searched_folders(const SearchEnvironment& environment, bool with_python) {
  std::vector<std::string> folders{"/usr/local"};
  for (fs::path folder = this_library().parent_path(); folder.has_relative_path();
       folder = folder.parent_path())
    folders.push_back((folder / kMarker).string());
  if (!with_python) return folders;
  for (const std::string& site : own_site_packages(this_library()))
    for (const std::string& folder : {site, site + "/nvidia"}) folders.push_back(folder);
  for (const std::string& prefix : python_prefixes(environment)) {
    for (std::string& folder : matches(prefix + "/lib")) folders.push_back(std::move(folder));
    for (const char* site : kSitePatterns) {
      const std::string pattern = fmt::format("{}/{}", prefix, site);
      // The folder in which the pattern's star stands, and those that it stands for.
      folders.push_back(pattern.substr(0, pattern.find_last_of('/', pattern.find('*'))));
      for (const std::string& packages : matches(pattern)) {
        folders.push_back(packages);
        folders.push_back(packages + "/nvidia");
      }
    }
  }
  return folders;
}

std::vector<std::string> library_candidates_under(const std::string& root) {
  std::vector<std::string> files;
  for (const char* directory : kLibraryDirectories)
    for (const char* name : kLibraryNames) files.push_back(fmt::format("{}/{}/{}", root, directory, name));
  return files;
}

std::optional<std::string> library_under(const std::string& root) {
  for (std::string& file : library_candidates_under(root))
    if (exists(file)) return std::move(file);
  return std::nullopt;
}

std::vector<std::string> include_directories_under(const std::string& root) {
  for (const char* directory : kIncludeDirectories) {
    const std::string include = root + "/" + directory;
    if (!exists(include + "/cuda_fp16.h")) continue;
    std::vector<std::string> found{include};
    for (const std::string& libraries : {include + "/cccl", root + "/../cuda_cccl/include"})
      if (exists(libraries + "/cuda/std")) found.push_back(libraries);
    return found;
  }
  return {};
}

std::uint32_t cuda_version_of(const std::string& include_directory) {
  const Expected<std::string> text = base::read_file(include_directory + "/cuda.h");
  if (!text) return 0;
  constexpr std::string_view kDefine = "#define CUDA_VERSION ";
  const std::size_t at = text->find(kDefine);
  if (at == std::string::npos) return 0;
  std::uint32_t version = 0;
  std::from_chars(text->data() + at + kDefine.size(), text->data() + text->size(), version);
  return version;
}

bool is_hidden(const SearchInputs& around, const std::string& file) {
  if (!around.hide_toolkit) return false;
  const std::string real = real_path(file);
  std::vector<std::string> roots = around.system_roots;
  for (const std::optional<std::string>& root : {around.cuda_home, around.cuda_path})
    if (root) roots.push_back(*root);
  return std::any_of(roots.begin(), roots.end(), [&](const std::string& root) {
    const std::string prefix = real_path(root) + "/";
    return real.compare(0, prefix.size(), prefix) == 0;
  });
}

std::string_view to_string(Candidate::State state) noexcept {
  switch (state) {
    case Candidate::State::used:
      return "used";
    case Candidate::State::found:
      return "found";
    case Candidate::State::not_tried:
      return "not tried";
    case Candidate::State::missing:
      return "missing";
    case Candidate::State::unusable:
      return "unusable";
    case Candidate::State::not_set:
      return "not set";
    case Candidate::State::hidden:
      return "hidden";
  }
  return "missing";
}

}  // namespace quern::compile
