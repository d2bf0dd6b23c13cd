// SPDX-License-Identifier: Apache-2.0
__device__ unsigned lanes_below() {
  unsigned mask;
  asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
  return mask;
}

extern "C" __global__ void inline_asm(unsigned* out, const float* in) {
  unsigned result = lanes_below();
  // The same names twice: each braces block is a scope of its own.
  for (int i = 0; i < 2; ++i) {
    asm volatile(
        "{\n\t.reg .pred p;\n\t.reg .u32 t<3>;\n\tsetp.gt.u32 p, %1, 5;\n\tselp.u32 t0, 1, 2, p;\n\tadd.u32 t2, t0, t0;\n"
        "\t@!p bra DONE;\n\tadd.u32 t2, t2, 1;\nDONE:\n\tadd.u32 %0, t2, %1;\n\t}"
        : "=r"(result)
        : "r"(out[i]));
  }
  asm volatile("{ .reg .b64 a; cvta.to.global.u64 a, %0; prefetch.global.L2 [a]; }" ::"l"(in));
  asm volatile("bar.sync 1, 64;" ::: "memory");
  asm("lop3.b32 %0, %0, %1, %2, 0x96;" : "+r"(result) : "r"(out[3]), "r"(out[4]));
  out[threadIdx.x] = result;
}
