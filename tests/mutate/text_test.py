# SPDX-License-Identifier: Apache-2.0
"""The text of a mutation is found by its function, its row or its marker, in any file. Error messages name the missing part."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/lib"))

import mutation_text  # noqa: E402

A = """// SPDX-License-Identifier: Apache-2.0
#include "a.hpp"
#define QUERN_BRACE {
namespace quern::cpu::emit {
namespace {

enum class Kind : std::uint8_t { one, two };
const Row kRows[] = {
    {Op::add, "a, {b", emit_add, 1},
    {Op::sub, nullptr, emit_sub, 2},
};

template <class T>
T twice(T x) { return x + x; }  // x + x again

}  // namespace

Values::Values(Body& body) : body_(body), limit_{kMost}, state_{1, 2} { begin(7); }

bool Values::operator()(int x) const QUERN_REQUIRES(mutex_) {
  const auto below = [&](int y) { return y < x; };
  return below('}');
}

[[nodiscard]] std::optional<int> Values::find(const std::map<int, int>& in) try {
  return in.at(3);
} catch (const std::out_of_range&) {
  return std::nullopt;
}

void log(const char* text) {
  if (text == nullptr) write("{");
  // mutation: last-line
  write(text, 5);
  write(text, 5);
}

}  // namespace quern::cpu::emit
"""
B = """// SPDX-License-Identifier: Apache-2.0
namespace quern::cpu::lower {
class Reader final : public Base {
 public:
  explicit Reader(int n) : n_(n) {}
  int next() const { return n_ + 1; }

 private:
  int n_ = 0;
};
}  // namespace quern::cpu::lower
extern "C" {
void quern_cpu_yield() { step(1); }
}
namespace quern::cpu::emit {
void log(int number) { write(number); }
}  // namespace quern::cpu::emit
"""


class TextTest(unittest.TestCase):
    def sources(self, **texts):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        root = pathlib.Path(folder.name)
        (root / "src").mkdir()
        self.texts = {f"src/{name}.cpp": text for name, text in texts.items()}
        for name, text in self.texts.items():
            (root / name).write_text(text)
        return mutation_text.Sources(root, "src")

    def found(self, sources, name, at, row=None):
        found = sources.find_one(name, at, row)
        return found.file, self.texts[found.file][found.begin:found.end], self.texts[found.file].count("\n", 0, found.begin) + 1

    def message(self, sources, name, at, row=None):
        with self.assertRaises(mutation_text.NotFound) as caught:
            sources.find_one(name, at, row)
        return str(caught.exception)

    def test_functions_of_every_form(self):
        sources = self.sources(a=A, b=B)
        for name, at, file, text, line in [
                ("emit::twice", "x + x", "a", "x + x", 14),
                ("emit::Values::Values", "kMost", "a", "kMost", 18),
                ("emit::Values::Values", "7", "a", "7", 18),
                ("emit::Values::operator()", "y<x", "a", "y < x", 21),
                ("emit::Values::find", "std::nullopt", "a", "std::nullopt", 28),
                ("emit::log", "text == nullptr", "a", "text == nullptr", 32),
                ("emit::log", "write(«number»", "b", "number", 16),
                ("lower::Reader::Reader", "n_(«n»", "b", "n", 5),
                ("lower::Reader::next", "n_ + «1»", "b", "1", 6),
                ("quern_cpu_yield", "1", "b", "1", 13)]:
            self.assertEqual(self.found(sources, name, at), (f"src/{file}.cpp", text, line), (name, at))

    def test_a_function_may_move_to_another_file(self):
        moved = "namespace quern::cpu::lower {\nint Reader::next() const {\n  return n_ +\n      1;\n}\n}\n"
        sources = self.sources(a=A, c=moved)
        self.assertEqual(self.found(sources, "lower::Reader::next", "return n_ + «1»"), ("src/c.cpp", "1", 4))

    def test_a_row_of_a_table(self):
        sources = self.sources(a=A)
        self.assertEqual(self.found(sources, "emit::kRows", "emit_sub", "Op::sub"), ("src/a.cpp", "emit_sub", 10))
        self.assertEqual(self.message(sources, "emit::kRows", "emit_mul", "Op::mul"), "the table emit::kRows has no row Op::mul")
        self.assertEqual(self.message(sources, "emit::kRows", "emit_mul", "Op::sub"),
                         "emit::kRows, row Op::sub, in src/a.cpp does not have the text: emit_mul")

    def test_a_marker(self):
        sources = self.sources(a=A)
        self.assertEqual(self.found(sources, "mutation: last-line", "5"), ("src/a.cpp", "5", 34))
        self.assertEqual(self.message(sources, "mutation: no-line", "5"), "no comment `// mutation: no-line` in the sources")

    def test_messages(self):
        sources = self.sources(a=A, b=B)
        self.assertEqual(self.message(sources, "emit::log", "write(text, 5)"),
                         "emit::log in src/a.cpp, src/b.cpp has the text 2 times: write(text, 5)")
        self.assertEqual(self.message(sources, "emit::log", "tex"), "emit::log in src/a.cpp, src/b.cpp does not have the text: tex")
        self.assertEqual(self.message(sources, "emit::twice", "return «n_ + 1»"),
                         "emit::twice in src/a.cpp does not have the text: return «n_ + 1»; the text is in lower::Reader::next")
        self.assertEqual(self.message(sources, "emit::Reader::next", "1"), "no function emit::Reader::next; there is lower::Reader::next")
        self.assertEqual(self.message(sources, "emit::log", "a «b» c «d»"), "`at` needs one part between « and »: a «b» c «d»")

    def test_comments_do_not_count_and_words_are_whole(self):
        sources = self.sources(a=A, b=B)
        self.assertEqual(len(sources.find_all("emit::twice", "x + x")), 1)
        self.assertEqual(sources.find_all("lower::Reader::next", "n"), [])


if __name__ == "__main__":
    unittest.main()
