// SPDX-License-Identifier: Apache-2.0
// Linking what CUDA's tools make: fat binaries, objects and archives with PTX inside.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "kernels.hpp"
#include "pages.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr const char* kCaller = R"(.version 7.0
.target sm_50
.address_size 64
.extern .func (.param .b32 r) plus_two(.param .b32 x);
.visible .entry run(.param .u64 to)
{
  .reg .b32 %r<4>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [to];
  ld.global.u32 %r1, [%rd1];
  { .param .b32 in; .param .b32 out;
  st.param.b32 [in], %r1;
  call.uni (out), plus_two, (in);
  ld.param.b32 %r2, [out]; }
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr const char* kCallee = R"(.version 7.0
.target sm_50
.address_size 64
.visible .func (.param .b32 r) plus_two(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, 2;
  st.param.b32 [r], %r2;
  ret;
}
)";
/// Would be a second definition of plus_two if it were taken.
constexpr const char* kOther = R"(.version 7.0
.target sm_50
.address_size 64
.visible .func unused() { ret; }
.visible .func (.param .b32 r) plus_two(.param .b32 x) { st.param.b32 [r], 0; ret; }
)";

template <class T>
void put(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

enum class Packing { none, lz4 };

/// An entry of a fat binary with the text as PTX; container.hpp describes the format.
std::string entry_of(const std::string& text, std::uint32_t architecture, Packing packing = Packing::none,
                     std::uint16_t kind = 1) {
  std::string payload = text + '\0';
  const std::uint64_t text_bytes = payload.size();
  if (packing == Packing::lz4) {  // one sequence that has literals only
    std::string block = "\xf0";
    std::size_t rest = payload.size() - 15;
    for (; rest >= 255; rest -= 255) block += '\xff';
    block += static_cast<char>(rest);
    payload = block + payload;
  }
  const auto packed_bytes = static_cast<std::uint32_t>(payload.size());
  payload.resize((payload.size() + 7) / 8 * 8);
  std::string entry;
  put<std::uint16_t>(entry, kind);
  put<std::uint16_t>(entry, 0x101);
  put<std::uint32_t>(entry, 64);
  put<std::uint64_t>(entry, payload.size());
  put<std::uint32_t>(entry, packing == Packing::none ? 0 : packed_bytes);
  put<std::uint32_t>(entry, 0);
  put<std::uint16_t>(entry, 0);
  put<std::uint16_t>(entry, 9);
  put<std::uint32_t>(entry, architecture);
  put<std::uint64_t>(entry, 0);
  put<std::uint64_t>(entry, packing == Packing::none ? 0x11 : 0x2011);
  put<std::uint64_t>(entry, 0);
  put<std::uint64_t>(entry, packing == Packing::none ? 0 : text_bytes);
  return entry + payload;
}

std::string fat_binary(const std::string& entries) {
  std::string bytes;
  put<std::uint32_t>(bytes, 0xba55ed50);
  put<std::uint16_t>(bytes, 1);
  put<std::uint16_t>(bytes, 16);
  put<std::uint64_t>(bytes, entries.size());
  return bytes + entries;
}

std::string archive_of(const std::vector<std::string>& members) {
  std::string bytes = "!<arch>\n";
  for (const std::string& member : members) {
    std::string header = "part.o/";
    header.resize(48, ' ');
    header += std::to_string(member.size());
    header.resize(58, ' ');
    bytes += header + "`\n" + member;
    if (member.size() % 2 != 0) bytes += '\n';
  }
  return bytes;
}

struct Link {
  explicit Link(std::uintptr_t max_registers = 0) {
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                              CU_JIT_MAX_REGISTERS};
    std::memcpy(options_, options, sizeof options);
    values_[0] = log_;
    values_[1] = reinterpret_cast<void*>(sizeof log_);
    values_[2] = reinterpret_cast<void*>(max_registers);
    REQUIRE(cu().cuLinkCreate_v2(max_registers == 0 ? 2 : 3, options_, values_, &state) == CUDA_SUCCESS);
  }
  ~Link() { cu().cuLinkDestroy(state); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  CUresult add(CUjitInputType type, const std::string& bytes, const char* name = "input") const {
    return cu().cuLinkAddData_v2(state, type, const_cast<char*>(bytes.data()), bytes.size(), name, 0, nullptr,
                                 nullptr);
  }
  CUresult complete() { return cu().cuLinkComplete(state, &image, nullptr); }
  std::string log() const { return log_; }

  CUlinkState state = nullptr;
  void* image = nullptr;

 private:
  char log_[2048] = "";
  CUjit_option options_[3]{};
  void* values_[3]{};
};

/// Runs kernel `run` of an image on the number 40.
std::uint32_t result_of(const Fixture& fixture, const void* image) {
  CUmodule linked = nullptr;
  REQUIRE(cu().cuModuleLoadData(&linked, image) == CUDA_SUCCESS);
  CUfunction run = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&run, linked, "run") == CUDA_SUCCESS);
  CUdeviceptr to = fixture.upload<std::uint32_t>({40});
  void* parameters[] = {&to};
  REQUIRE(cu().cuLaunchKernel(run, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  const std::uint32_t result = fixture.download<std::uint32_t>(to, 1)[0];
  CHECK(cu().cuModuleUnload(linked) == CUDA_SUCCESS);
  return result;
}

const std::string kDamaged = fat_binary(entry_of(kCallee, 50)).substr(0, 100);

}  // namespace

