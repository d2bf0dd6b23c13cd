// SPDX-License-Identifier: Apache-2.0
#include "compile/source/type_text.hpp"

#include <algorithm>
#include <cctype>

namespace quern::compile {
namespace {

using std::string_view;
using Words = std::vector<std::string>;

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

string_view trim(string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

// Words and punctuation; "::" is one token, and a bracketed part is one token with its brackets.
Words split(string_view text) {
  Words words;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    if (std::isspace(static_cast<unsigned char>(text[i])) != 0) {
      ++i;
      continue;
    }
    if (is_word(text[i])) {
      while (i < text.size() && is_word(text[i])) ++i;
    } else if (text.substr(i).starts_with("::")) {
      i += 2;
    } else if (string_view("(<[").find(text[i]) != string_view::npos) {
      for (int depth = 0; i < text.size(); ++i) {
        if (string_view("(<[").find(text[i]) != string_view::npos) ++depth;
        if (string_view(")>]").find(text[i]) != string_view::npos && --depth == 0) break;
      }
      i = std::min(i + 1, text.size());
    } else {
      ++i;
    }
    words.emplace_back(text.substr(begin, i - begin));
  }
  return words;
}

bool is_dropped(const std::string& word) {
  static constexpr string_view kDropped[] = {"__restrict__", "__restrict", "restrict", "__grid_constant__",
                                             "register",     "volatile",   "typename", "struct",
                                             "class",        "enum"};
  return std::find(std::begin(kDropped), std::end(kDropped), word) != std::end(kDropped);
}

bool is_suffix(const std::string& word) {
  return word == "*" || word == "&" || word[0] == '[' || word[0] == '(';
}

std::string spell(string_view type, bool argument);

// Template arguments in the same spelling: "<float const,16>" -> "<const float, 16>".
std::string normal_arguments(string_view list) {
  std::string text = "<";
  for (const string_view argument : split_at_commas(list.substr(1, list.size() - 2))) {
    if (text.size() > 1) text += ", ";
    text += spell(argument, true);
  }
  return text + ">";
}

std::string join(const Words& words);

// "( & )" -> "(&)", "[ 3 ]" -> "[3]", "<float,16>" -> "<float, 16>".
std::string bracket(const std::string& word) {
  if (word.size() < 2) return word;
  if (word[0] == '<' && word.back() == '>') return normal_arguments(word);
  return word[0] + join(split(string_view(word).substr(1, word.size() - 2))) + word.back();
}

std::string join(const Words& words) {
  std::string text;
  for (const std::string& word : words) {
    const bool brackets = string_view("([<").find(word[0]) != string_view::npos;
    const bool glued =
        brackets || word == "*" || word == "&" || word == "::" || word == "," || text.ends_with("::");
    if (!text.empty() && !glued) text += ' ';
    text += brackets ? bracket(word) : word;
  }
  return text;
}

// `unsigned` is `unsigned int`, `long long int` is `long long`.
void name_integer(Words& base) {
  if (base == Words{"unsigned"}) base.push_back("int");
  if (base == Words{"signed"} || base == Words{"signed", "int"}) base = {"int"};
  if (base.size() > 1 && base.back() == "int" && base[base.size() - 2] == "long") base.pop_back();
}

// A parameter's own const does not matter to its caller; a template argument's is part of the type.
std::string spell(string_view type, bool argument) {
  Words words = split(type);
  std::erase_if(words, is_dropped);
  if (!argument)
    while (words.size() > 1 && words.back() == "const") words.pop_back();
  const auto suffix = std::find_if(words.begin(), words.end(), is_suffix);
  const bool is_const = std::find(words.begin(), suffix, "const") != suffix;
  Words base(words.begin(), suffix);
  std::erase(base, "const");
  name_integer(base);
  if (is_const && (argument || suffix != words.end())) base.insert(base.begin(), "const");
  base.insert(base.end(), suffix, words.end());
  return join(base);
}

}  // namespace

std::vector<string_view> split_at_commas(string_view text) {
  std::vector<string_view> parts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (string_view("([{<").find(text[i]) != string_view::npos) ++depth;
    if (string_view(")]}>").find(text[i]) != string_view::npos) --depth;
    if (text[i] != ',' || depth > 0) continue;
    parts.push_back(trim(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  if (const string_view last = trim(text.substr(begin)); !last.empty() || !parts.empty())
    parts.push_back(last);
  return parts;
}

std::string normal_type(string_view type) {
  // Nested brackets use the stack; no handwritten type is longer.
  constexpr std::size_t kMaxLength = 4096;
  return type.size() > kMaxLength ? std::string(type) : spell(type, false);
}

PointerType pointer_type(string_view normal) {
  PointerType result;
  string_view pointee = normal;
  if (normal.ends_with('*') || normal.ends_with('&'))
    pointee.remove_suffix(1);
  else if (normal.ends_with(']') && normal.find('[') != string_view::npos)
    pointee = normal.substr(0, normal.rfind('['));
  else
    return result;
  result.pointer = true;
  if (pointee.starts_with("const ") && !pointee.ends_with('*')) {
    result.read_only = true;
    pointee.remove_prefix(6);
  }
  result.pointee = trim(pointee);
  return result;
}

}  // namespace quern::compile
