// SPDX-License-Identifier: Apache-2.0
#include "compile/own_headers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/file.hpp"
#include "compile/options.hpp"
#include "compile/source/cpp_tokens.hpp"
#include "compile/source/device_headers.hpp"
#include "compile/source/directives.hpp"
#include "compile/toolkit/nvrtc_environment.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using std::string_view;

constexpr std::size_t kMaxFiles = 2000;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

Diagnostic not_remote(const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "not-remote";
  diagnostic.message = "cannot be compiled by a server: " + reason;
  return diagnostic;
}

/// True if the text of quern's own header includes the toolkit's headers, by others of quern's too.
bool leads_to_toolkit(string_view name) {
  std::vector<string_view> names{name};
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto header = std::ranges::find(device_headers(), names[i], &base::EmbeddedText::name);
    if (header == device_headers().end()) return true;
    constexpr string_view kInclude = "\n#include <";
    const string_view text = header->text;
    for (std::size_t at = text.find(kInclude); at != string_view::npos; at = text.find(kInclude, at + 1)) {
      const string_view rest = text.substr(at + kInclude.size());
      const string_view next = rest.substr(0, rest.find('>'));
      if (std::ranges::find(names, next) == names.end()) names.push_back(next);
    }
  }
  return false;
}

/// A text that is searched for includes: the source, or a header under its name.
struct Text {
  std::string name;    ///< of the header; empty for the source
  fs::path directory;  ///< where its file lies; empty if it has none
  std::string text;
};

class Collector {
 public:
  Collector(const abi::KernelRequest& request, std::vector<std::string> directories, bool raw_strings)
      : directories_(std::move(directories)),
        raw_strings_(raw_strings),
        source_directory_(fs::path(request.source.file_name).parent_path()) {
    for (const abi::HeaderText& header : request.headers) {
      given_.insert(header.name);
      waiting_.push_back({header.name, {}, header.text});
    }
    waiting_.push_back({"", source_directory_, request.source.text});
  }

  Expected<std::vector<abi::HeaderText>> collect() {
    while (!waiting_.empty()) {
      const Text text = std::move(waiting_.front());
      waiting_.pop_front();
      const Directives directives = read_directives(text.text, raw_strings_);
      if (!directives.unsure.empty()) return not_remote(directives.unsure);
      for (const IncludeName& include : directives.includes)
        if (Expected<void> taken = take(include, text); !taken) return std::move(taken).errors();
      names_files_ = names_files_ || names_files(text.text);
    }
    if (std::string why = difference(); !why.empty()) return not_remote(why);
    return std::move(headers_);
  }

  std::map<std::string, std::string> places() && { return std::move(places_); }
  bool needs_toolkit() const noexcept { return needs_toolkit_; }

 private:
  /// A name that a text asks for, and the file that NVRTC would read here.
  struct Question {
    std::vector<std::string> server_names;  ///< under which a server looks for it, in this order
    std::string file;                       ///< links followed; empty if it is not one of the author's
  };

  Expected<void> take(const IncludeName& include, const Text& from) {
    const fs::path beside = fs::path(from.name).parent_path() / include.name;
    const std::string full = beside.lexically_normal().generic_string();
    if (given_.contains(include.name) || (include.quoted && given_.contains(full))) return {};
    for (const std::string& name : {include.name, full})
      if ((name == include.name || include.quoted) && is_querns(name)) {
        needs_toolkit_ = needs_toolkit_ || leads_to_toolkit(name);
        return {};
      }
    const bool has_place = !from.directory.empty() || from.name.empty();
    Question question;
    if (include.quoted && !from.name.empty()) question.server_names.push_back(full);
    question.server_names.push_back(include.name);
    std::string name = include.name;
    fs::path path;
    if (include.quoted && has_place && is_file(from.directory / include.name)) {
      name = full;
      path = from.directory / include.name;
    }
    for (const std::string& directory : directories_)
      if (path.empty() && is_file(directory / fs::path(include.name)))
        path = directory / fs::path(include.name);
    std::error_code error;
    needs_toolkit_ = needs_toolkit_ || path.empty();
    if (!path.empty()) question.file = fs::weakly_canonical(path, error).string();
    questions_.push_back(question);
    return path.empty() ? Expected<void>() : add(name, path, question.file);
  }

  /// The text could hold names of files as strings.
  static bool names_files(string_view text) {
    return text.find("__FILE__") != string_view::npos || text.find("__builtin_FILE") != string_view::npos ||
           text.find("source_location") != string_view::npos;
  }

  /// Why a server would read other files than NVRTC here, or see them otherwise; empty if it would not.
  std::string difference() const {
    for (const Question& question : questions_) {
      std::string file;
      for (const std::string& name : question.server_names)
        if (const auto found = files_.find(name); file.empty() && found != files_.end()) file = found->second;
      if (file != question.file)
        return fmt::format("\"{}\" would be another file there", question.server_names.back());
    }
    for (const auto& [name, path] : places_)
      if (names_files_ && name != path)
        return fmt::format("{} has another name there, and __FILE__ is used", path);
    return {};
  }

  static bool is_querns(string_view name) {
    return std::ranges::find(device_headers(), name, &base::EmbeddedText::name) != device_headers().end();
  }

