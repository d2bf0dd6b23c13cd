# SPDX-License-Identifier: Apache-2.0
"""What tools/gpu-check needs on a machine without compilers, from a build: programs and their libraries, PTX, data, and what the
CPU device computes from that PTX."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tomllib

import cuda_driver
import gpu_compare

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = {"quern": "quern", "contract": "tests/contract/contract", "conformance": "tests/conformance/conformance",
            "forms": "tests/oracle/forms", "differential": "tests/oracle/differential", "launch-overhead": "tests/gpu/launch-overhead",
            "driver-facts": "tests/gpu/driver-facts"}
#: What every Linux has, and must have its own of.
SYSTEM_LIBRARIES = re.compile(r"^(ld-linux|libc\.|libm\.|libdl\.|libpthread\.|librt\.|linux-vdso)")
LIMIT_BYTES = 60 << 20


def program(build, name):
    for path in (build / PROGRAMS[name], build / name):
        if path.exists():
            return path
    raise SystemExit(f"gpu-check: {build / PROGRAMS[name]} is not built; run `ninja -C {build}`")


def compile_ptx(build, source, options, to, quiet=False):
    command = [str(program(build, "quern")), "compile", str(source), "--emit", "ptx", "-o", str(to), *[f"--option={option}" for option in options]]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL if quiet else None)


def prepare_compare(build, folder):
    """PTX of the kernels to compare, and what the CPU device makes of it."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = []
    for row in tomllib.loads((ROOT / "tests/gpu/compare.toml").read_text())["kernel"]:
        source, entry = row["source"].split("::")
        name = source.removeprefix("kernels/").removesuffix(".cu").replace("/", "_") + "_" + entry
        compile_ptx(build, ROOT / source, ["--fmad=false"], folder / f"{name}.ptx")
        cases.append({**row, "name": name, "entry": entry})
    (folder / "cases.json").write_text(json.dumps(cases, indent=1))
    record(folder, cpu_library(build))


def cpu_library(build):
    for path in (build / "src/cpu/device/libcuda.so.1", build / "lib/quern/libcuda.so.1"):
        if path.exists():
            return path
    return None


def record(folder, library):
    """The CPU device's results, by the digest of PTX and data: for machines where the device itself cannot run."""
    if library is None:
        return
    driver = cuda_driver.Driver(library)
    for case in gpu_compare.read_cases(folder):
        ptx = (folder / f"{case['name']}.ptx").read_text()
        data = b"".join(gpu_compare.run(driver, case, ptx))
        (folder / f"{gpu_compare.digest(case, ptx)}.cpu").write_bytes(data)


def recorded(folder, case, ptx):
    """The recorded results of a case, or None."""
    path = folder / f"{gpu_compare.digest(case, ptx)}.cpu"
    if not path.exists():
        return None
    data, results = path.read_bytes(), []
    for argument in case["args"]:
        if "array" in argument:
            size = gpu_compare.struct.calcsize(gpu_compare.FORMATS[argument["array"]]) * argument["count"]
            results.append(data[:size])
            data = data[size:]
    return results


def parameter_names(source):
    """Of each kernel of a .cu file: its parameters' names, in order."""
    names = {}
    for match in re.finditer(r"__global__\s+(?:void\s+)?(?:__launch_bounds__\([^)]*\)\s*)?(?:void\s+)?(\w+)\s*\(([^)]*)\)", source):
        parameters = re.split(r",(?![^<]*>)", match[2])  # not at the commas of quern::array<float, 2>
        names[match[1]] = [re.split(r"[\s*&]+", one.strip())[-1] for one in parameters if one.strip()]
    return names


