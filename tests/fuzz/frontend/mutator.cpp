// SPDX-License-Identifier: Apache-2.0
// Mutations that know Python's grammar: they exchange lines for other statements, expressions for others,
// names for other names. libFuzzer's own mutations, which work on bytes, take every third turn.
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

constexpr std::string_view kNames[] = {"a", "b", "i",    "j",     "n",   "x",    "s",    "t",
                                       "f", "g", "self", "range", "len", "cuda", "math", "np"};
constexpr std::string_view kBinary[] = {
    "+", "-",  "*",  "/",  "//", "%",   "**", "&",  "|",      "^",      "<<", ">>",
    "<", "<=", "==", "!=", "in", "and", "or", "is", "is not", "not in", "@"};
constexpr std::string_view kUnary[] = {"-", "+", "~", "not "};
constexpr std::string_view kLiterals[] = {"0",
                                          "1",
                                          "-1",
                                          "2",
                                          "0.5",
                                          "1e308",
                                          "1j",
                                          "True",
                                          "None",
                                          "'x'",
                                          "(1, 2)",
                                          "()",
                                          "...",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "18446744073709551615",
                                          "0x7fffffff",
                                          "f'{x}'"};
constexpr std::string_view kCalls[] = {"cuda.grid(1)",
                                       "cuda.grid(2)",
                                       "cuda.threadIdx.x",
                                       "cuda.blockDim",
                                       "cuda.shared.array((4, 5), float32)",
                                       "cuda.shared.array(0, int32)",
                                       "cuda.local.array(n, float32)",
                                       "cuda.const.array_like(T)",
                                       "cuda.atomic.add(a, 0, 1)",
                                       "cuda.atomic.cas(a, (0, 0), 1, 2)",
                                       "cuda.shfl_sync(1, i, 2)",
                                       "cuda.syncthreads()",
                                       "cuda.float32x4(1, 2, 3, 4)",
                                       "cuda.cg.this_grid()",
                                       "cuda.fp16.hadd(x, 1)",
                                       "cuda.libdevice.sincos(x)",
                                       "math.sqrt(x)",
                                       "math.frexp(x)",
                                       "math.isclose(x, 1, rel_tol=n)",
                                       "math.prod((1, x))",
                                       "np.where(x, i, n)",
                                       "np.maximum(x, n)",
                                       "np.float16(x)",
                                       "np.iinfo(np.int32).max",
                                       "min(x, n, 3)",
                                       "divmod(x, n)",
                                       "round(x, 2)",
                                       "complex(x, n)",
                                       "abs(x)",
                                       "print(x, 'y', n)",
                                       "f(x)",
                                       "f(y=1, x=2)",
                                       "g(f(1))",
                                       "(lambda q: q + x)(n)",
                                       "r.x",
                                       "r['y']",
                                       "a.shape",
                                       "a.T",
                                       "a[1:n, ::-1]",
                                       "a[..., 0]",
                                       "len(a)",
                                       "enumerate(a)",
                                       "zip(a, (1, 2))",
                                       "range(n, 0, -1)",
                                       "range(0)",
                                       "roc.get_global_id(0)",
                                       "t[0]",
                                       "x.real"};