  static bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
  }

  Expected<void> add(const std::string& name, const fs::path& path, const std::string& real) {
    const auto [known, fresh] = files_.emplace(name, real);
    if (!fresh) {
      if (known->second == real) return {};
      return not_remote(fmt::format("\"{}\" is {} and {}", name, known->second, real));
    }
    Expected<std::string> text = base::read_regular_file(path, kMaxBytes);
    if (!text) return std::move(text).errors();
    bytes_ += text->size();
    if (files_.size() > kMaxFiles || bytes_ > kMaxBytes) return not_remote("it includes too many files");
    // It is one file here, and would be two there.
    if (!reals_.insert(real).second && text->find("once") != std::string::npos)
      return not_remote(fmt::format("{} has two names, and #pragma once", path.string()));
    places_.emplace(name, path.string());
    headers_.push_back({name, *text});
    waiting_.push_back({name, path.parent_path(), *std::move(text)});
    return {};
  }

  const std::vector<std::string> directories_;
  const bool raw_strings_;
  const fs::path source_directory_;
  std::set<std::string, std::less<>> given_;  // headers that are texts already
  std::deque<Text> waiting_;
  std::map<std::string, std::string> files_;   // name to file, links followed
  std::map<std::string, std::string> places_;  // name to file as it was looked for
  std::set<std::string> reals_;                // the files, links followed
  std::vector<Question> questions_;
  bool names_files_ = false;
  std::vector<abi::HeaderText> headers_;
  std::size_t bytes_ = 0;
  bool needs_toolkit_ = false;
};

/// The options without -I and similar ones.
std::vector<std::string> without_directories(const std::vector<std::string>& options) {
  constexpr string_view kSpellings[] = {"-I", "--include-path", "-include-path"};
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < options.size(); ++i) {
    const string_view option = options[i];
    bool is_directory = option.starts_with("-I");
    for (const string_view spelling : kSpellings) {
      if (option == spelling) ++i;
      if (option == spelling ||
          (option.starts_with(spelling) && option.substr(spelling.size()).starts_with('=')))
        is_directory = true;
    }
    if (!is_directory) kept.emplace_back(option);
  }
  return kept;
}

bool is_below(const std::string& directory, const std::vector<std::string>& roots) {
  std::error_code error;
  const std::string real = fs::weakly_canonical(directory, error).string() + "/";
  return std::ranges::any_of(roots, [&](const std::string& root) {
    return real.starts_with(fs::weakly_canonical(root, error).string() + "/");
  });
}

}  // namespace

Expected<WholeRequest> with_own_headers(const abi::KernelRequest& request,
                                        const std::vector<std::string>& toolkit_directories) {
  Expected<UserOptions> options = read_options(request.options);
  if (!options) return std::move(options).errors();
  if (!options->cacheable || !options->pre_includes.empty()) return not_remote("an option names a file");
  const NvrtcEnvironment environment = nvrtc_environment();
  if (!environment.is_plain()) return not_remote("the environment changes what NVRTC does here");
  std::vector<std::string>& directories = options->include_directories;
  std::erase_if(directories, [&](const std::string& each) { return is_below(each, toolkit_directories); });
  WholeRequest whole{request, {}};
  whole.request.options = without_directories(request.options);
  if (request.source.language != abi::Language::cuda) return whole;
  for (const std::string& macro : options->macros)
    if (const Directives found = read_macro_option(macro); !found.unsure.empty())
      return not_remote(found.unsure);
  Collector collector(request, directories, options->raw_strings);
  Expected<std::vector<abi::HeaderText>> headers = collector.collect();
  if (!headers) return std::move(headers).errors();
  for (abi::HeaderText& header : *headers) whole.request.headers.push_back(std::move(header));
  whole.needs_toolkit = collector.needs_toolkit();
  whole.files = std::move(collector).places();
  return whole;
}

base::Digest digest_of(const abi::KernelRequest& whole) {
  base::DigestBuilder digest;
  digest.add(whole.source.text).add(whole.source.file_name);
  for (const std::vector<std::string>* list : {&whole.options, &whole.name_expressions}) {
    digest.add(std::uint64_t{list->size()});
    for (const std::string& each : *list) digest.add(each);
  }
  digest.add(whole.target.compute).add(whole.target.sm ? std::uint64_t{*whole.target.sm} + 1 : 0);
  digest.add(whole.target.driver_version).add(std::uint64_t{whole.headers.size()});
  for (const abi::HeaderText& header : whole.headers) digest.add(header.name).add(header.text);
  return digest.finish();
}

void rename_files(Diagnostics& diagnostics, const std::map<std::string, std::string>& files) {
  const auto rename = [&](std::string& name) {
    if (const auto found = files.find(name); found != files.end()) name = found->second;
  };
  for (Diagnostic& diagnostic : diagnostics) {
    rename(diagnostic.span.file);
    for (Note& note : diagnostic.notes) rename(note.span.file);
  }
}

void rename_files(abi::PtxImage& image, const std::map<std::string, std::string>& files) {
  rename_files(image.log, files);
  constexpr string_view kMarker = "\n\t.file\t";
  for (std::size_t at = image.ptx.find(kMarker); at != std::string::npos;
       at = image.ptx.find(kMarker, at + 1)) {
    const std::size_t begin = image.ptx.find('"', at) + 1, end = image.ptx.find('"', begin);
    if (begin == 0 || end == std::string::npos) return;
    const auto found = files.find(image.ptx.substr(begin, end - begin));
    if (found != files.end()) image.ptx.replace(begin, end - begin, found->second);
  }
}

}  // namespace quern::compile
