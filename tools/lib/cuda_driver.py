# SPDX-License-Identifier: Apache-2.0
"""The CUDA Driver API from Python, by ctypes: just what checks need, and nothing but the standard library. Any library that
exports it will do: a system's libcuda.so.1, or quern's CPU device under that name."""
import ctypes

SUCCESS = 0
ERROR_NO_DEVICE = 100
JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 5, 6
COMPUTE_CAPABILITY_MAJOR, COMPUTE_CAPABILITY_MINOR = 75, 76


class CudaError(RuntimeError):
    def __init__(self, code, call, log=""):
        super().__init__(f"{call} answers {code}" + (f": {log}" if log else ""))
        self.code = code


class Driver:
    """One device of one driver, its primary context current on this thread."""

    def __init__(self, library="libcuda.so.1", ordinal=0):
        self.library = ctypes.CDLL(str(library))
        if not hasattr(self.library, "cuInit"):
            raise OSError(f"{library} is a library without cuInit")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), ordinal)
        self.context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self.make_current()

    def make_current(self):
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code != SUCCESS:
            raise CudaError(code, name)

    def name(self):
        text = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", text, len(text), self.device)
        return text.value.decode(errors="replace")

    def version(self):
        number = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(number))
        return number.value

    def attribute(self, which):
        number = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(number), which, self.device)
        return number.value

    def compute_capability(self):
        return self.attribute(COMPUTE_CAPABILITY_MAJOR), self.attribute(COMPUTE_CAPABILITY_MINOR)

    def load(self, ptx):
        """A module of PTX text; its error carries the compiler's log."""
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(JIT_ERROR_LOG_BUFFER, JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), len(log))
        module = ctypes.c_void_p()
        code = self.library.cuModuleLoadDataEx(ctypes.byref(module), ctypes.c_char_p(ptx.encode() + b"\0"), 2, options, values)
        if code != SUCCESS:
            raise CudaError(code, "cuModuleLoadDataEx", log.value.decode(errors="replace").strip())
        return Module(self, module)

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 1)))
        return pointer.value

    def free(self, pointer):
        self.call("cuMemFree_v2", ctypes.c_uint64(pointer))

    def upload(self, data):
        pointer = self.allocate(len(data))
        if data:
            self.call("cuMemcpyHtoD_v2", ctypes.c_uint64(pointer), data, ctypes.c_size_t(len(data)))
        return pointer

    def download(self, pointer, size):
        data = ctypes.create_string_buffer(size)
        if size:
            self.call("cuMemcpyDtoH_v2", data, ctypes.c_uint64(pointer), ctypes.c_size_t(size))
        return data.raw

    def synchronize(self):
        self.call("cuCtxSynchronize")


class Module:
    def __init__(self, driver, handle):
        self.driver, self.handle = driver, handle

    def function(self, name):
        function = ctypes.c_void_p()
        self.driver.call("cuModuleGetFunction", ctypes.byref(function), self.handle, name.encode())
        return Function(self.driver, function)

    def unload(self):
        self.driver.call("cuModuleUnload", self.handle)


class Function:
    def __init__(self, driver, handle):
        self.driver, self.handle = driver, handle

    def prepare(self, grid, block, arguments, shared=0):
        """A prepared launch that can be repeated; arguments are ctypes values."""
        pointers = (ctypes.c_void_p * max(len(arguments), 1))(*[ctypes.cast(ctypes.pointer(a), ctypes.c_void_p) for a in arguments])
        words = [ctypes.c_uint(n) for n in (*grid, *block, shared)]
        function, handle = self.driver.library.cuLaunchKernel, self.handle

        def launch():
            return function(handle, *words, None, pointers, None)

        launch.keep = (arguments, pointers)
        return launch

    def launch(self, grid, block, arguments, shared=0):
        code = self.prepare(grid, block, arguments, shared)()
        if code != SUCCESS:
            raise CudaError(code, "cuLaunchKernel")
