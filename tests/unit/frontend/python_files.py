#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes python_files.txt: small files, and the values of their names after CPython has imported them.

  tests/unit/frontend/python_files.py > tests/unit/frontend/python_files.txt

Each file is run by CPython with stand-ins for numba and numpy in the place of those modules, under a __name__ that is not "__main__". Below it
stand lines "NAME number 3", "NAME adds 1" (a function: what it makes of 0), "NAME unbound"; quern gives the same answer to a kernel that uses the
name, or refuses it ("may refuse" above the files whose answer it need not know; the others it has to answer).
"""
import sys
import types

SURE = {}
DOUBT = {}


def sure(title, text, *names):
    SURE[title] = (text, names)


def doubt(title, text, *names):
    DOUBT[title] = (text, names)


F = "    return x + "


def two(head, other, first=1, second=2):
    """A device function in each of two branches."""
    return f"{head}\n    @cuda.jit(device=True)\n    def f(x):\n        return x + {first}\n{other}\n    @cuda.jit(device=True)\n    def f(x):\n        return x + {second}\n"


for title, head in [("True", "if True:"), ("False", "if False:"), ("not False", "if not False:"), ("0", "if 0:"), ("1", "if 1:"), ("None", "if None:"), ("text", "if 'x':"),
                    ("empty text", "if '':"), ("an empty tuple", "if ():"), ("a comparison", "if 2 < 1:"), ("a chain", "if 1 < 2 < 3:"), ("or", "if 0 or 1:"), ("and", "if 1 and 0:"),
                    ("arithmetic", "if 7 % 2 == 0:"), ("equal texts", "if 'a' == 'a':"), ("texts in order", "if 'b' < 'a':"), ("tuples", "if (1, 2) < (1, 3):"),
                    ("a choice", "if (0 if True else 1):"), ("and with what is not known", "if False and open:"), ("or with what is not known", "if True or open('x'):"),
                    ("is None", "if None is None:"), ("__name__", "if __name__ == '__main__':"), ("__name__, the other way", "if '__main__' != __name__:"),
                    ("not __name__", "if not __name__ == '__main__':"), ("a device", "if cuda.is_available():"), ("no device", "if not cuda.is_available():")]:
    sure(f"if {title}", two(head, "else:"), "f")
for title, head in [("Version", "from packaging.version import Version\nimport numba\nif Version(numba.__version__) >= Version('0.51.0'):"),
                    ("an older Version", "from packaging.version import Version\nimport numba\nif Version(numba.__version__) < Version('0.51.0'):"),
                    ("version.parse", "from packaging import version\nimport numba as nb\nif version.parse(nb.__version__) > version.parse('0.40'):"),
                    ("a text's numbers", "import numba\nif tuple(map(int, numba.__version__.split('.')[:2])) >= (0, 51):"),
                    ("a text's numbers, by a loop", "import numba\nif tuple(int(x) for x in numba.__version__.split('.')[:2]) >= (0, 51):"),
                    ("a list of them", "import numba\nif [int(x) for x in numba.__version__.split('.')[:2]] < [0, 51]:"),
                    ("the first number", "import numpy as np\nif int(np.__version__.split('.')[0]) >= 1:"),
                    ("a named version", "import numpy as np\nMAJOR = int(np.__version__.split('.')[0])\nif MAJOR < 1:"),
                    ("the beginning", "import numba\nif numba.__version__.startswith('0.1.'):"),
                    ("typing", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:"), ("typing's attribute", "import typing\nif typing.TYPE_CHECKING:")]:
    sure(f"if by {title}", two(head, "else:"), "f")
sure("elif", two("N = 2\nif N == 1:\n    pass\nelif N == 2:", "else:"), "f", "N")
sure("the third of three", "N = 3\nif N == 1:\n    K = 1\nelif N == 2:\n    K = 2\nelif N == 3:\n    K = 3\nelse:\n    K = 4\n", "K")
sure("if in if", "A = 1\nB = 0\nif A:\n    if B:\n        K = 1\n    else:\n        K = 2\nelse:\n    K = 3\n", "K")
sure("a constant and a block", "N = 7\nif True:\n    N = 9\n", "N")
sure("a dead block", "N = 7\nif False:\n    N = 9\n", "N")
sure("a main block", "N = 7\nif __name__ == '__main__':\n    N = 9\n    def g():\n        pass\n", "N")
sure("augmented", "N = 7\nN += 1\nN *= 3\n", "N")
sure("augmented with a name", "A = 2\nN = 7\nN -= A\nA = 5\n", "N", "A")
sure("an earlier value", "N = 7\nM = N + 1\nN = 9\n", "M", "N")
sure("swapped", "A, B = 1, 2\nA, B = B, A\n", "A", "B")
sure("of itself", "N = 7\nN = N * N\nN = N + 1\n", "N")
sure("two on a line", "N = 1; N = 2; M = N\n", "N", "M")
sure("a chain", "A = B = 4\nB = 5\n", "A", "B")
sure("an annotation", "N: int = 7\nM: int\n", "N")
sure("an empty loop", "N = 7\nfor q in range(0):\n    N = 9\n", "N")
sure("an empty loop with else", "N = 7\nfor q in ():\n    N = 9\nelse:\n    N = 11\n", "N")
sure("a dead while", "N = 7\nwhile False:\n    N = 9\n", "N")
sure("a deleted constant", "N = 7\ndel N\n", "N")
sure("deleted and bound", "N = 7\ndel N\nN = 8\n", "N")
sure("a deleted function", "@cuda.jit(device=True)\ndef f(x):\n    return x + 1\ndel f\n", "f")
sure("a function twice", "@cuda.jit(device=True)\ndef f(x):\n    return x + 1\n@cuda.jit(device=True)\ndef f(x):\n    return x + 2\n", "f")
sure("a function and a number", "@cuda.jit(device=True)\ndef f(x):\n    return x + 1\nf = 5\n", "f")
sure("a number and a function", "f = 5\n@cuda.jit(device=True)\ndef f(x):\n    return x + 1\n", "f")
sure("another name of a function", "@cuda.jit(device=True)\ndef f(x):\n    return x + 1\ng = f\n@cuda.jit(device=True)\ndef f(x):\n    return x + 2\n", "f", "g")
sure("try an import that succeeds", "try:\n    import math\n    N = 1\nexcept ImportError:\n    N = 2\n", "N")
sure("try with else", "try:\n    import math\nexcept ImportError:\n    N = 2\nelse:\n    N = 3\n", "N")
sure("try with finally", "try:\n    N = 1\nfinally:\n    N = 3\n", "N")
sure("try from", two("try:\n    from math import sqrt", "except ImportError:"), "f")
sure("try cuda", two("try:\n    from numba import cuda, float32", "except ImportError:"), "f")
sure("try a name of Python 2", "try:\n    xrange\nexcept NameError:\n    K = 3\nelse:\n    K = 4\n", "K")
sure("try a name of Python 3", "K = 1\ntry:\n    range\nexcept NameError:\n    K = 3\n", "K")
sure("try without what may raise", "try:\n    N = 1 + 1\nexcept Exception:\n    N = 5\n", "N")
sure("a handler that raises", "try:\n    import nothing_of_that_name_here\nexcept ImportError:\n    pass\nN = 4\n", "N")
sure("a with", "import warnings\nN = 7\nwith warnings.catch_warnings():\n    N = 9\n", "N")
sure("a table", "import math\nT = (1, 2, 3)\nN = T[1]\nT = (4, 5, 6)\nM = T[-1]\n", "N", "M")
sure("a list that is not changed", "T = [3, 1, 2]\nU = T + [4]\nN = U[3]\nprint(T, len(T), sum(T))\n", "N")
sure("a number beside a changed list", "N = 3\nT = [N, N]\nT.append(N)\nT[0] = 5\n", "N")
sure("a number that a function is given", "def show(x):\n    print(x)\nN = 3\nshow(N)\n", "N")
sure("a function that sets another name", "N = 3\nM = 1\ndef setup():\n    global M\n    M = 2\nsetup()\n", "N")
sure("a function that is not called", "N = 3\ndef setup():\n    global N\n    N = 2\n", "N")
sure("a function's own name", "N = 3\ndef setup():\n    N = 2\n    return N\nsetup()\n", "N")
sure("called before the constant", "def setup():\n    global N\n    N = 2\nsetup()\nN = 3\n", "N")
sure("a method", "class A:\n    N = 5\n    def run(self):\n        N = 7\nN = 3\nA().run()\n", "N")
sure("math over a constant", "e = 5\nfrom math import *\n", "e")
sure("a constant over math", "from math import *\ne = 5\n", "e")
sure("import as", "import math as m\nN = m.floor(2.5)\nm = 3\n", "N", "m")
sure("a constant after its change", "import math\nP = 2 * 3\nmath.pi = 3.0\n", "P")
sure("a conditional", "D = 0\nN = 3 if D else 4\nD = 1\n", "N")
sure("and, or", "A = 0\nN = A or 5\nM = A and 5\n", "N", "M")
sure("long numbers", "N = 2 ** 70 >> 68\n", "N")
sure("raise in a dead block", "N = 1\nif False:\n    raise RuntimeError\nN = 2\n", "N")
sure("raise in a block that is not known", "import os\nN = 1\nif os.environ.get('NO_SUCH_NAME_HERE'):\n    raise RuntimeError\nN = 2\n", "N")
sure("a main function", "N = 3\ndef main():\n    global N\n    N = 4\nif __name__ == '__main__':\n    main()\n", "N")
sure("strings with names", "N = 3\nprint('N = 4')\ndoc = '''\nN = 5\n'''\n", "N")
sure("f-strings", "N = 3\nprint(f'{N} of {N + 1}')\n", "N")
sure("a line of its own", "N = (1 +\n     2)\nM = N \\\n    + 1\n", "N", "M")

for title, head in [("the environment", "import os\nif os.environ.get('NO_SUCH_NAME_HERE'):"), ("the platform", "import sys\nif sys.platform == 'no such platform':"),
                    ("a call", "def g():\n    return 1\nif g():"), ("Python's version", "import sys\nif sys.version_info >= (3, 0):"),
                    ("hasattr", "import math\nif hasattr(math, 'pi'):"), ("the size of a file", "import os\nif os.path.exists('/'):")]:
    doubt(f"if by {title}", two(head, "else:"), "f")
doubt("one branch by the environment", "import os\nN = 7\nif os.environ.get('NO_SUCH_NAME_HERE'):\n    N = 9\n", "N")
doubt("no else", two("import os\nif os.environ:\n    pass\nelif os.sep == '/':", "else:"), "f")
doubt("a loop", "N = 7\nfor q in range(3):\n    N = q\n", "N", "q")
doubt("a loop that adds", "N = 7\nfor q in (1, 2):\n    N += q\n", "N")
doubt("a while", "N = 7\nwhile N > 3:\n    N -= 1\n", "N")
doubt("a loop with else", "N = 7\nfor q in range(3):\n    pass\nelse:\n    N = 8\n", "N")
doubt("functions of a loop", "for q in range(3):\n    @cuda.jit(device=True)\n    def f(x):\n        return x + 1\n", "f")
doubt("a walrus", "N = 7\nprint(N := 9)\n", "N")
doubt("a walrus in a condition", "N = 7\nif (N := 9) > 3:\n    pass\n", "N")
doubt("a walrus in a comprehension", "N = 7\nL = [N := i for i in range(3)]\n", "N")
doubt("a function that sets it", "N = 7\ndef setup():\n    global N\n    N = 9\nsetup()\n", "N")
doubt("a function that calls it", "N = 7\ndef inner():\n    global N\n    N = 9\ndef setup():\n    inner()\nsetup()\n", "N")
doubt("through another name", "N = 7\ndef setup():\n    global N\n    N = 9\nrun = setup\nN = 8\nrun()\n", "N")
doubt("through a list", "N = 7\ndef setup():\n    global N\n    N = 9\nrun = [setup]\nN = 8\nrun[0]()\n", "N")
doubt("through map", "N = 7\ndef setup(x):\n    global N\n    N = 9 + x\nlist(map(setup, [1]))\n", "N")
doubt("through a decorator", "N = 7\ndef deco(f):\n    global N\n    N = 9\n    return f\n@deco\ndef g():\n    pass\n", "N")
doubt("through a class", "N = 7\nclass A:\n    def __init__(self):\n        global N\n        N = 9\nA()\n", "N")
doubt("through a method", "N = 7\nclass A:\n    def run(self):\n        global N\n        N = 9\na = A()\nN = 8\na.run()\n", "N")
doubt("through a default", "N = 7\ndef setup():\n    global N\n    N = 9\ndef g(x=setup()):\n    pass\n", "N")
doubt("through a lambda", "N = 7\ndef setup():\n    global N\n    N = 9\nrun = lambda: setup()\nN = 8\nrun()\n", "N")
doubt("through an f-string", "N = 7\ndef setup():\n    global N\n    N = 9\nprint(f'{setup()}')\n", "N")
doubt("exec", "N = 7\nexec('N = 9')\n", "N")
doubt("globals", "N = 7\nglobals()['N'] = 9\n", "N")
doubt("globals in a function", "N = 7\ndef setup():\n    globals().update(N=9)\nsetup()\n", "N")
doubt("the module itself", "import sys\nN = 7\nsys.modules[__name__].N = 9\n", "N")
doubt("try what may raise", "try:\n    N = int('x')\nexcept ValueError:\n    N = 5\n", "N")
doubt("try an import that fails", two("try:\n    import nothing_of_that_name_here", "except ImportError:"), "f")
doubt("try, and what came before", "try:\n    N = 1\n    import nothing_of_that_name_here\n    N = 2\nexcept ImportError:\n    pass\n", "N")
doubt("suppress", "from contextlib import suppress\nN = 7\nwith suppress(ImportError):\n    import nothing_of_that_name_here\n    N = 9\n", "N")
doubt("match", "import os\nN = 7\nmatch os.sep:\n    case '/':\n        N = 9\n    case other:\n        N = 10\n", "N")
doubt("a table is changed", "T = [1, 2, 3]\nT[1] = 50\nN = T[1]\n", "N")
doubt("a table is sorted", "T = [3, 1, 2]\nT.sort()\nN = T[0]\n", "N")
doubt("a table grows", "T = [3, 1, 2]\nT.append(4)\nN = len(T)\n", "N")
doubt("a table is emptied", "T = [3, 1, 2]\ndel T[0]\nN = T[0]\n", "N")
doubt("a table is added to", "T = [3, 1, 2]\nT += [4]\nN = len(T)\n", "N")
doubt("a table has another name", "T = [3, 1, 2]\nU = T\nU[0] = 9\nN = T[0]\n", "N")
doubt("a table's row", "T = [[3], [1]]\nU = T[0]\nU[0] = 9\nN = T[0][0]\n", "N")
doubt("a table in a tuple", "T = [3, 1, 2]\nP = (T, 1)\nP[0][0] = 9\nN = T[0]\n", "N")
doubt("a table that is added to by another name", "T = [3]\nU = T\nU += [4]\nN = len(T)\n", "N")
doubt("a table that a function gets", "def g(t):\n    t[0] = 9\nT = [3, 1, 2]\ng(T)\nN = T[0]\n", "N")
doubt("a table that a function knows", "def g():\n    T[0] = 9\nT = [3, 1, 2]\ng()\nN = T[0]\n", "N")
doubt("a table that a function hands on", "def g():\n    return T\nT = [3, 1, 2]\ng()[0] = 9\nN = T[0]\n", "N")
doubt("a table that a function renames", "def g():\n    u = T\n    u[0] = 9\nT = [3, 1, 2]\ng()\nN = T[0]\n", "N")
doubt("a table's method", "T = [3, 1, 2]\nadd = T.append\nadd(4)\nN = len(T)\n", "N")
doubt("a table that random changes", "import random\nrandom.seed(1)\nT = [3, 1, 2]\nrandom.shuffle(T)\nN = T[0]\n", "N")
doubt("a table in a loop", "T = [[3], [1]]\nfor row in T:\n    row.append(2)\nN = len(T[0])\n", "N")
doubt("a loop that changes what it renames", "T = [3]\nU = [1]\nfor q in range(2):\n    U.append(1)\n    U = T\nN = len(T)\n", "N")
doubt("an attribute of math", "import math\nmath.pi = 3\nN = math.pi\n", "N")
doubt("an attribute, by another name", "import math as m\nimport math\nm.pi = 3\nN = math.pi\n", "N")
doubt("an attribute, by setattr", "import math\nsetattr(math, 'pi', 3)\nN = math.pi\n", "N")
doubt("an attribute, before from", "import math\nmath.pi = 3\nfrom math import pi as N\n", "N")
doubt("a deleted name by the environment", "import os\nN = 3\nif not os.environ.get('NO_SUCH_NAME_HERE'):\n    del N\n", "N")


def stand_ins():
    """Replacements for numba and numpy, as far as the files use them."""
    def jit(*args, **options):
        return args[0] if args and callable(args[0]) else lambda f: f
    numba, cuda, numpy = types.ModuleType("numba"), types.ModuleType("numba.cuda"), types.ModuleType("numpy")
    numba.__version__, numpy.__version__ = "0.63.1", "2.3.5"
    numba.float32 = float
    cuda.jit, cuda.is_available, numba.cuda = jit, (lambda: True), cuda
    packaging, version = types.ModuleType("packaging"), types.ModuleType("packaging.version")
    version.Version = version.parse = lambda text: tuple(int(part) for part in text.split("."))
    packaging.version = version
    for module in (numba, cuda, numpy, packaging, version):
        sys.modules[module.__name__] = module


def said(value, missing):
    if value is missing:
        return "unbound"
    if isinstance(value, types.FunctionType):
        return f"adds {value(0)}"
    return f"number {value!r}" if isinstance(value, (int, float)) else "other"


def answers(text, names):
    import importlib
    import io
    import contextlib
    import math
    saved = dict(math.__dict__)
    module = types.ModuleType("snippet")
    sys.modules["snippet"] = module
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "snippet.py", "exec"), module.__dict__)
    math.__dict__.update(saved)
    return [f"{name} {said(module.__dict__.get(name, stand_ins), stand_ins)}" for name in names]


def main():
    stand_ins()
    assert len(SURE) + len(DOUBT) >= 130
    for files, rule in ((SURE, "answers"), (DOUBT, "may refuse")):
        for title, (text, names) in files.items():
            text = "from numba import cuda\n" + text
            print(f"=== {title}\n{rule}")
            print(text + "---")
            for line in answers(text, names):
                print(line)


main()
