#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers finds violations in small trees made for the test, and this tree has none."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PUBLIC = "// SPDX-License-Identifier: Apache-2.0\n// component: base\n"


def check(files):
    """(status, output) of check_layers over a tree of these files: {path: text}."""
    with tempfile.TemporaryDirectory() as directory:
        for path, text in files.items():
            file = pathlib.Path(directory, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        done = subprocess.run([sys.executable, str(ROOT / "tools/check_layers"), directory], text=True, capture_output=True)
        return done.returncode, done.stdout + done.stderr


class CheckLayers(unittest.TestCase):
    def refused(self, files, message):
        status, output = check(files)
        self.assertEqual(status, 1, output)
        self.assertIn(message, output)

    def accepted(self, files):
        status, output = check(files)
        self.assertEqual(status, 0, output)

    def test_a_component_may_use_the_components_of_its_row(self):
        self.accepted({"src/base/a.hpp": "", "src/ptx/b.hpp": '#include "base/a.hpp"\n#include <vector>\n', "src/cpu/lower/c.cpp": '#include "ptx/b.hpp"\n'})

    def test_every_file_and_folder_is_built(self):
        tree = {"meson.build": "subdir('src/base')\n", "src/base/meson.build": "files('a.cpp',\n 'sub/b.cpp')\n", "src/base/a.cpp": "", "src/base/sub/b.cpp": ""}
        self.accepted(tree)
        self.refused({**tree, "src/base/sub/c.cpp": ""}, "src/base/sub/c.cpp: error: it stands in no meson.build")
        self.refused({**tree, "include/quern/cuda/x.cuh": ""}, "include/quern/cuda/x.cuh: error: it stands in no meson.build")
        self.refused({**tree, "tests/fuzz/new/meson.build": ""}, "tests/fuzz/new: error: it stands in no meson.build")

    def test_a_component_outside_the_row_is_refused_with_file_and_line(self):
        self.refused({"src/launch/a.hpp": "", "src/driver/b.cpp": '// text\n#include "launch/a.hpp"\n'}, "src/driver/b.cpp:2: error: component driver may not use component launch")

    def test_a_folder_with_a_row_of_its_own_is_a_component(self):
        self.refused({"src/frontend/codegen/a.hpp": "", "src/frontend/syntax/b.cpp": '#include "frontend/codegen/a.hpp"\n'},
                     "component frontend/syntax may not use component frontend/codegen")
        self.refused({"src/frontend/syntax/a.hpp": "", "src/compile/b.cpp": '#include "frontend/syntax/a.hpp"\n'}, "component compile may not use component frontend/syntax")
        self.accepted({"src/frontend/syntax/a.hpp": "", "src/frontend/codegen/b.cpp": '#include "frontend/syntax/a.hpp"\n'})
        self.accepted({"src/frontend/translate.hpp": "", "src/compile/b.cpp": '#include "frontend/translate.hpp"\n'})

    def test_session_reaches_the_cpu_device_only_through_the_plug_in(self):
        self.refused({"src/cpu/compiler.hpp": "", "src/session/b.cpp": '#include "cpu/compiler.hpp"\n'}, "may not use component cpu")

    def test_the_compiler_and_the_device_of_the_cpu_meet_in_abi_and_code(self):
        abi = {"src/cpu/abi/a.hpp": "", "src/cpu/ir/i.hpp": "", "src/cpu/engine/e.hpp": ""}
        self.accepted({**abi, "src/cpu/emit/b.cpp": '#include "cpu/abi/a.hpp"\n#include "cpu/ir/i.hpp"\n', "src/cpu/engine/b.cpp": '#include "cpu/abi/a.hpp"\n'})
        self.refused({**abi, "src/cpu/emit/b.cpp": '#include "cpu/engine/e.hpp"\n'}, "component cpu/emit may not use component cpu/engine")
        self.refused({"src/cpu/emit/warp/w.hpp": "", "src/cpu/emit/llvm/b.cpp": '#include "cpu/emit/warp/w.hpp"\n'}, "component cpu/emit/llvm may not use component cpu/emit/warp")
        self.accepted({"src/cpu/emit/llvm/l.hpp": "", "src/cpu/emit/warp/b.cpp": '#include "cpu/emit/llvm/l.hpp"\n'})
        self.refused({**abi, "src/cpu/engine/b.cpp": '#include "cpu/ir/i.hpp"\n'}, "component cpu/engine may not use component cpu/ir")

    def test_a_public_header_belongs_to_the_component_it_names(self):
        files = {"include/quern/error.hpp": PUBLIC, "include/quern/session.hpp": PUBLIC.replace("base", "session") + '#include "quern/error.hpp"\n'}
        self.accepted({**files, "src/launch/a.cpp": '#include "quern/error.hpp"\n'})
        self.refused({**files, "src/launch/a.cpp": '#include "quern/session.hpp"\n'}, "may not use component session")
        self.refused({"include/quern/nameless.hpp": ""}, "must name its component")

    def test_a_public_header_includes_only_public_headers(self):
        self.refused({"src/base/a.hpp": "", "include/quern/b.hpp": PUBLIC + '#include "base/a.hpp"\n'}, "only public headers")

    def test_the_program_uses_only_the_public_headers(self):
        self.refused({"src/base/a.hpp": "", "tools/quern/main.cpp": '#include "base/a.hpp"\n'}, "tools/quern may use only include/quern")
        self.accepted({"include/quern/b.hpp": PUBLIC, "tools/quern/run.hpp": "", "tools/quern/main.cpp": '#include "quern/b.hpp"\n#include "run.hpp"\n'})
        self.accepted({"tools/quern/arrays/a.hpp": "", "tools/quern/main.cpp": '#include "arrays/a.hpp"\n'})
        self.refused({"tools/quern/terminal/t.hpp": "", "tools/quern/arrays/a.cpp": '#include "terminal/t.hpp"\n'}, "tools/quern/arrays may use only include/quern")

    def test_messages_go_through_the_log(self):
        self.refused({"src/ptx/a.cpp": "int x;\nvoid f() { std::fputs(text, stderr); }\n"}, "src/ptx/a.cpp:2: error: stderr is for src/base/log.cpp")
        self.refused({"src/cpu/emit/a.cpp": "void f() { llvm::errs() << 1; }\n"}, "llvm::errs is for")
        self.accepted({"src/base/log.cpp": "std::fputs(text, stderr);", "src/ptx/a.cpp": '// to stderr\n/* or\nstdout */ f("to stdout // ");\n', "tools/quern/a.cpp": "std::fputs(text, stdout);"})

    def test_headers_of_others_stand_only_where_they_may(self):
        self.refused({"src/runtime/a.cpp": "#include <cuda.h>\n"}, "cuda.h may be included only in")
        self.refused({"src/launch/a.cpp": "#include <nvrtc.h>\n"}, "nvrtc.h may be included only in")
        self.refused({"src/cpu/device/a.cpp": "#include <llvm/IR/Module.h>\n"}, "llvm/IR/Module.h may be included only in")
        self.accepted({"src/driver/a.cpp": "#include <cuda.h>\n", "src/compile/a.cpp": "#include <nvrtc.h>\n", "src/cpu/emit/x/a.cpp": "#include <llvm/IR/Module.h>\n"})

    def test_a_quoted_include_must_be_of_this_tree(self):
        self.refused({"src/base/a.cpp": '#include "nowhere.hpp"\n'}, "is no file of this tree")

    def test_this_tree_keeps_the_rule(self):
        done = subprocess.run([sys.executable, str(ROOT / "tools/check_layers")], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout)


if __name__ == "__main__":
    unittest.main()
