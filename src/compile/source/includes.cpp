// SPDX-License-Identifier: Apache-2.0
#include "compile/source/includes.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "base/file.hpp"
#include "compile/source/device_headers.hpp"
#include "compile/source/directives.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using std::string_view;

// Beyond these the request is not cached: reading would cost more than it saves.
constexpr std::size_t kMaxFiles = 2000;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

class Scanner {
 public:
  explicit Scanner(const IncludeSearch& search)
      : search_(search), toolkit_roots_(search.toolkit_directories) {
    for (const std::string& directory : search.user_directories)
      (in_toolkit(directory) ? toolkit_roots_ : directories_).push_back(directory);
  }

  IncludeScan scan(string_view source, const std::string& file_name) {
    main_directory_ = fs::path(file_name).parent_path().string();
    watch_folder();
    for (const std::string& macro : search_.macros)
      if (std::string why = read_macro_option(macro).unsure; !why.empty()) unsure(std::move(why));
    for (const std::string& name : search_.pre_includes) include({name, true}, main_directory_);
    read(source, main_directory_);
    for (const abi::HeaderText& header : search_.headers) read(header.text, main_directory_);
    while (!waiting_.empty() && result_.complete) {
      const std::string path = std::move(waiting_.back());
      waiting_.pop_back();
      file(path);
    }
    if (result_.toolkit) look_for_stand_ins();
    if (!result_.files.empty() || !result_.complete) result_.folder.reset();
    result_.digest = digest_.finish();
    return result_;
  }

 private:
  bool in_toolkit(const std::string& directory) const {
    std::error_code error;
    const std::string real = fs::weakly_canonical(directory, error).string();
    return std::any_of(search_.toolkit_directories.begin(), search_.toolkit_directories.end(),
                       [&](const std::string& known) {
                         return (real + "/").starts_with(fs::weakly_canonical(known, error).string() + "/");
                       });
  }

  /// Later names decide whether the search depends on this folder alone.
  void watch_folder() {
    if (!directories_.empty() || !search_.pre_includes.empty()) return;
    result_.folder = watch(main_directory_.empty() ? "." : main_directory_);
    if (!result_.folder->state.exists || !is_settled(result_.folder->state)) result_.folder.reset();
  }

  /// The state of a folder says which names it has, and nothing of what stands below or above it.
  void note_name(const fs::path& name) {
    std::error_code ignored;
    const fs::path first = name.empty() ? name : *name.begin();
    const bool is_below = !name.is_absolute() && first != ".." && first != ".";
    if (!is_below || fs::exists(fs::symlink_status(main_directory_ / first, ignored))) result_.folder.reset();
  }

  void unsure(std::string why) {
    if (result_.complete) result_.unsure = std::move(why);
    result_.complete = false;
  }

  void read(string_view text, const std::string& directory) {
    const Directives directives = read_directives(text, search_.raw_strings);
    if (!directives.unsure.empty()) unsure(directives.unsure);
    result_.int128 = result_.int128 || directives.int128;
    for (const IncludeName& each : directives.includes) include(each, directory);
  }

  void include(const IncludeName& name, const std::string& directory) {
    result_.any = true;
    note_name(name.name);
    digest_.add(name.name).add(std::uint64_t{name.quoted});
    std::vector<std::string> roots = directories_;
    roots.push_back(main_directory_);
    if (name.quoted) roots.push_back(directory);
    if (fs::path(name.name).is_absolute()) roots = {""};
    for (const std::string& root : roots) {
      const std::string path = root.empty() ? name.name : root + "/" + name.name;
      std::error_code error;
      const fs::file_status status = fs::status(path, error);
      if (fs::exists(status) && !fs::is_regular_file(status) && !fs::is_directory(status))
        result_.special = path;
      if (!fs::is_regular_file(status)) continue;
      digest_.add(path);
      if (seen_.insert(path).second) waiting_.push_back(path);
    }
    const auto is_it = [&](const abi::HeaderText& header) { return header.name == name.name; };
    result_.toolkit = result_.toolkit || std::ranges::any_of(search_.standard_headers, is_it) ||
                      std::ranges::any_of(toolkit_roots_, [&](const std::string& root) {
                        std::error_code error;
                        return fs::is_regular_file(root + "/" + name.name, error);
                      });
    const auto own = std::ranges::find(device_headers(), name.name, &base::EmbeddedText::name);
    if (own != device_headers().end()) include_from(*own);
    digest_.add("");  // ends the list of locations, which may be empty if nothing was found
  }

