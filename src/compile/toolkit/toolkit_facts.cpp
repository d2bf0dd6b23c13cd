// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/toolkit_facts.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <set>

#include "base/byte_stream.hpp"
#include "base/log.hpp"
#include "compile/source/source_digest.hpp"
#include "compile/source/watched_file.hpp"

namespace quern::compile {
namespace {

using base::ByteReader;
using base::ByteWriter;

/// True if the program has loaded an NVRTC already: the loader returns it for a bare name.
bool has_loaded_nvrtc() {
  bool found = false;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        const std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
        const std::string_view name = path.substr(path.find_last_of('/') + 1);
        *static_cast<bool*>(to) = *static_cast<bool*>(to) || name.starts_with("libnvrtc.so");
        return 0;
      },
      &found);
  return found;
}

std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  return size > 0 ? std::string(path.data(), static_cast<std::size_t>(size)) : std::string();
}

/// Covers everything that decides which files the search examines.
base::Digest facts_key(const SearchEnvironment& environment) {
  base::DigestBuilder key;
  key.add("toolkit facts").add(source_digest());
  utsname host{};
  ::uname(&host);
  key.add(static_cast<const char*>(host.nodename));  // other hosts may have other files under the same paths
  key.add(environment.size());
  for (const auto& [name, value] : environment) key.add(name).add(value);
  key.add(own_library()).add(own_program());
  return key.finish();
}

/// The files that the loader tries for these names, and the files that it reads to find them. Returns nothing
/// if they are not known.
std::optional<std::vector<std::string>> loader_files(const std::vector<std::string>& names) {
  const auto close = [](void* library) { ::dlclose(library); };
  const std::unique_ptr<void, decltype(close)> self(::dlopen(own_library().c_str(), RTLD_LAZY | RTLD_NOLOAD),
                                                    close);
  Dl_serinfo size{};
  void* const handle = self != nullptr ? self.get() : ::dlopen(nullptr, RTLD_LAZY);
  if (handle == nullptr || ::dlinfo(handle, RTLD_DI_SERINFOSIZE, &size) != 0) return std::nullopt;
  const std::unique_ptr<void, decltype(&std::free)> memory(std::malloc(size.dls_size), &std::free);
  auto* const info = static_cast<Dl_serinfo*>(memory.get());
  if (info == nullptr || ::dlinfo(handle, RTLD_DI_SERINFOSIZE, info) != 0 ||
      ::dlinfo(handle, RTLD_DI_SERINFO, info) != 0)
    return std::nullopt;
  std::vector<std::string> files{"/etc/ld.so.cache"};
  for (unsigned i = 0; i < info->dls_cnt; ++i) {
    const std::string folder = info->dls_serpath[i].dls_name;
    const std::string of_processors = folder + "/glibc-hwcaps";
    for (const std::string& each :
         {folder, of_processors + "/x86-64-v2", of_processors + "/x86-64-v3", of_processors + "/x86-64-v4"})
      for (const std::string& name : names) files.push_back(each + "/" + name);
  }
  return files;
}

/// The files on which the choice of the NVRTC in use depended. Returns nothing if not all of them are known.
std::optional<std::vector<std::string>> files_of_search(const SearchEnvironment& environment,
                                                        const SearchInputs& around, const Toolkit& toolkit) {
  std::vector<std::string> files;
  bool has_loader = false;
  bool has_python = false;
  const std::vector<SearchLocation> rows = search_locations(around);
  for (std::size_t i = 0; i < rows.size() && i < toolkit.nvrtc_candidates.size(); ++i) {
    const SearchLocation& place = rows[i];
    if (place.kind == SearchLocation::Kind::library) files.push_back(place.path);
    has_python = has_python || place.origin == "Python wheel";
    if (place.kind == SearchLocation::Kind::loader && !has_loader) {
      has_loader = true;
      const auto tried = loader_files(around.loader_names);
      if (!tried) return std::nullopt;
      files.insert(files.end(), tried->begin(), tried->end());
    }
    const bool is_used = toolkit.nvrtc_candidates[i].state == Candidate::State::used;
    if (place.kind == SearchLocation::Kind::root)
      for (std::string& file : library_candidates_under(place.path)) {
        const bool is_last = is_used && file == toolkit.nvrtc_candidates[i].path;
        files.push_back(std::move(file));
        if (is_last) break;
      }
    if (is_used) break;
  }
  for (std::string& folder : searched_folders(environment, has_python)) files.push_back(std::move(folder));
  return files;
}

