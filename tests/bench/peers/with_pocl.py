# SPDX-License-Identifier: Apache-2.0
"""PoCL, through PyOpenCL: arrays of the host are the device's, without copies."""
import pathlib

import numpy as np
import pyopencl as cl

KERNELS = pathlib.Path(__file__).with_name("kernels.cl")
i32 = np.int32

# work -> ways: kernel, global size, local size (in OpenCL's order, x first) and arguments, by names of the work's or as numbers. The
# fastest way counts.
def ways(name, a):
    square = lambda side, *local: ((a[side], a[side]), local)
    lines = lambda count, *sizes: [((a[count] if isinstance(count, str) else count,), (size,)) for size in sizes]
    if name == "saxpy":
        return [("saxpy", *shape, ("n", "a", "x", "y")) for shape in lines("n", 256, 4096)] + [
            ("saxpy_exact", *shape, ("a", "x", "y")) for shape in lines("n", 256, 4096)]
    if name == "black_scholes":
        arguments = ("spot", "strike", "years", "rate", "volatility", "call", "put")
        return [("black_scholes", *shape, arguments) for shape in lines("n", 256, 2048)] + [
            ("black_scholes_vectors", *shape, arguments) for shape in lines(a["n"] // 16, 16, 128)]
    if name == "nbody":
        arguments = ("position", "acceleration", "n", "softening")
        return [(kernel, *shape, arguments) for kernel, shape in
                [("nbody", lines("n", 256)[0]), ("nbody_plain", lines("n", 64)[0]), ("nbody_vectors", lines(a["n"] // 16, 1)[0])]]
    if name == "matmul":
        arguments = ("a", "b", "c", "n")
        return [("matmul", *square("n", 16, 16), arguments), ("matmul_vectors", (a["n"] // 16, a["n"] // 4), (1, 16), arguments),
                ("matmul_eight_rows", (a["n"] // 16, a["n"] // 8), (1, 16), arguments)]
    if name == "mandelbrot":
        arguments = ("image", "width", "height", "limit")
        return [("mandelbrot", *square("width", 16, 16), arguments), ("mandelbrot_vectors", (a["width"] // 16, a["height"]), (4, 4), arguments)]
    if name == "stencil":
        arguments = ("grid", "out", "width", "height")
        return [("stencil", *square("width", 32, 8), arguments), ("stencil", *square("width", 512, 1), arguments)] + [
            ("stencil_rows", *shape, arguments) for shape in lines("height", 1, 16)]
    if name == "transpose":
        arguments = ("matrix", "out", "side")
        return [("transpose", (a["side"], a["side"] // 4), (32, 8), arguments), ("transpose_plain", *square("side", 16, 16), arguments),
                ("transpose_blocks", (a["side"] // 16, a["side"] // 16), (1, 8), arguments)]
    if name == "block_sums":
        sums = a["n"] // 512
        return [("block_sums", (sums * 256,), (256,), ("x", "sums"))] + [
            ("block_sums_vectors", *shape, ("x", "sums")) for shape in lines(sums, 16, 64)]
    if name == "histogram":
        arguments = ("data", "n", "counts")
        return [("histogram", (512 * 256,), (256,), arguments), ("histogram_private", (64,), (1,), arguments)]
    if name == "softmax":
        arguments = ("matrix", "out", "columns")
        return [("softmax", (a["rows"] * 256,), (256,), arguments), ("softmax_vectors", (a["rows"],), (8,), arguments)]
    if name == "csr":
        return [("csr", *shape, ("rows", "begin", "column", "value", "x", "y")) for shape in lines("rows", 64, 256)]
    if name == "convolve":
        arguments = ("image", "out", "width", "height")
        return [("convolve", *square("width", 16, 16), arguments), ("convolve_vectors", (a["width"] // 16, a["height"]), (4, 4), arguments)]
    if name == "lennard_jones":
        arguments = ("n", "neighbours", "x", "y", "z", "neighbour", "cutoff_squared", "fx", "fy", "fz")
        return [(kernel, *shape, arguments) for kernel in ("lennard_jones", "lennard_jones_select") for shape in lines("n", 128)]
    if name == "scan":
        return [("scan", *shape, ("numbers", "out")) for shape in lines("n", 256)] + [
            ("scan_rows", *shape, ("numbers", "out")) for shape in lines(a["n"] // 256, 1, 16)]
    return []


class Peer:
    name = "PoCL"

    def __init__(self, threads):
        platform = next((p for p in cl.get_platforms() if p.name == "Portable Computing Language"), None)
        if platform is None:
            raise RuntimeError("OpenCL finds no platform of PoCL")
        device = next(d for d in platform.get_devices() if d.type & cl.device_type.CPU)
        self.version = f"{platform.version.split('PoCL ')[1].split()[0].split('+')[0]} (LLVM {platform.version.split('LLVM ')[1].split(',')[0]}, {device.name.split('-', 1)[1]})"
        if device.max_compute_units != threads:
            raise RuntimeError(f"PoCL has {device.max_compute_units} compute units, not {threads}")
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.program = cl.Program(self.context, KERNELS.read_text()).build(["-cl-std=CL1.2"])

    def prepare(self, name, arguments):
        self.host = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        self.buffers = {key: cl.Buffer(self.context, flags, hostbuf=value) for key, value in self.host.items()}
        result = {}
        for entry, grid, group, words in ways(name, arguments):
            kernel = cl.Kernel(self.program, entry)
            kernel.set_args(*[self.buffers.get(word, i32(arguments[word]) if isinstance(arguments[word], int) else arguments[word]) for word in words])
            result[f"{entry} by {' x '.join(map(str, group))}"] = self.launch(kernel, grid, group)
        return result

    def launch(self, kernel, grid, group):
        def run():
            cl.enqueue_nd_range_kernel(self.queue, kernel, grid, group)
            self.queue.finish()
        return run

    def write(self, name, values):
        cl.enqueue_copy(self.queue, self.buffers[name], values)
        self.queue.finish()

    def read(self, name):
        result = np.empty_like(self.host[name])
        cl.enqueue_copy(self.queue, result, self.buffers[name])
        return result

    def drop(self):
        self.host = self.buffers = None
