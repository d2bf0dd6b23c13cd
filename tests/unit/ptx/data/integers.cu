// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void wide(const __int128* a, __int128* b, const unsigned long long* u, long long* s) {
  const int i = threadIdx.x;
  b[i] = a[i] * a[i + 1] + a[i + 2];
  b[i + 1] = a[i] / (a[i + 1] | 1);
  b[i + 2] = (a[i] << 7) - (a[i + 1] >> 70);
  s[i] = s[i] / 7 + s[i + 1] % (s[i + 2] | 1) + __mul64hi(s[i], s[i + 3]);
  s[i + 1] = static_cast<long long>(__umul64hi(u[i], u[i + 1]) + __brevll(u[i]) + __popcll(u[i]) + __clzll(s[i]) + __ffsll(s[i]));
}

extern "C" __global__ void bits(const unsigned* in, unsigned* out, const signed char* bytes, unsigned short* shorts) {
  const int i = threadIdx.x;
  const unsigned a = in[i];
  const unsigned b = in[i + 1];
  unsigned r = __funnelshift_l(a, b, 5) + __funnelshift_rc(a, b, b) + __byte_perm(a, b, 0x3210u) + __brev(a);
  r += __popc(a) + __clz(static_cast<int>(b)) + __ffs(static_cast<int>(a)) + __umulhi(a, b) + __usad(a, b, 3u) + __umul24(a, b);
  r += (a & b) ^ (a | ~b) ^ (a >> 3) ^ (b << 9) ^ (a / 10) ^ (a % (b | 1));
  r = __dp4a(a, b, r) + __dp2a_lo(a, b, r) + __vadd2(a, b) + __vabsdiffu4(a, b) + __vmaxs2(a, b) + __vcmpeq4(a, b);
  r += __uhadd(a, b) + __urhadd(a, b) + static_cast<unsigned>(__hadd(1, static_cast<int>(a)));
  out[i] = r + static_cast<unsigned>(bytes[i]) + __fns(a, 0, 2) + (a >> 4 & 0xff);
  shorts[i] = static_cast<unsigned short>(shorts[i] * 3 + bytes[i + 1]);
}
