// SPDX-License-Identifier: Apache-2.0
#include "compile/includes.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>
#include <span>

#include "base/file.hpp"
#include "compile/cpp_tokens.hpp"
#include "compile/device_headers.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using std::string_view;

// Beyond these the request is not cached: reading would cost more than it saves.
constexpr std::size_t kMaxFiles = 2000;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

/// Directives that read no file.
constexpr string_view kHarmless[] = {"ifdef", "ifndef", "elifdef", "elifndef", "else",   "endif",
                                     "undef", "line",   "error",   "warning",  "pragma", "ident"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

string_view take_word(string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  const string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

bool is_int128(const CppToken& token) {
  return token.kind == CppToken::Kind::word &&
         (token.text == "__int128" || token.text == "__int128_t" || token.text == "__uint128_t");
}

class Scanner {
 public:
  explicit Scanner(const IncludeSearch& search)
      : search_(search), toolkit_roots_(search.toolkit_directories) {
    for (const std::string& directory : search.user_directories)
      (in_toolkit(directory) ? toolkit_roots_ : directories_).push_back(directory);
  }

  IncludeScan scan(string_view source, const std::string& file_name) {
    main_directory_ = fs::path(file_name).parent_path().string();
    for (const std::string& name : search_.pre_includes) include({name, true}, main_directory_);
    read(source, main_directory_);
    for (const abi::HeaderText& header : search_.headers) read(header.text, main_directory_);
    while (!waiting_.empty() && result_.complete) {
      const std::string path = std::move(waiting_.back());
      waiting_.pop_back();
      file(path);
    }
    if (result_.toolkit) look_for_stand_ins();
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

  void unsure(std::string why) {
    if (result_.complete) result_.unsure = std::move(why);
    result_.complete = false;
  }

  void read(string_view text, const std::string& directory) {
    // Other spellings of # and of a backslash.
    if (text.find("%:") != string_view::npos ||
        text.find("?"
                  "?=") != string_view::npos ||
        text.find("?"
                  "?/") != string_view::npos)
      unsure("it may hold a directive in another spelling");
    for (const CppToken& token : cpp_tokens(text)) {
      result_.int128 = result_.int128 || is_int128(token);
      if (token.kind != CppToken::Kind::directive) continue;
      directive(trim_left(token.text.substr(1)), directory);
    }
  }

  void directive(string_view rest, const std::string& directory) {
    const string_view keyword = take_word(rest);
    if (keyword == "include") return named(header_name(rest), directory);
    if (keyword == "define") result_.int128 = result_.int128 || names_int128(rest);
    if (keyword == "define" || keyword == "if" || keyword == "elif") return conditions(rest, directory);
    const bool is_number = !keyword.empty() && std::isdigit(static_cast<unsigned char>(keyword[0])) != 0;
    const bool is_null = keyword.empty() && trim_left(rest).empty();
    const auto* const harmless = std::ranges::find(kHarmless, keyword);
    if (harmless == std::end(kHarmless) && !is_number && !is_null)
      unsure("only a preprocessor knows what #" + std::string(keyword) + " reads");
  }

  void conditions(string_view text, const std::string& directory) {
    constexpr string_view kHas = "__has_include";
    if (text.find("__has_include_next") != string_view::npos || text.find("__has_embed") != string_view::npos)
      unsure("it asks for a file by __has_include_next or __has_embed");
    for (std::size_t at = text.find(kHas); at != string_view::npos; at = text.find(kHas, at + 1)) {
      string_view rest = trim_left(text.substr(at + kHas.size()));
      if (!rest.starts_with('(')) continue;
      named(header_name(rest.substr(1)), directory);
    }
  }

  void named(const std::optional<HeaderName>& name, const std::string& directory) {
    result_.any = true;
    if (name)
      include(*name, directory);
    else
      unsure("an #include names a macro");
  }

  void include(const HeaderName& name, const std::string& directory) {
    digest_.add(name.text).add(std::uint64_t{name.quoted});
    std::vector<std::string> roots = directories_;
    roots.push_back(main_directory_);
    if (name.quoted) roots.push_back(directory);
    if (fs::path(name.text).is_absolute()) roots = {""};
    for (const std::string& root : roots) {
      const std::string path = root.empty() ? std::string(name.text) : root + "/" + std::string(name.text);
      std::error_code error;
      if (!fs::is_regular_file(path, error)) continue;
      digest_.add(path);
      if (seen_.insert(path).second) waiting_.push_back(path);
    }
    const auto is_it = [&](const abi::HeaderText& header) { return header.name == name.text; };
    result_.toolkit = result_.toolkit || std::ranges::any_of(search_.standard_headers, is_it) ||
                      std::ranges::any_of(toolkit_roots_, [&](const std::string& root) {
                        std::error_code error;
                        return fs::is_regular_file(root + "/" + std::string(name.text), error);
                      });
    const auto own = std::ranges::find(device_headers(), name.text, &base::EmbeddedText::name);
    if (own != device_headers().end()) include_from(*own);
    digest_.add("");  // ends the list of places, which may be empty: "not found" is a fact like any other
  }

  /// quern's own headers, whose texts are known. All that they include is written as `#include <name>`.
  void include_from(const base::EmbeddedText& header) {
    constexpr string_view kInclude = "\n#include <";
    if (!own_.insert(header.name).second) return;
    for (std::size_t at = header.text.find(kInclude); at != string_view::npos;
         at = header.text.find(kInclude, at + 1)) {
      const std::size_t begin = at + kInclude.size();
      include({header.text.substr(begin, header.text.find('>', begin) - begin), false}, main_directory_);
    }
  }

  void file(const std::string& path) {
    Expected<std::string> text = base::read_file(path);
    if (!text) return unsure("cannot read " + path);
    if (seen_.size() > kMaxFiles || (bytes_ += text->size()) > kMaxBytes)
      return unsure("it includes too much to read it each time");
    digest_.add(path).add(*text);
    result_.files.push_back({path, base::sha256(std::as_bytes(std::span(*text)))});
    read(*text, fs::path(path).parent_path().string());
  }

  /// A file of the author's with the name of a header of the toolkit is read in its place where another
  /// header of the toolkit includes that name.
  void look_for_stand_ins() {
    std::vector<std::string> roots = directories_;
    roots.push_back(main_directory_);
    for (const std::string& toolkit : search_.toolkit_directories)
      for (const std::string& root : roots)
        if (const std::string file = stand_in(toolkit, root.empty() ? "." : root); !file.empty())
          return unsure(file + " has the name of a header of the toolkit");
  }

  /// A file below `root` with the name of one below `toolkit`; empty: none.
  static std::string stand_in(const std::string& toolkit, const std::string& root) {
    std::error_code error;
    for (const fs::directory_entry& each : fs::directory_iterator(toolkit, error)) {
      const std::string own = root + "/" + each.path().filename().string();
      std::error_code ignored;
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
  std::size_t bytes_ = 0;
  base::DigestBuilder digest_;
  IncludeScan result_;
};

}  // namespace

bool names_int128(string_view text) {
  const std::vector<CppToken> tokens = cpp_tokens(text);
  return std::any_of(tokens.begin(), tokens.end(), is_int128);
}

IncludeScan scan_includes(string_view source, const std::string& file_name, const IncludeSearch& search) {
  return Scanner(search).scan(source, file_name);
}

}  // namespace quern::compile