  /// quern's own headers, whose texts are known. All that they include is written as `#include <name>`.
  void include_from(const base::EmbeddedText& header) {
    constexpr string_view kInclude = "\n#include <";
    if (!own_.insert(header.name).second) return;
    for (std::size_t at = header.text.find(kInclude); at != string_view::npos;
         at = header.text.find(kInclude, at + 1)) {
      const std::size_t begin = at + kInclude.size();
      include({std::string(header.text.substr(begin, header.text.find('>', begin) - begin)), false},
              main_directory_);
    }
  }

  void file(const std::string& path) {
    Expected<std::string> text = base::read_regular_file(path, kMaxBytes);
    if (!text) return unsure("cannot read " + path);
    if (seen_.size() > kMaxFiles || (bytes_ += text->size()) > kMaxBytes)
      return unsure("it includes too much to read it each time");
    digest_.add(path).add(*text).add(number_of_file(path));
    result_.files.push_back({path, base::sha256(std::as_bytes(std::span(*text)))});
    read(*text, fs::path(path).parent_path().string());
  }

  /// Equal for two names of one file, of which `#pragma once` reads the first alone.
  std::uint64_t number_of_file(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) unsure("cannot read " + path);
    return numbers_.try_emplace({status.st_dev, status.st_ino}, numbers_.size()).first->second;
  }

  /// A file of the author's with the name of a header of the toolkit is read instead of it if another
  /// header of the toolkit includes that name.
  void look_for_stand_ins() {
    std::vector<std::string> roots = directories_;
    roots.push_back(main_directory_);
    for (const std::string& toolkit : search_.toolkit_directories)
      for (const std::string& root : roots)
        if (const std::string file = stand_in(toolkit, root.empty() ? "." : root); !file.empty())
          return unsure(file + " has the name of a header of the toolkit");
  }

  /// A file below `root` with the same name as one below `toolkit`; empty if there is none.
  std::string stand_in(const std::string& toolkit, const std::string& root) {
    std::error_code error;
    for (const fs::directory_entry& each : fs::directory_iterator(toolkit, error)) {
      const std::string own = root + "/" + each.path().filename().string();
      std::error_code ignored;
      if (!fs::exists(fs::symlink_status(own, ignored))) continue;
      result_.folder.reset();
      const fs::file_status status = fs::status(own, ignored);
      if (!fs::exists(status)) continue;
      if (!each.is_directory(ignored)) return own;
      if (!fs::is_directory(status)) continue;
      if (std::string below = stand_in(each.path().string(), own); !below.empty()) return below;
    }
    return {};
  }

  const IncludeSearch& search_;
  std::vector<std::string> toolkit_roots_;
  std::vector<std::string> directories_;
  std::string main_directory_;
  std::vector<std::string> waiting_;
  std::set<std::string> seen_;
  std::set<string_view> own_;
  std::map<std::pair<dev_t, ino_t>, std::uint64_t> numbers_;
  std::size_t bytes_ = 0;
  base::DigestBuilder digest_;
  IncludeScan result_;
};

}  // namespace

IncludeScan scan_includes(string_view source, const std::string& file_name, const IncludeSearch& search) {
  return Scanner(search).scan(source, file_name);
}

}  // namespace quern::compile
