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
#include "compile/cpp_tokens.hpp"
#include "compile/device_headers.hpp"
#include "compile/options.hpp"

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

struct Include {
  std::string name;
  bool quoted = false;
};

/// The names that a text could include; nothing if only a preprocessor can tell.
std::optional<std::vector<Include>> includes_of(string_view text) {
  std::vector<Include> found;
  for (const CppToken& token : cpp_tokens(text)) {
    if (token.kind != CppToken::Kind::directive) continue;
    string_view rest = trim_left(token.text.substr(1));
    const std::size_t end = rest.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    const string_view keyword = rest.substr(0, end);
    rest = end == string_view::npos ? string_view() : rest.substr(end);
    if (keyword == "include_next" || keyword == "embed" || keyword == "import") return std::nullopt;
    if (keyword == "include") {
      const std::optional<HeaderName> name = header_name(rest);
      if (!name) return std::nullopt;
      found.push_back({std::string(name->text), name->quoted});
    }
    if (keyword != "if" && keyword != "elif") continue;
    constexpr string_view kHas = "__has_include";
    for (std::size_t at = rest.find(kHas); at != string_view::npos; at = rest.find(kHas, at + 1)) {
      const string_view operand = trim_left(rest.substr(at + kHas.size()));
      if (!operand.starts_with('(')) continue;
      const std::optional<HeaderName> name = header_name(operand.substr(1));
      if (!name) return std::nullopt;
      found.push_back({std::string(name->text), name->quoted});
    }
  }
  return found;
}

/// A text that is searched for includes: the source, or a header under its name.
struct Text {
  std::string name;    ///< of the header; empty: the source
  fs::path directory;  ///< where its file lies; empty: it has none
  std::string text;
};

class Collector {
 public:
  Collector(const abi::KernelRequest& request, std::vector<std::string> directories)
      : directories_(std::move(directories)),
        source_directory_(fs::path(request.source.file_name).parent_path()) {
    for (const abi::HeaderText& header : request.headers) {
      given_.insert(header.name);
      waiting_.push_back({header.name, {}, header.text});
    }
    waiting_.push_back({"", source_directory_, request.source.text});
    for (const base::EmbeddedText& header : device_headers()) given_.insert(std::string(header.name));
  }

  Expected<std::vector<abi::HeaderText>> collect() {
    while (!waiting_.empty()) {
      const Text text = std::move(waiting_.front());
      waiting_.pop_front();
      const auto includes = includes_of(text.text);
      if (!includes) return not_remote("only a preprocessor can tell what it includes");
      for (const Include& include : *includes)
        if (Expected<void> taken = take(include, text); !taken) return std::move(taken).errors();
    }
    return std::move(headers_);
  }

  std::map<std::string, std::string> places() && { return std::move(places_); }

 private:
  Expected<void> take(const Include& include, const Text& from) {
    const fs::path beside = fs::path(from.name).parent_path() / include.name;
    const std::string full = beside.lexically_normal().generic_string();
    if (given_.contains(include.name) || (include.quoted && given_.contains(full))) return {};
    const bool has_place = !from.directory.empty() || from.name.empty();
    if (include.quoted && has_place && is_file(from.directory / include.name))
      return add(full, from.directory / include.name);
    for (const std::string& directory : directories_)
      if (is_file(directory / fs::path(include.name)))
        return add(include.name, directory / fs::path(include.name));
    if (is_file(source_directory_ / include.name)) return add(include.name, source_directory_ / include.name);
    return {};
  }

  static bool is_file(const fs::path& path) {
    std::error_code error;
    return fs::is_regular_file(path, error);
  }

  Expected<void> add(const std::string& name, const fs::path& path) {
    std::error_code error;
    const std::string real = fs::weakly_canonical(path, error).string();
    const auto [known, fresh] = files_.emplace(name, real);
    if (!fresh) {
      if (known->second == real) return {};
      return not_remote(fmt::format("\"{}\" is {} and {}", name, known->second, real));
    }
    Expected<std::string> text = base::read_file(path);
    if (!text) return std::move(text).errors();
    bytes_ += text->size();
    if (files_.size() > kMaxFiles || bytes_ > kMaxBytes) return not_remote("it includes too many files");
    places_.emplace(name, path.string());
    headers_.push_back({name, *text});
    waiting_.push_back({name, path.parent_path(), *std::move(text)});
    return {};
  }

  const std::vector<std::string> directories_;
  const fs::path source_directory_;
  std::set<std::string, std::less<>> given_;  // headers that are texts already
  std::deque<Text> waiting_;
  std::map<std::string, std::string> files_;   // name to file, links followed
  std::map<std::string, std::string> places_;  // name to file as it was looked for
  std::vector<abi::HeaderText> headers_;
  std::size_t bytes_ = 0;
};

/// The options without -I and its like.
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
  std::vector<std::string>& directories = options->include_directories;
  std::erase_if(directories, [&](const std::string& each) { return is_below(each, toolkit_directories); });
  WholeRequest whole{request, {}};
  whole.request.options = without_directories(request.options);
  if (request.source.language != abi::Language::cuda) return whole;
  Collector collector(request, directories);
  Expected<std::vector<abi::HeaderText>> headers = collector.collect();
  if (!headers) return std::move(headers).errors();
  for (abi::HeaderText& header : *headers) whole.request.headers.push_back(std::move(header));
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
