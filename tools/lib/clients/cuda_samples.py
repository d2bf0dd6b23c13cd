# SPDX-License-Identifier: Apache-2.0
"""The programs of NVIDIA's cuda-samples that use the driver API, or NVRTC and the driver API. Each checks its own numbers."""
import shutil

from .case import Case
from .job import Unavailable

TITLE = "cuda-samples 13.0"
LANDMARK = "Common/nvrtc_helper.h"
# The folder, and the kernels that become a file beside the program.
DRIVER = {
    "0_Introduction/matrixMulDrv": "matrixMul_kernel64.fatbin",
    "0_Introduction/matrixMulDynlinkJIT": None,
    "0_Introduction/simpleDrvRuntime": "vectorAdd_kernel64.fatbin",
    "0_Introduction/simpleTextureDrv": "simpleTexture_kernel64.fatbin",
    "0_Introduction/vectorAddDrv": "vectorAdd_kernel64.fatbin",
    "0_Introduction/vectorAddMMAP": "vectorAdd_kernel64.fatbin",
    "1_Utilities/deviceQueryDrv": None,
    "2_Concepts_and_Techniques/threadMigration": "threadMigration_kernel64.fatbin",
    "3_CUDA_Features/memMapIPCDrv": "memMapIpc_kernel64.ptx",
}
NVRTC = ("0_Introduction/clock_nvrtc", "0_Introduction/matrixMul_nvrtc", "0_Introduction/simpleAssert_nvrtc",
         "0_Introduction/simpleAtomicIntrinsics_nvrtc", "0_Introduction/vectorAdd_nvrtc", "2_Concepts_and_Techniques/inlinePTX_nvrtc",
         "5_Domain_Specific/BlackScholes_nvrtc", "5_Domain_Specific/binomialOptions_nvrtc",
         "5_Domain_Specific/quasirandomGenerator_nvrtc")
EXTRA = {"3_CUDA_Features/memMapIPCDrv": ["COMMON/helper_multiprocess.cpp"]}
# The samples ask NVRTC for machine code of a GPU. They take PTX as well.
PTX_INSTEAD = ("-DnvrtcGetCUBIN=nvrtcGetPTX", "-DnvrtcGetCUBINSize=nvrtcGetPTXSize")
WAIVED = 2  # EXIT_WAIVED of the samples


def build(job, folder, include):
    """None, or why the sample was not built. The program's name is `sample`."""
    source = job.source / "Samples" / job_name(folder)
    for each in source.iterdir():
        if each.is_file():
            shutil.copy(each, folder)
    toolkit = include.parent
    if kernels := DRIVER.get(job_name(folder)):
        nvcc = toolkit / "bin" / "nvcc"
        if not nvcc.exists():
            raise Unavailable(f"it needs nvcc, and there is no {nvcc}")
        kind = kernels.rpartition(".")[2]
        command = [nvcc, f"-{kind}", "-o", kernels, *([] if kind == "ptx" else ["-gencode", "arch=compute_75,code=compute_75"]),
                   f"-I{job.source}/Common", kernels.replace("64." + kind, ".cu")]
        if (ended := job.run(command, folder / "kernels.log", folder, on_device=False)).status:
            return f"nvcc ended with {ended.status}"
    for source in folder.glob("*.c"):
        ended = job.run(["gcc", "-std=gnu11", "-O1", "-w", f"-I{job.source}/Common", f"-I{include}", "-c", source.name], folder / "c.log", folder,
                        on_device=False)
        if ended.status:
            return f"the compiler ended with {ended.status}"
    sources = sorted(each.name for each in folder.iterdir() if each.suffix in (".cpp", ".o")) + EXTRA.get(job_name(folder), [])
    sources = [source.replace("COMMON", f"{job.source}/Common") for source in sources]
    command = ["g++", "-std=c++17", "-O1", "-fpermissive", "-w", *PTX_INSTEAD, f"-I{job.source}/Common", f"-I{include}", *sources, "-o", "sample",
               f"-L{job.libcuda}", f"-L{toolkit}/lib64", "-lcuda", "-lnvrtc", "-ldl", "-lpthread", "-lrt"]
    if "simpleDrvRuntime" in folder.name:
        command.append("-lcudart")  # also in the samples' own build
    ended = job.run(command, folder / "build.log", folder, on_device=False)
    return f"the compiler ended with {ended.status}" if ended.status else None


def show_headers(folder, include):
    """Puts the toolkit's headers beside the program: NVRTC searches where a sample finds cooperative_groups.h."""
    for where in (include, include / "cccl"):
        for each in where.iterdir() if where.is_dir() else ():
            if not (folder / each.name).exists():
                (folder / each.name).symlink_to(each)


def job_name(folder):
    return folder.name.replace("+", "/")


def cases(job):
    include, root = job.toolkit_include(), job.work("results")

    def run(name):
        folder = root / name.replace("/", "+")
        folder.mkdir()
        if problem := build(job, folder, include):
            return Case(name, "failed", problem)
        if name in NVRTC:
            show_headers(folder, include)
        ended = job.run(["./sample"], folder / "run.log", folder, seconds=600)
        if ended.status == WAIVED:
            return Case(name, "skipped", "the sample says that the device lacks what it shows")
        if ended.status:
            return Case(name, "failed", f"ended with {ended.status}")
        return Case(name, "passed")

    for _, case in job.side_by_side(run, job.selected([*DRIVER, *NVRTC])):
        print(f"{case.name:<55} {case.outcome} {case.reason}", flush=True)
        yield case