class Writer {
 public:
  explicit Writer(unsigned seed) : random_(seed) {}

  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }
  template <std::size_t N>
  std::string pick(const std::string_view (&all)[N]) {
    return std::string(all[below(N)]);
  }

  std::string expression(int depth) {
    switch (below(depth > 0 ? 9 : 3)) {
      case 0:
        return pick(kNames);
      case 1:
        return pick(kLiterals);
      case 2:
        return pick(kCalls);
      case 3:
        return pick(kUnary) + expression(depth - 1);
      case 4:
        return expression(depth - 1) + " if " + expression(depth - 1) + " else " + expression(depth - 1);
      case 5:
        return pick(kNames) + "[" + expression(depth - 1) +
               (below(3) == 0 ? ", " + expression(depth - 1) : "") + "]";
      case 6:
        return "(" + expression(depth - 1) + ", " + expression(depth - 1) + ")";
      case 7:
        return expression(depth - 1) + " < " + expression(depth - 1) + " <= " + expression(depth - 1);
      default:
        return "(" + expression(depth - 1) + " " + pick(kBinary) + " " + expression(depth - 1) + ")";
    }
  }

  std::string target() {
    switch (below(5)) {
      case 0:
        return pick(kNames) + "[" + expression(1) + "]";
      case 1:
        return pick(kNames) + ", " + pick(kNames);
      case 2:
        return pick(kNames) + ".x";
      default:
        return pick(kNames);
    }
  }

  /// One statement, its lines indented.
  std::string statement(const std::string& indent, int depth) {
    const std::string more = indent + "    ";
    const auto block = [&] { return statement(more, depth - 1); };
    switch (below(depth > 0 ? 16 : 8)) {
      case 0:
      case 1:
        return indent + target() + " = " + expression(2) + "\n";
      case 2:
        return indent + target() + " " + pick(kBinary) + "= " + expression(2) + "\n";
      case 3:
        return indent + expression(2) + "\n";
      case 4:
        return indent + "return" + (below(2) ? " " + expression(1) : "") + "\n";
      case 5:
        return indent + (below(2) ? "break\n" : "continue\n");
      case 6:
        return indent + "assert " + expression(1) + ", 'm'\n";
      case 7:
        return indent + "raise ValueError(" + expression(0) + ")\n";
      case 8:
        return indent + "if " + expression(2) + ":\n" + block() +
               (below(2) ? indent + "else:\n" + block() : "");
      case 9:
        return indent + "while " + expression(1) + ":\n" + block();
      case 10:
      case 11:
        return indent + "for " + target() + " in range(" + expression(1) + "):\n" + block() +
               (below(4) == 0 ? indent + "else:\n" + block() : "");
      case 12:
        return indent + "for " + target() + " in " + expression(1) + ":\n" + block();
      case 13:
        return indent + "def " + pick(kNames) + "(x, y=2):\n" + block() + more + "return " + expression(1) +
               "\n";
      case 14:
        return indent + pick(kNames) + " = lambda x: " + expression(2) + "\n";
      default:
        return block() + statement(indent, depth - 1);
    }
  }

 private:
  std::minstd_rand random_;
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1);
    lines.push_back(text.substr(at, end - at + 1));
    at = end + 1;
  }
  return lines;
}

std::string indent_of(const std::string& line) {
  return line.substr(0, std::min(line.find_first_not_of(' '), line.size()));
}

/// Exchanges a word of the line for another name or expression.
void exchange_word(Writer& writer, std::string& line) {
  std::vector<std::pair<std::size_t, std::size_t>> words;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const auto is_word = [&](std::size_t k) {
      return k < line.size() && (std::isalnum(static_cast<unsigned char>(line[k])) || line[k] == '_');
    };
    if (!is_word(i) || (i > 0 && is_word(i - 1))) continue;
    std::size_t end = i;
    while (is_word(end)) ++end;
    words.emplace_back(i, end);
  }
  if (words.empty()) return;
  const auto [begin, end] = words[writer.below(words.size())];
  line.replace(begin, end - begin, writer.below(2) ? writer.expression(1) : writer.pick(kNames));
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  Writer writer(seed);
  if (size == 0 || writer.below(3) == 0) return LLVMFuzzerMutate(data, size, max_size);
  std::vector<std::string> lines = lines_of(std::string(reinterpret_cast<const char*>(data), size));
  const std::size_t at = writer.below(lines.size());
  const auto place = lines.begin() + static_cast<std::ptrdiff_t>(at);
  switch (writer.below(6)) {
    case 0:
      lines.insert(place, writer.statement(indent_of(lines[at]), 3));
      break;
    case 1:
      lines[at] = writer.statement(indent_of(lines[at]), 3);
      break;
    case 2:
      std::swap(lines[at], lines[writer.below(lines.size())]);
      break;
    case 3:
      lines.erase(place);
      break;
    case 4:
      lines.insert(place, lines[writer.below(lines.size())]);
      break;
    default:
      exchange_word(writer, lines[at]);
  }
  std::string text;
  for (const std::string& line : lines) text += line;
  const std::size_t length = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), length);
  return length;
}
