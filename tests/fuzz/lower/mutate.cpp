// SPDX-License-Identifier: Apache-2.0
// Changes to PTX that often leave it valid: whole lines are moved, doubled, dropped and taken from another
// text, and one word takes another's place. Bytes changed at random almost never get past the parser.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace {

using Random = std::minstd_rand;

std::size_t below(Random& random, std::size_t bound) { return bound == 0 ? 0 : random() % bound; }

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

bool word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '%' || c == '_' ||
         c == '$' || c == '.';
}

struct Place {
  std::size_t begin, length;
};

std::vector<Place> words_of(std::string_view line) {
  std::vector<Place> words;
  for (std::size_t i = 0; i < line.size();) {
    std::size_t end = i;
    while (end < line.size() && word_char(line[end])) ++end;
    if (end > i) words.push_back({i, end - i});
    i = end + 1;
  }
  return words;
}

// One word of a line becomes another word of this or another line: mostly a register for a register, a label
// for a label.
void replace_word(std::vector<std::string>& lines, Random& random) {
  std::string& line = lines[below(random, lines.size())];
  const std::string other = lines[below(random, lines.size())];
  const auto targets = words_of(line), sources = words_of(other);
  if (targets.empty() || sources.empty()) return;
  const Place target = targets[below(random, targets.size())],
              source = sources[below(random, sources.size())];
  line.replace(target.begin, target.length, other.substr(source.begin, source.length));
}

void mutate_lines(std::vector<std::string>& lines, Random& random) {
  const std::size_t at = below(random, lines.size()), other = below(random, lines.size());
  switch (below(random, 6)) {
    case 0:
      std::swap(lines[at], lines[other]);
      break;
    case 1:
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), std::string(lines[other]));
      break;
    case 2:
      lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
      break;
    default:
      replace_word(lines, random);
      break;
  }
}

std::size_t store(const std::vector<std::string>& lines, std::uint8_t* out, std::size_t max_size) {
  std::size_t size = 0;
  for (const std::string& line : lines) {
    if (size + line.size() > max_size) break;
    std::memcpy(out + size, line.data(), line.size());
    size += line.size();
  }
  return size;
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Random random(seed + 1);
  auto lines = lines_of({reinterpret_cast<const char*>(data), size});
  if (lines.empty() || below(random, 4) == 0) return LLVMFuzzerMutate(data, size, max_size);
  for (std::size_t count = 1 + below(random, 4); count > 0 && !lines.empty(); --count)
    mutate_lines(lines, random);
  return store(lines, data, max_size);
}

// Some lines of the second text, put into the first.
extern "C" std::size_t LLVMFuzzerCustomCrossOver(const std::uint8_t* first, std::size_t first_size,
                                                 const std::uint8_t* second, std::size_t second_size,
                                                 std::uint8_t* out, std::size_t max_size, unsigned seed) {
  Random random(seed + 1);
  auto lines = lines_of({reinterpret_cast<const char*>(first), first_size});
  const auto others = lines_of({reinterpret_cast<const char*>(second), second_size});
  const std::size_t begin = below(random, others.size());
  const std::size_t count = std::min(others.size() - begin, 1 + below(random, 8));
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(random, lines.size() + 1)),
               others.begin() + static_cast<std::ptrdiff_t>(begin),
               others.begin() + static_cast<std::ptrdiff_t>(begin + count));
  return store(lines, out, max_size);
}