/// All files that the toolkit's facts depended on. Returns nothing if they are not known.
std::optional<std::vector<WatchedFile>> dependencies(const SearchEnvironment& environment,
                                                     const SearchInputs& around, const Toolkit& toolkit) {
  const bool is_beside = !toolkit.header_candidates.empty() &&
                         toolkit.header_candidates.front().origin == "beside NVRTC" &&
                         toolkit.header_candidates.front().state == Candidate::State::used;
  if (!toolkit.facts || toolkit.facts->identity.empty() || !is_beside) return std::nullopt;
  std::optional<std::vector<std::string>> files = files_of_search(environment, around, toolkit);
  const NvrtcFacts& nvrtc = *toolkit.facts;
  const auto libraries = nvrtc_libraries(nvrtc.path, nvrtc.major, nvrtc.minor);
  if (!files || !libraries) return std::nullopt;
  files->insert(files->end(), libraries->begin(), libraries->end());
  for (const std::string& directory : toolkit.include_directories)
    for (const char* file : {"", "/cuda.h", "/cuda_fp16.h", "/cuda/std"}) files->push_back(directory + file);
  std::vector<WatchedFile> watched;
  for (const std::string& file : std::set<std::string>(files->begin(), files->end()))
    watched.push_back(watch(file));
  return watched;
}

void put_watched(ByteWriter& to, const WatchedFile& file) {
  to.text(file.path);
  to.flag(file.state.exists);
  to.number(file.state.inode);
  to.number(file.state.size_bytes);
  to.number(static_cast<std::uint64_t>(file.state.modified_ns));
  to.number(static_cast<std::uint64_t>(file.state.changed_ns));
}

WatchedFile get_watched(ByteReader& from) {
  WatchedFile file;
  file.path = from.text();
  file.state.exists = from.flag();
  file.state.inode = from.number<std::uint64_t>();
  file.state.size_bytes = from.number<std::uint64_t>();
  file.state.modified_ns = static_cast<std::int64_t>(from.number<std::uint64_t>());
  file.state.changed_ns = static_cast<std::int64_t>(from.number<std::uint64_t>());
  return file;
}

std::string facts_bytes(const std::vector<WatchedFile>& watched, const Toolkit& toolkit) {
  ByteWriter to;
  to.count(watched.size());
  for (const WatchedFile& file : watched) put_watched(to, file);
  const NvrtcFacts& nvrtc = *toolkit.facts;
  to.text(nvrtc.path);
  to.number(static_cast<std::uint32_t>(nvrtc.major));
  to.number(static_cast<std::uint32_t>(nvrtc.minor));
  to.count(nvrtc.architectures.size());
  for (const std::uint32_t architecture : nvrtc.architectures) to.number(architecture);
  to.text(nvrtc.identity);
  to.count(toolkit.include_directories.size());
  for (const std::string& directory : toolkit.include_directories) to.text(directory);
  to.number(toolkit.headers_version);
  to.count(toolkit.standard_headers.size());
  for (const abi::HeaderText& header : toolkit.standard_headers) {
    to.text(header.name);
    to.text(header.text);
  }
  return to.take();
}

std::optional<Toolkit> toolkit_of(std::string_view bytes, cache::DiskStore& store) {
  ByteReader from(bytes);
  std::vector<WatchedFile> watched(from.count(41));
  for (WatchedFile& file : watched) file = get_watched(from);
  Toolkit toolkit;
  NvrtcFacts& nvrtc = toolkit.facts.emplace();
  nvrtc.path = from.text();
  nvrtc.major = static_cast<int>(from.number<std::uint32_t>());
  nvrtc.minor = static_cast<int>(from.number<std::uint32_t>());
  nvrtc.architectures.resize(from.count(4));
  for (std::uint32_t& architecture : nvrtc.architectures) architecture = from.number<std::uint32_t>();
  nvrtc.identity = from.text();
  toolkit.include_directories.resize(from.count(8));
  for (std::string& directory : toolkit.include_directories) directory = from.text();
  toolkit.headers_version = from.number<std::uint32_t>();
  toolkit.standard_headers.resize(from.count(16));
  for (abi::HeaderText& header : toolkit.standard_headers) {
    header.name = from.text();
    header.text = from.text();
  }
  if (!from.good() || !from.at_end() || nvrtc.identity.empty() || !is_unchanged(watched)) return std::nullopt;
  toolkit.header_tree = std::make_shared<HeaderTree>(toolkit.include_directories, &store);
  return toolkit;
}

}  // namespace

std::optional<Toolkit> recall_toolkit(cache::DiskStore& store, const SearchEnvironment& environment) {
  if (has_loaded_nvrtc()) return std::nullopt;
  const std::optional<std::string> bytes = store.get(cache::EntryKind::toolkit_facts, facts_key(environment));
  if (!bytes) return std::nullopt;
  return toolkit_of(*bytes, store);
}

void remember_toolkit(cache::DiskStore& store, const SearchEnvironment& environment,
                      const SearchInputs& around, const Toolkit& toolkit) {
  const std::optional<std::vector<WatchedFile>> watched = dependencies(environment, around, toolkit);
  const bool is_settled_all = watched && std::ranges::all_of(*watched, [](const WatchedFile& file) {
                                return is_settled(file.state);
                              });
  if (!is_settled_all) {
    base::log({LogLevel::debug,
               "where NVRTC was found is not kept for later processes: what that depends on is not known, or "
               "was changed a moment ago",
               {}});
    return;
  }
  store.put(cache::EntryKind::toolkit_facts, facts_key(environment), facts_bytes(*watched, toolkit));
}

}  // namespace quern::compile
