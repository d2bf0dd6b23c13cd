// SPDX-License-Identifier: Apache-2.0
#include "serve/toolkit_identity.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <ctime>
#include <filesystem>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "base/digest.hpp"
#include "base/file.hpp"

namespace quern::serve {
namespace {

namespace fs = std::filesystem;

/// A file that was changed a moment ago could change again within the resolution of its times.
constexpr std::time_t kUnsettled_s = 4;
constexpr unsigned kMostReaders = 8;

struct ToolkitFile {
  std::string name;  // the same on all machines
  fs::path path;
  struct stat info{};
};

/// The regular files below `folder` by their names in it, in order.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (auto at = fs::recursive_directory_iterator(folder, options, error);
       !error && at != fs::recursive_directory_iterator(); at.increment(error))
    if (at->is_regular_file(error)) files.push_back(at->path().lexically_relative(folder));
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<ToolkitFile> toolkit_files(const WorkerHello& hello) {
  std::vector<ToolkitFile> files;
  const auto add = [&](std::string name, fs::path path) {
    files.push_back({std::move(name), std::move(path), {}});
    ::stat(files.back().path.c_str(), &files.back().info);
  };
  const fs::path libraries = fs::path(hello.nvrtc_path).parent_path();
  std::vector<std::string> names;
  std::error_code error;
  for (const fs::directory_entry& each : fs::directory_iterator(libraries, error))
    if (each.path().filename().string().starts_with("libnvrtc") && each.is_regular_file(error))
      names.push_back(each.path().filename().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) add(name, libraries / name);
  for (const std::string& folder : hello.include_directories)
    for (const fs::path& file : files_below(folder)) add(file.string(), folder / file);
  return files;
}

base::Digest digest_of_states(const std::vector<ToolkitFile>& files) {
  base::DigestBuilder digest;
  digest.add("states of a server's toolkit");
  for (const ToolkitFile& file : files) {
    digest.add(file.path.string());
    for (const auto number : {static_cast<std::uint64_t>(file.info.st_dev), std::uint64_t{file.info.st_ino},
                              static_cast<std::uint64_t>(file.info.st_size)})
      digest.add(number);
    for (const timespec& time : {file.info.st_mtim, file.info.st_ctim})
      digest.add(static_cast<std::uint64_t>(time.tv_sec)).add(static_cast<std::uint64_t>(time.tv_nsec));
  }
  return digest.finish();
}

/// The digests of the files' contents; a file with several names is read once, and several at a time.
std::vector<base::Digest> digests_of(const std::vector<ToolkitFile>& files) {
  std::vector<base::Digest> digests(files.size());
  std::map<std::pair<dev_t, ino_t>, std::size_t> first;
  std::vector<std::size_t> once;
  for (std::size_t i = 0; i < files.size(); ++i)
    if (first.emplace(std::pair(files[i].info.st_dev, files[i].info.st_ino), i).second) once.push_back(i);
  std::atomic<std::size_t> next{0};
  const auto read = [&] {
    for (std::size_t at = next++; at < once.size(); at = next++) {
      const Expected<std::string> text = base::read_file(files[once[at]].path);
      const std::string_view bytes = text ? std::string_view(*text) : "unreadable";
      digests[once[at]] = base::sha256(std::as_bytes(std::span(bytes)));
    }
  };
  std::vector<std::thread> readers;
  for (unsigned i = 1; i < std::clamp(std::thread::hardware_concurrency(), 1u, kMostReaders); ++i)
    readers.emplace_back(read);
  read();
  for (std::thread& reader : readers) reader.join();
  for (std::size_t i = 0; i < files.size(); ++i)
    digests[i] = digests[first.at({files[i].info.st_dev, files[i].info.st_ino})];
  return digests;
}

base::Digest digest_of_contents(const std::vector<ToolkitFile>& files) {
  const std::vector<base::Digest> digests = digests_of(files);
  base::DigestBuilder digest;
  digest.add("contents of a server's toolkit");
  for (std::size_t i = 0; i < files.size(); ++i) digest.add(files[i].name).add(digests[i].hex());
  return digest.finish();
}

bool is_settled(const std::vector<ToolkitFile>& files) {
  const std::time_t now = std::time(nullptr);
  return std::ranges::all_of(files, [&](const ToolkitFile& file) {
    return now - std::max(file.info.st_mtim.tv_sec, file.info.st_ctim.tv_sec) > kUnsettled_s;
  });
}

}  // namespace

ToolkitState identify_toolkit(const WorkerHello& hello, cache::DiskStore* store) {
  const std::vector<ToolkitFile> files = toolkit_files(hello);
  const base::Digest states = digest_of_states(files);
  std::string digest;
  if (store != nullptr) digest = store->get(cache::EntryKind::toolkit_facts, states).value_or("");
  if (!remote::digest_named(digest)) {
    digest = digest_of_contents(files).hex();
    // Unless a file was changed while it was read, or could be without a trace.
    if (store != nullptr && is_settled(files) && toolkit_stamp(hello) == states.hex())
      store->put(cache::EntryKind::toolkit_facts, states, digest);
  }
  // Servers of two versions of quern may share a store.
  digest = base::DigestBuilder().add(digest).add(hello.quern).finish().hex();
  return {{hello.nvrtc_version, hello.headers_version, digest, hello.libraries, hello.header_contents,
           hello.quern},
          states.hex()};
}

std::string toolkit_stamp(const WorkerHello& hello) { return digest_of_states(toolkit_files(hello)).hex(); }

}  // namespace quern::serve
