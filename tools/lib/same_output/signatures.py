# SPDX-License-Identifier: Apache-2.0
"""The argument types that the samples' cases give to their Kernel Python kernels."""
import ast
import dataclasses
import re
import tomllib

DEFAULT_DTYPE = {"zeros": "float64", "ones": "float64", "empty": "float64", "full": "float64", "arange": "int64", "linspace": "float64",
                 "random": "float64"}
NPY_TYPES = {"b1": "boolean", "i1": "int8", "i2": "int16", "i4": "int32", "i8": "int64", "u1": "uint8", "u2": "uint16", "u4": "uint32",
             "u8": "uint64", "f2": "float16", "f4": "float32", "f8": "float64", "c8": "complex64", "c16": "complex128"}

# The decorator of a kernel whose first argument has no name: a type or a list of them.
OWN_TYPES = re.compile(r"^@\w+\.jit\((?!\w+ *=|\))(?!.*device=True).*\ndef (\w+)", re.M)


@dataclasses.dataclass
class Kernel:
    """A Kernel Python kernel to translate, for one list of types."""
    title: str
    file: object
    name: str = ""
    signature: str = ""
    options: tuple = ()


def npy_header(path):
    data = path.read_bytes()
    start, width = (10, 2) if data[6] == 1 else (12, 4)
    length = int.from_bytes(data[8:8 + width], "little")
    return ast.literal_eval(data[start:start + length].decode("latin1").strip())


def field_size(descr, shape):
    count = 1
    for extent in shape:
        count *= extent
    return count * int(descr[2:])


def record_type(fields):
    """NumPy's list of fields as Kernel Python's Record; unnamed fields are padding."""
    offset, parts = 0, []
    for name, descr, *shape in fields:
        shape = shape[0] if shape else ()
        if name:
            parts.append(f"('{name}', {NPY_TYPES[descr[1:]]}, {offset}" + (f", {shape}" if shape else "") + ")")
        offset += field_size(descr, shape)
    return f"Record([{', '.join(parts)}], {offset})"


def array_type(element, ndim, fortran):
    if ndim == 0:
        return element if element.startswith("Record") else f"Array({element}, 0, 'C')"
    axes = [":"] * ndim
    axes[0 if fortran else -1] = "::1"
    return f"{element}[{', '.join(axes)}]"


def npy_type(path, by_value=False):
    header = npy_header(path)
    descr = header["descr"]
    element = record_type(descr) if isinstance(descr, list) else NPY_TYPES[descr[1:]]
    return element if by_value else array_type(element, len(header["shape"]), header["fortran_order"])


def call_type(call):
    """zeros(400, int64), arange(1, 5, dtype=int32), float32(2)."""
    name = call.func.id
    words = [word for word in call.args if isinstance(word, ast.Name)]
    words += [keyword.value for keyword in call.keywords if keyword.arg == "dtype"]
    dtype = words[0].id if words else DEFAULT_DTYPE.get(name)
    dtype = "boolean" if dtype == "bool" else dtype
    if name not in DEFAULT_DTYPE:
        return name
    shaped = name not in ("arange", "linspace") and isinstance(call.args[0], ast.Tuple)
    return array_type(dtype, len(call.args[0].elts) if shaped else 1, False)


def argument_type(text, folder):
    """The type of an argument of a case; an error for a form that no sample uses so far."""
    if re.fullmatch(r"[\w./]+\.npy", text):
        return npy_type(folder / text)
    if match := re.fullmatch(r"value\(([\w./]+)\)", text):
        return npy_type(folder / match[1], by_value=True)
    tree = ast.parse(text, mode="eval").body
    if isinstance(tree, ast.Call):
        return call_type(tree)
    return {int: "int64", float: "float64", bool: "boolean"}[type(ast.literal_eval(tree))]


def case_kernels(file, root):
    document = tomllib.loads(file.read_text())
    for case in document["case"]:
        source, _, name = case.get("kernel", document.get("kernel", "")).partition("::")
        if not source.endswith(".py"):
            continue
        path = (file.parent / source).relative_to(root)
        types = [argument_type(text, file.parent) for text in case.get("args", document.get("args", []))]
        options = tuple(f"--bind={key}={value}" for key, value in case.get("bind", {}).items())
        yield Kernel(str(path) + (f"::{name}" if name else ""), path, name, f"({', '.join(types)}{',' if types else ''})", options)


def sample_kernels(root):
    """Each kernel and list of types once: those of the cases, and the decorators' own."""
    found = {}
    for file in sorted((root / "kernels").rglob("*.case.toml")):
        for kernel in case_kernels(file, root):
            found[kernel.file, kernel.name, kernel.signature, kernel.options] = kernel
    for file in sorted((root / "kernels").glob("*/*.py")):
        for name in OWN_TYPES.findall(file.read_text()):
            kernel = Kernel(f"{file.relative_to(root)}::{name}", file.relative_to(root), name)
            found[kernel.file, name, "", ()] = kernel
    return list(found.values())
