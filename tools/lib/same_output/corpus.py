# SPDX-License-Identifier: Apache-2.0
"""The Kernel Python of this tree that the front end is compared on."""
import re

from numba_diff import kernels as generated

from .signatures import Kernel, sample_kernels

IMPORTS = "import math\nimport numpy as np\nfrom numba import cuda, float32, float64, int32, int64, uint32\n\n"
GENERATED = generated.PAIRS + 300
# As tests/fuzz/frontend gives them to every parameter.
FUZZ_TYPES = ("float32[::1]", "int32", "float64[:, :]", "Record([('x', float32, 0), ('y', int64, 8, (2,))], 24)[::1]")


def write(directory, name, text):
    path = directory / f"{name}.py"
    path.write_text(text)
    return path


def sections(file):
    """(title, lines before ---, lines after it) of a file of `=== title` sections."""
    for part in re.split(r"^=== ", file.read_text(), flags=re.M)[1:]:
        title, _, rest = part.partition("\n")
        before, _, after = rest.partition("\n---\n")
        yield title, before, after


def wrong_programs(root, directory):
    for number, (title, text, _) in enumerate(sections(root / "tests/unit/frontend/diagnostics.txt")):
        signature = re.match(r"sig: (.*)\n", text)
        text = text[signature.end():] if signature else text
        yield Kernel(f"diagnostics.txt: {title}", write(directory, f"wrong{number}", IMPORTS + text + "\n"),
                     signature=signature[1] if signature else "")


def file_names(root, directory):
    """Kernels that use a name of the file's level."""
    for number, (title, text, answers) in enumerate(sections(root / "tests/unit/frontend/python_files.txt")):
        text = text.partition("\n")[2]
        for answer in answers.split("\n"):
            name, _, kind = answer.partition(" ")
            if not name:
                continue
            value = f"{name}(out[0])" if kind.startswith("adds") else name
            source = f"{text}\n\n@cuda.jit\ndef the_kernel(out):\n    out[0] = {value}\n"
            yield Kernel(f"python_files.txt: {title}: {name}", write(directory, f"file{number}{name}", source), "the_kernel", "(float64[::1],)")


def fuzz_features(root):
    file = root / "tests/fuzz/seeds/frontend/features.py"
    for name, parameters in re.findall(r"^@\w+\.jit.*\n(?:@.*\n)*def (\w+)\(([^)]*)\)", file.read_text(), re.M):
        count = len([part for part in parameters.split(",") if part.strip()])
        for signature in FUZZ_TYPES:
            yield Kernel(f"features.py::{name}", file.relative_to(root), name, f"({(signature + ', ') * count})")


def generated_kernels(directory):
    numba = lambda dtype: generated.NUMBA.get(dtype, dtype)
    for number in range(GENERATED):
        kernel = generated.kernel(number, 1)
        types = ", ".join(f"{numba(dtype)}[{', '.join([':'] * (len(shape) - 1) + ['::1'])}]" for _, dtype, shape in kernel.arguments())
        file = write(directory, f"generated{number}", generated.HEADER + kernel.source)
        yield Kernel(f"numba-diff kernel {number}", file, kernel.name, f"({types})")


def kernels(root, directory):
    yield from sample_kernels(root)
    yield from wrong_programs(root, directory)
    yield from file_names(root, directory)
    yield from fuzz_features(root)
    yield from generated_kernels(directory)
