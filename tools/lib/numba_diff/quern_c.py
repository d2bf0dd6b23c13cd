# SPDX-License-Identifier: Apache-2.0
"""quern's C interface, as much of it as running kernels takes: a session, modules, launches over arrays. quern.h is its description."""
import ctypes

DTYPES = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128"]
LANGUAGES = {"cuda": 0, "ptx": 1, "python": 2}
ARRAY, SCALAR, ADDRESS = 0, 1, 2
u32, u64, i32, i64, pointer, text, size = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t


class Source(ctypes.Structure):
    _fields_ = [("struct_bytes", u32), ("language", i32), ("text", text), ("file_name", text), ("options", ctypes.POINTER(text)), ("option_count", size)]


class Launch(ctypes.Structure):
    _fields_ = [("struct_bytes", u32), ("cooperative", u32), ("grid", u32 * 3), ("block", u32 * 3), ("shared_bytes", u64), ("stream", u64)]


class Argument(ctypes.Structure):
    _fields_ = [("kind", i32), ("dtype", i32), ("array", u64), ("data", pointer), ("bytes", size)]


class CudaArray(ctypes.Structure):
    _fields_ = [("struct_bytes", u32), ("version", u32), ("data", pointer), ("read_only", i32), ("ndim", i32), ("shape", pointer), ("strides", pointer),
                ("typestr", text), ("mask", pointer), ("has_stream", i32), ("reserved", i32), ("stream", u64)]


SIGNATURES = {
    "quern_session_open": [text, ctypes.POINTER(u64)], "quern_session_synchronize": [u64],
    "quern_load": [u64, ctypes.POINTER(Source), ctypes.POINTER(u64)], "quern_kernel": [u64, text, ctypes.POINTER(u64)],
    "quern_launch": [u64, ctypes.POINTER(Launch), ctypes.POINTER(Argument), size],
    "quern_array_new": [u64, i32, i32, ctypes.POINTER(i64), ctypes.POINTER(u64)], "quern_array_from_host": [u64, pointer, size],
    "quern_array_to_host": [u64, pointer, size], "quern_array_describe": [u64, ctypes.POINTER(CudaArray)], "quern_release": [u64],
}


class Failure(Exception):
    """What quern refused or what went wrong; a fault ends the session."""

    def __init__(self, status, message):
        super().__init__(message)
        self.fault = status == 6


class Array:
    def __init__(self, session, host):
        self.session, self.host, handle = session, host, u64()
        self.shape = (i64 * max(host.ndim, 1))(*host.shape)
        session.call("quern_array_new", session.handle, DTYPES.index(host.dtype.name), host.ndim, self.shape, ctypes.byref(handle))
        self.handle = handle.value
        self.fill(host)

    def fill(self, host):
        self.session.call("quern_array_from_host", self.handle, host.ctypes.data, host.nbytes)

    def address(self):
        description = CudaArray(struct_bytes=ctypes.sizeof(CudaArray))
        self.session.call("quern_array_describe", self.handle, ctypes.byref(description))
        return description.data or 0

    def fetch(self):
        result = self.host.copy()
        self.session.call("quern_array_to_host", self.handle, result.ctypes.data, result.nbytes)
        return result

    def __del__(self):
        self.session.library.quern_release(self.handle)


class Session:
    def __init__(self, library, device="cpu"):
        self.library = ctypes.CDLL(str(library))
        for name, types in SIGNATURES.items():
            getattr(self.library, name).argtypes = types
        handle = u64()
        self.call("quern_session_open", device.encode(), ctypes.byref(handle))
        self.handle = handle.value

    def call(self, name, *arguments):
        status = getattr(self.library, name)(*arguments)
        if status:
            buffer = ctypes.create_string_buffer(4000)
            self.library.quern_last_error(buffer, size(len(buffer)))
            raise Failure(status, buffer.value.decode(errors="replace"))

    def kernel(self, language, source, name, options=()):
        words = (text * len(options))(*[o.encode() for o in options])
        given = Source(ctypes.sizeof(Source), LANGUAGES[language], source.encode(), b"kernels.py", words, len(options))
        module, kernel = u64(), u64()
        self.call("quern_load", self.handle, ctypes.byref(given), ctypes.byref(module))
        try:
            self.call("quern_kernel", module.value, name.encode(), ctypes.byref(kernel))
        finally:
            self.library.quern_release(module.value)
        return kernel.value

    def version(self):
        self.library.quern_version.restype = text
        return self.library.quern_version().decode()

    def prepared(self, kernel, grid, block, arguments, shared=0):
        """A function that launches and waits. `arguments`: Array objects, or NumPy's scalars."""
        launch = Launch(ctypes.sizeof(Launch), 0, (u32 * 3)(*grid), (u32 * 3)(*block), shared, 0)
        packed, keep = (Argument * len(arguments))(), []
        for slot, argument in zip(packed, arguments):
            keep.append(argument)
            if isinstance(argument, Array):
                slot.kind, slot.array = ARRAY, argument.handle
                continue
            keep.append(argument.tobytes())
            slot.kind, slot.dtype, slot.bytes = SCALAR, DTYPES.index(argument.dtype.name), len(keep[-1])
            slot.data = ctypes.cast(ctypes.c_char_p(keep[-1]), pointer)

        def run(keep=keep):
            self.call("quern_launch", kernel, ctypes.byref(launch), packed, len(packed))
            self.call("quern_session_synchronize", self.handle)
        return run

    def launch(self, kernel, grid, block, arguments, shared=0):
        """The same once, for a kernel that is used no more."""
        self.prepared(kernel, grid, block, arguments, shared)()
        self.library.quern_release(kernel)