TEST_CASE_FIXTURE(Fixture, "fat binaries are loaded: the newest PTX that runs here, packed or not") {
  const std::string alone = std::string(kEmptyModule) + ".visible .entry old() { ret; }";
  const std::string newer = std::string(kEmptyModule) + ".visible .entry newer() { ret; }";
  const std::string newest = std::string(kEmptyModule) + ".visible .entry newest() { ret; }";
  for (const Packing packing : {Packing::none, Packing::lz4}) {
    if (!is_cpu() && packing == Packing::lz4) continue;
    const std::string image = fat_binary(entry_of(alone, 50, packing) + entry_of(newer, 70, packing) +
                                         entry_of(newest, 100, packing));
    CUmodule loaded = nullptr;
    REQUIRE(CU(cuModuleLoadFatBinary)(&loaded, image.data()) == CUDA_SUCCESS);
    CUfunction found = nullptr;
    if (is_cpu()) CHECK(cu().cuModuleGetFunction(&found, loaded, "newer") == CUDA_SUCCESS);
    CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
    struct {
      std::uint32_t magic = 0x466243b1;
      std::uint32_t version = 1;
      const void* image = nullptr;
      const void* none = nullptr;
    } wrapper;
    wrapper.image = image.data();
    REQUIRE(cu().cuModuleLoadData(&loaded, &wrapper) == CUDA_SUCCESS);
    CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
  }
  if (!is_cpu()) return;
  CUmodule none = nullptr;
  CHECK(cu().cuModuleLoadData(&none, fat_binary(entry_of(newest, 100)).data()) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cu().cuModuleLoadData(&none, fat_binary(entry_of("code", 80, Packing::none, 2)).data()) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(cu().cuModuleLoadData(&none, fat_binary("").data()) == CUDA_ERROR_NO_BINARY_FOR_GPU);
}

TEST_CASE_FIXTURE(Fixture, "PTX, fat binaries and archives are linked with each other") {
  Link link;
  REQUIRE(link.add(CU_JIT_INPUT_FATBINARY, fat_binary(entry_of(kCaller, 50))) == CUDA_SUCCESS);
  REQUIRE(link.add(CU_JIT_INPUT_PTX, kCallee) == CUDA_SUCCESS);
  REQUIRE(link.complete() == CUDA_SUCCESS);
  CHECK(result_of(*this, link.image) == 42);
  if (!is_cpu()) return;
  Link with_archive;
  REQUIRE(with_archive.add(CU_JIT_INPUT_PTX, kCaller) == CUDA_SUCCESS);
  const std::string members =
      archive_of({fat_binary(entry_of(kCallee, 50)), fat_binary(entry_of(kOther, 50))});
  REQUIRE(with_archive.add(CU_JIT_INPUT_LIBRARY, members) == CUDA_SUCCESS);
  REQUIRE(with_archive.complete() == CUDA_SUCCESS);  // the second definition is not taken
  CHECK(result_of(*this, with_archive.image) == 42);
}

TEST_CASE_FIXTURE(Fixture, "inputs without PTX are refused, and the log says which they are") {
  if (!is_cpu()) return;
  Link link;
  CHECK(link.add(CU_JIT_INPUT_FATBINARY, kDamaged, "broken.fatbin") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(link.log().find("broken.fatbin") != std::string::npos);
  CHECK(link.add(CU_JIT_INPUT_NVVM, "BC", "ir.bc") == CUDA_ERROR_NOT_SUPPORTED);
  CHECK(link.log().find("NVVM") != std::string::npos);
  CHECK(link.add(CU_JIT_INPUT_CUBIN, "\177ELF", "code.cubin") == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(link.add(CU_JIT_INPUT_OBJECT, "\177ELF", "host.o") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(link.add(CU_JIT_INPUT_LIBRARY, "no archive", "libx.a") == CUDA_ERROR_INVALID_IMAGE);
  CHECK(link.add(CU_JIT_INPUT_FATBINARY, fat_binary(entry_of("code", 80, Packing::none, 8))) ==
        CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(link.log().find("link-time optimisation") != std::string::npos);
  // An archive without PTX is no error until something is lacking; then the log names its members.
  const std::string machine_code = archive_of({fat_binary(entry_of("code", 80, Packing::none, 2))});
  CHECK(link.add(CU_JIT_INPUT_LIBRARY, machine_code, "libcode.a") == CUDA_SUCCESS);
  CHECK(link.add(CU_JIT_INPUT_PTX, kCaller, "caller.ptx") == CUDA_SUCCESS);
  CHECK(link.complete() != CUDA_SUCCESS);
  CHECK(link.log().find("plus_two") != std::string::npos);
  CHECK(link.log().find("libcode.a(part.o)") != std::string::npos);
  CHECK(CU(cuLinkAddFile_v2)(link.state, CU_JIT_INPUT_PTX, "/nowhere/x.ptx", 0, nullptr, nullptr) ==
        CUDA_ERROR_FILE_NOT_FOUND);
  CHECK(CU(cuLinkAddFile_v2)(link.state, CU_JIT_INPUT_PTX, nullptr, 0, nullptr, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "fat binaries in memory are read as far as their sizes agree and memory goes") {
  if (!is_cpu()) return;
  const Pages pages(3);
  pages.unmap(2);
  const auto load = [&](const std::string& bytes) {
    CUmodule loaded = nullptr;
    const char* const image = pages.put_before(2, bytes);
    const CUresult result = CU(cuModuleLoadFatBinary)(&loaded, image);
    const auto unload = [&] {
      if (result == CUDA_SUCCESS) CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
    };
    unload();
    struct {
      std::uint32_t magic = 0x466243b1, version = 1;
      const void* image = nullptr;
      const void* none = nullptr;
    } wrapper;
    wrapper.image = image;
    CHECK(cu().cuModuleLoadData(&loaded, &wrapper) == result);
    unload();
    return result;
  };
  for (const Packing packing : {Packing::none, Packing::lz4}) {
    const std::string whole = fat_binary(entry_of(kCallee, 50, packing));
    CHECK(load(whole) == CUDA_SUCCESS);
    // The places of its sizes and their widths; see container.hpp.
    constexpr std::size_t kHeaderBytes = 16;
    const std::pair<std::size_t, std::size_t> sizes[] = {{6, 2},
                                                         {8, 8},
                                                         {kHeaderBytes + 4, 4},
                                                         {kHeaderBytes + 8, 8},
                                                         {kHeaderBytes + 16, 4},
                                                         {kHeaderBytes + 56, 8}};
    for (const auto& [at, width] : sizes) {
      if (packing == Packing::none && at >= kHeaderBytes + 16) continue;  // means nothing there
      for (std::size_t byte = 0; byte < width; ++byte)
        for (const char change : {'\x01', '\x10', '\x80'}) {
          CAPTURE(at);
          CAPTURE(byte);
          std::string damaged = whole;
          damaged[at + byte] = static_cast<char>(damaged[at + byte] ^ change);
          CHECK(load(damaged) == CUDA_ERROR_INVALID_IMAGE);
        }
    }
    for (std::size_t bytes = 4; bytes < whole.size(); bytes += 5)  // the memory ends before
      CHECK(load(whole.substr(0, bytes)) == CUDA_ERROR_INVALID_IMAGE);
  }
  CHECK(load("\xb1\x43\x62\x46") == CUDA_ERROR_INVALID_IMAGE);  // a wrapper where the memory ends
  struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void* image = nullptr;
    const void* none = nullptr;
  } nowhere;
  CUmodule loaded = nullptr;
  for (const std::uintptr_t address : {std::uintptr_t{0}, std::uintptr_t{8}, UINTPTR_MAX - 3}) {
    std::memcpy(&nowhere.image, &address, sizeof address);
    CHECK(cu().cuModuleLoadData(&loaded, &nowhere) == CUDA_ERROR_INVALID_IMAGE);
  }
}

TEST_CASE_FIXTURE(Fixture, "damaged fat binaries and archives are refused wherever they end") {
  if (!is_cpu()) return;
  const std::string whole = fat_binary(entry_of(kCallee, 50, Packing::lz4));
  for (std::size_t bytes = 1; bytes < whole.size(); bytes += 7)
    CHECK(Link().add(CU_JIT_INPUT_FATBINARY, whole.substr(0, bytes)) == CUDA_ERROR_INVALID_IMAGE);
  const std::string archive = archive_of({whole});
  for (std::size_t bytes = 9; bytes < archive.size() - 1; bytes += 7)
    CHECK(Link().add(CU_JIT_INPUT_LIBRARY, archive.substr(0, bytes)) == CUDA_ERROR_INVALID_IMAGE);
}

TEST_CASE_FIXTURE(Fixture, "the limit of registers comes along in the linked image") {
  if (!is_cpu()) return;
  Link link(24);
  REQUIRE(link.add(CU_JIT_INPUT_PTX, kKernels) == CUDA_SUCCESS);
  REQUIRE(link.complete() == CUDA_SUCCESS);
  CUlibrary library = nullptr;
  REQUIRE(CU(cuLibraryLoadData)(&library, link.image, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          CUDA_SUCCESS);
  CUkernel kernels[64]{};
  unsigned count = 0;
  REQUIRE(CU(cuLibraryGetKernelCount)(&count, library) == CUDA_SUCCESS);
  REQUIRE(count <= 64);
  REQUIRE(CU(cuLibraryEnumerateKernels)(kernels, count, library) == CUDA_SUCCESS);
  for (unsigned i = 0; i < count; ++i) {
    int registers = 0;
    REQUIRE(CU(cuKernelGetAttribute)(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernels[i], 0) == CUDA_SUCCESS);
    CHECK(registers <= 24);
  }
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "the first versions of the functions for linking") {
  CUlinkState link = nullptr;
  REQUIRE(CU(cuLinkCreate)(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
  REQUIRE(CU(cuLinkAddData)(link, CU_JIT_INPUT_PTX, const_cast<char*>(kCaller), std::strlen(kCaller) + 1, "a",
                            0, nullptr, nullptr) == CUDA_SUCCESS);
  const std::string file =
      (std::filesystem::temp_directory_path() / ("quern-link-" + std::to_string(::getpid()) + ".ptx"))
          .string();
  std::ofstream(file) << kCallee;
  REQUIRE(CU(cuLinkAddFile)(link, CU_JIT_INPUT_PTX, file.c_str(), 0, nullptr, nullptr) == CUDA_SUCCESS);
  std::filesystem::remove(file);
  void* image = nullptr;
  REQUIRE(cu().cuLinkComplete(link, &image, nullptr) == CUDA_SUCCESS);
  CHECK(result_of(*this, image) == 42);
  CHECK(cu().cuLinkDestroy(link) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "grids meet through the functions of the device runtime, which every link has") {
  if (!is_cpu()) return;  // a GPU needs libcudadevrt.a
  constexpr const char* kGrid = R"(.version 7.0
.target sm_60
.address_size 64
.extern .func (.param .b64 r) cudaCGGetIntrinsicHandle(.param .b32 scope);
.extern .func (.param .b32 r) cudaCGSynchronize(.param .b64 handle, .param .b32 flags);
.extern .func (.param .b32 r) cudaCGGetSize(.param .b64 threads, .param .b64 grids, .param .b64 handle);
.extern .func (.param .b32 r) cudaCGGetRank(.param .b64 thread, .param .b64 grid, .param .b64 handle);
// each thread: counts itself in words[0], meets the others, writes the count to words[2 + rank]; the size is
// words[1]
.visible .entry meet(.param .u64 words)
{
  .local .align 4 .b32 rank;
  .reg .b32 %r<6>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [words];
  red.global.add.u32 [%rd1], 1;
  { .param .b32 in; .param .b64 out;
  st.param.b32 [in], 1;
  call.uni (out), cudaCGGetIntrinsicHandle, (in);
  ld.param.b64 %rd2, [out]; }
  mov.u32 %r5, 0;
  st.local.u32 [rank], %r5;  // cudaCGGetRank writes nothing for a handle of 0
  mov.u64 %rd7, 0;
  { .param .b64 handle; .param .b32 flags; .param .b32 out;
  st.param.b64 [handle], %rd2;
  st.param.b32 [flags], 0;
  call.uni (out), cudaCGSynchronize, (handle, flags);
  ld.param.b32 %r1, [out]; }
  ld.volatile.global.u32 %r2, [%rd1];
  add.u32 %r2, %r2, %r1;
  { .param .b64 threads; .param .b64 grids; .param .b64 handle; .param .b32 out;
  add.u64 %rd3, %rd1, 4;
  st.param.b64 [threads], %rd3;
  st.param.b64 [grids], %rd7;
  st.param.b64 [handle], %rd2;
  call.uni (out), cudaCGGetSize, (threads, grids, handle);
  ld.param.b32 %r3, [out]; }
  { .param .b64 thread; .param .b64 grid; .param .b64 handle; .param .b32 out;
  mov.u64 %rd4, rank;
  cvta.local.u64 %rd4, %rd4;
  st.param.b64 [thread], %rd4;
  st.param.b64 [grid], %rd7;
  st.param.b64 [handle], %rd2;
  call.uni (out), cudaCGGetRank, (thread, grid, handle);
  ld.param.b32 %r3, [out]; }
  ld.local.u32 %r4, [rank];
  mul.wide.u32 %rd5, %r4, 4;
  add.u64 %rd6, %rd1, %rd5;
  st.global.u32 [%rd6+8], %r2;
  ret;
}
)";
  Link link;
  const CUresult added = link.add(CU_JIT_INPUT_PTX, kGrid);
  REQUIRE_MESSAGE(added == CUDA_SUCCESS, link.log());
  const CUresult completed = link.complete();
  REQUIRE_MESSAGE(completed == CUDA_SUCCESS, link.log());
  CUmodule linked = nullptr;
  REQUIRE(cu().cuModuleLoadData(&linked, link.image) == CUDA_SUCCESS);
  CUfunction meet = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&meet, linked, "meet") == CUDA_SUCCESS);
  CUdeviceptr words = upload(std::vector<std::uint32_t>(2 + 80, 0));
  void* parameters[] = {&words};
  REQUIRE(CU(cuLaunchCooperativeKernel)(meet, 2, 1, 1, 20, 2, 1, 0, nullptr, parameters) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  std::vector<std::uint32_t> expected(2 + 80, 80);  // all threads had come; and so many there are
  CHECK(download<std::uint32_t>(words, 82) == expected);
  // Without a cooperative launch there is no grid to meet in: cudaErrorInvalidValue (1) is added.
  words = upload(std::vector<std::uint32_t>(3, 0));
  REQUIRE(cu().cuLaunchKernel(meet, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(words, 3)[2] == 2);
}

namespace {

/// A folder with what nvcc makes of two sources.
class NvccOutput {
 public:
  NvccOutput()
      : folder_(std::filesystem::temp_directory_path() / ("quern-nvcc-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
    write("a.cu",
          "extern \"C\" __device__ int plus_two(int x);\n"
          "extern \"C\" __global__ void run(int* to) { *to = plus_two(*to); }\n");
    write("b.cu", "extern \"C\" __device__ int plus_two(int x) { return x + 2; }\n");
  }
  ~NvccOutput() { std::filesystem::remove_all(folder_); }
  NvccOutput(const NvccOutput&) = delete;
  NvccOutput& operator=(const NvccOutput&) = delete;

  bool run(const std::string& command) const {
    return std::system(("cd " + folder_.string() + " && PATH=$PATH:/usr/local/cuda/bin && " + command +
                        " >/dev/null 2>&1")
                           .c_str()) == 0;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  void write(const std::string& name, const std::string& text) const { std::ofstream(path(name)) << text; }
  std::filesystem::path folder_;
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "objects, archives and fat binaries that nvcc makes are linked") {
  const NvccOutput made;
  if (!made.run("nvcc --version")) {
    MESSAGE("SKIPPED: no nvcc on this machine");
    return;
  }
  const std::string flags = " -rdc=true -gencode arch=compute_80,code=compute_80 ";
  REQUIRE(
      made.run("nvcc -c" + flags + "a.cu -o a.o && nvcc -c" + flags + "b.cu -o b.o && ar rcs libb.a b.o"));
  Link link;
  CHECK(CU(cuLinkAddFile_v2)(link.state, CU_JIT_INPUT_OBJECT, made.path("a.o").c_str(), 0, nullptr,
                             nullptr) == CUDA_SUCCESS);
  CHECK(CU(cuLinkAddFile_v2)(link.state, CU_JIT_INPUT_LIBRARY, made.path("libb.a").c_str(), 0, nullptr,
                             nullptr) == CUDA_SUCCESS);
  const std::string runtime = "/usr/local/cuda/lib64/libcudadevrt.a";
  if (std::filesystem::exists(runtime))
    CHECK(CU(cuLinkAddFile_v2)(link.state, CU_JIT_INPUT_LIBRARY, runtime.c_str(), 0, nullptr, nullptr) ==
          CUDA_SUCCESS);
  REQUIRE_MESSAGE(link.complete() == CUDA_SUCCESS, link.log());
  CHECK(result_of(*this, link.image) == 42);
  REQUIRE(made.run("nvcc -ptx -rdc=true -arch=compute_80 a.cu -o a.ptx"));
  // none: as it is; speed: LZ4; size: zstd
  for (const char* mode : {"none", "speed", "size"}) {
    CAPTURE(mode);
    if (!made.run("fatbinary -64 --create=a.fatbin --image3=kind=ptx,sm=80,file=a.ptx --compress-mode=" +
                  std::string(mode))) {
      MESSAGE("SKIPPED: fatbinary does not compress in mode " << mode);
      continue;
    }
    Link packed;
    REQUIRE_MESSAGE(packed.add(CU_JIT_INPUT_FATBINARY, made.content("a.fatbin")) == CUDA_SUCCESS,
                    packed.log());
    REQUIRE(packed.add(CU_JIT_INPUT_PTX, kCallee) == CUDA_SUCCESS);
    REQUIRE_MESSAGE(packed.complete() == CUDA_SUCCESS, packed.log());
    CHECK(result_of(*this, packed.image) == 42);
  }
}