def copy_samples(build, to):
    """kernels/ with PTX in place of CUDA C++, whose parameters have no names: the cases say #0, #1, ... instead."""
    for case_file in sorted((ROOT / "kernels").rglob("*.case.toml")):
        text = case_file.read_text()
        sources = {match[1] for match in re.finditer(r'^kernel\s*=\s*"([^":]+)::', text, re.M)}
        if not all(source.endswith(".cu") for source in sources):
            continue  # Kernel Python needs NVRTC for the types of each launch
        folder = to / case_file.relative_to(ROOT).parent
        folder.mkdir(parents=True, exist_ok=True)
        table, names = tomllib.loads(text), {}
        for source in sorted(sources):
            path = case_file.parent / source
            names.update(parameter_names(path.read_text()))
            try:
                compile_ptx(build, path, table.get("options", []), folder / source.replace(".cu", ".ptx"), quiet=True)
            except subprocess.CalledProcessError:
                continue  # a sample that must not compile
        (folder / case_file.name).write_text(as_ptx_cases(text, table, names))
        for data in set(re.findall(r"[\w./-]+\.npy", text)):
            place = to / (case_file.parent / data).resolve().relative_to(ROOT)
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(case_file.parent / data, place)


def as_ptx_cases(text, table, names):
    """Cases that expect an error of the compiler, or of the arguments' types, are left out: PTX knows neither."""
    parts = re.split(r"(?=^\[\[case\]\])", text, flags=re.M)
    kept = []
    for part, case in zip(parts[1:], table["case"]):
        if "error" in case:
            continue
        entry = case.get("kernel", table.get("kernel", "")).split("::")[-1]
        for at, name in enumerate(names.get(entry, [])):
            part = re.sub(rf'"{re.escape(name)}"(\s*=\s*\{{)', rf'"#{at}"\1', part)
        kept.append(part)
    head = re.sub(r"^options\s*=.*$", "", parts[0], flags=re.M)
    return re.sub(r'^(kernel\s*=\s*"[^":]+)\.cu::', r"\1.ptx::", head + "".join(kept), flags=re.M)


def copy_programs(build, to):
    (to / "bin").mkdir(parents=True, exist_ok=True)
    (to / "lib").mkdir(exist_ok=True)
    for name in PROGRAMS:
        source = program(build, name)
        strip(source, to / "bin" / name)
        for line in subprocess.run(["ldd", str(source)], check=True, text=True, stdout=subprocess.PIPE).stdout.splitlines():
            match = re.match(r"\s*(\S+) => (/\S+)", line)
            if match and not SYSTEM_LIBRARIES.match(match[1]):
                strip(pathlib.Path(match[2]).resolve(), to / "lib" / match[1])
    library = cpu_library(build)
    if library is not None:
        (to / "lib/quern").mkdir(exist_ok=True)
        strip(library, to / "lib/quern/libcuda.so.1")


def strip(source, to):
    if shutil.which("strip") is None or subprocess.run(["strip", "-o", str(to), str(source)], check=False).returncode:
        shutil.copy(source, to)
    to.chmod(0o755)


def size_of(folder):
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def commit():
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    return done.stdout.strip() or "unknown"


def make_bundle(build, to):
    if to.exists() and any(to.iterdir()):
        raise SystemExit(f"gpu-check: {to} is not empty")
    copy_programs(build, to)
    copy_samples(build, to)
    prepare_compare(build, to / "compare")
    shutil.copy(ROOT / "tools/gpu-check", to / "gpu-check")
    for name in ("tools/lib/cuda_driver.py", "tools/lib/driver_facts.py", "tools/lib/gpu_compare.py", "tools/lib/gpu_bundle.py",
                 "tests/gpu/boundaries.toml", "tests/gpu/conformance.toml", "tests/gpu/deviations.toml", "tests/golden/gpu/nvidia-h200/driver-facts.tsv"):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, to / name)
    (to / "manifest.json").write_text(json.dumps({"commit": commit()}))
    size = size_of(to)
    if size > LIMIT_BYTES:
        raise SystemExit(f"gpu-check: the bundle has {size >> 20} MiB, and the limit is {LIMIT_BYTES >> 20}")
    print(f"{to}: {size / (1 << 20):.1f} MiB; on the machine with the GPU: {to.name}/gpu-check --results gpu-results.md --golden golden")


def environment(folder):
    """For the programs of a bundle: their libraries lie beside them."""
    found = dict(os.environ)
    if (folder / "manifest.json").exists():
        found["LD_LIBRARY_PATH"] = ":".join([str(folder / "lib"), found.get("LD_LIBRARY_PATH", "")]).rstrip(":")
    return found
