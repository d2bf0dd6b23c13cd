// SPDX-License-Identifier: Apache-2.0
#include "compile/includes.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <optional>
#include <set>

#include "base/file.hpp"
#include "compile/cpp_tokens.hpp"

namespace quern::compile {
namespace {

namespace fs = std::filesystem;
using std::string_view;

// Beyond these the request is not cached: reading would cost more than it saves.
constexpr std::size_t kMaxFiles = 2000;
constexpr std::size_t kMaxBytes = std::size_t{64} << 20;

string_view trim_left(string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

string_view take_word(string_view& text) {
  std::size_t end = 0;
  while (end < text.size() && is_word(text[end])) ++end;
  const string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

struct Name {
  string_view text;
  bool quoted = false;
};

// `<x>` or `"x"` at the start of `text`.
std::optional<Name> header_name(string_view text) {
  text = trim_left(text);
  if (text.empty() || (text[0] != '<' && text[0] != '"')) return std::nullopt;
  const std::size_t end = text.find(text[0] == '<' ? '>' : '"', 1);
  if (end == string_view::npos) return std::nullopt;
  return Name{text.substr(1, end - 1), text[0] == '"'};
}

bool is_int128(const CppToken& token) {
  return token.kind == CppToken::Kind::word &&
         (token.text == "__int128" || token.text == "__int128_t" || token.text == "__uint128_t");
}

class Scanner {
 public:
  explicit Scanner(const IncludeSearch& search) : search_(search) {
    for (const std::string& directory : search.user_directories)
      if (!in_toolkit(directory)) directories_.push_back(directory);
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

  void read(string_view text, const std::string& directory) {
    for (const CppToken& token : cpp_tokens(text)) {
      result_.int128 = result_.int128 || is_int128(token);
      if (token.kind != CppToken::Kind::directive) continue;
      string_view rest = trim_left(token.text.substr(1));
      const string_view keyword = take_word(rest);
      if (keyword == "define")
        result_.int128 = result_.int128 || names_int128(rest);
      else if (keyword == "include")
        named(header_name(rest), directory);
      else if (keyword == "include_next" || keyword == "embed" || keyword == "import")
        result_.complete = false;
      else if (keyword == "if" || keyword == "elif")
        conditions(rest, directory);
    }
  }

  void conditions(string_view text, const std::string& directory) {
    constexpr string_view kHas = "__has_include";
    for (std::size_t at = text.find(kHas); at != string_view::npos; at = text.find(kHas, at + 1)) {
      string_view rest = trim_left(text.substr(at + kHas.size()));
      if (!rest.starts_with('(')) continue;
      named(header_name(rest.substr(1)), directory);
    }
  }

  void named(const std::optional<Name>& name, const std::string& directory) {
    if (name)
      include(*name, directory);
    else
      result_.complete = false;  // a macro's value
  }

  void include(const Name& name, const std::string& directory) {
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
    digest_.add("");  // ends the list of places, which may be empty: "not found" is a fact like any other
  }

  void file(const std::string& path) {
    Expected<std::string> text = base::read_file(path);
    if (!text || seen_.size() > kMaxFiles || (bytes_ += text->size()) > kMaxBytes) {
      result_.complete = false;
      return;
    }
    digest_.add(path).add(*text);
    read(*text, fs::path(path).parent_path().string());
  }

  const IncludeSearch& search_;
  std::vector<std::string> directories_;
  std::string main_directory_;
  std::vector<std::string> waiting_;
  std::set<std::string> seen_;
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
