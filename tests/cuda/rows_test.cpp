// SPDX-License-Identifier: Apache-2.0
// Loops of one thread over a row: each of these texts runs on the host and, for every row, on the device.
#include <doctest/doctest.h>

#include "rows.hpp"

namespace quern::cuda_test::rows {
namespace {

QUERN_BOTH(
    kHelpers,
    struct Pair {
      unsigned key;
      int place;
    };
    inline Pair lesser(Pair a, Pair b) { return b.key < a.key ? b : a; } NOINLINE u64 far_sum(const Data& g,
                                                                                              int i) {
      u64 sum = 1;
      for (int e = g.first[i]; e < g.first[i + 1]; ++e) sum = sum * 3 + g.x[g.column[e]];
      return sum;
    } NOINLINE bool holds(const Data& g, int i, int wanted) {
      for (int e = g.first[i]; e < g.first[i + 1]; ++e)
        if (g.column[e] == wanted) return true;
      return false;
    } NOINLINE u64 walk(const Data& g, int i, int depth) {
      u64 sum = i;
      int taken = 0;
      for (int e = g.first[i]; e < g.first[i + 1]; ++e) {
        const int place = g.column[e];
        if (depth > 0 && taken < 3) {
          sum = mix(sum, walk(g, place % g.rows, depth - 1));
          ++taken;
        } else {
          sum += g.x[place];
        }
        if (sum % 61 == 0) return sum + depth;
      }
      return sum;
    })

const std::vector<Loop> kPlain = {
    QUERN_LOOP("a sum",
               {
                 u64 sum = 0;
                 for (int e = b; e < n; ++e) sum += g.x[g.column[e]];
                 return sum;
               }),
    QUERN_LOOP("accumulators of all types",
               {
                 bool any = false;
                 bool all = true;
                 signed char c = 5;
                 short s = 7;
                 int k = -3;
                 long long w = i;
                 float f = 0.25f;
                 double r = t;
                 unsigned char u = 1;
                 Pair least{~0u, -1};
                 for (int e = b; e < n; ++e) {
                   const int p = g.column[e];
                   any |= g.x[p] % 16 == 0;
                   all = all && g.s[p] > -24000;
                   c = (signed char)(c + g.c[p]);
                   s = (short)(s ^ (g.s[p] + s));
                   k += g.s[p];
                   w -= g.w[p];
                   f = f * 0.875f + g.f[p];
                   r += g.r[p] * (double)f;
                   u = (unsigned char)(u * 3 + g.c[p]);
                   least = lesser(least, Pair{g.x[p], p});
                 }
                 u64 h = mix(any, all);
                 h = mix(h, (u64)c);
                 h = mix(h, (u64)s);
                 h = mix(h, (u64)k);
                 h = mix(h, (u64)w);
                 h = mix(h, bits(f));
                 h = mix(h, bits(r));
                 h = mix(h, u);
                 return mix(mix(h, least.key), (u64)least.place);
               }),
    QUERN_LOOP("the counter after the loop",
               {
                 int e = b;
                 while (e < n && g.x[g.column[e]] % 9 != 0) ++e;
                 return mix((u64)e, (u64)(n - e));
               }),
    QUERN_LOOP("a counter of iterations, downwards",
               {
                 unsigned count = 0;
                 unsigned last = 99;
                 int e = n;
                 while (e-- > b) {
                   last = g.x[g.column[e]];
                   if (last % 13 == 4) break;
                   count += 1 + (last & 1);
                 }
                 return mix(mix(count, (u64)(long long)e), last);
               }),
    QUERN_LOOP("a found place, after continues",
               {
                 int found = -1;
                 int skipped = 0;
                 for (int e = b; e < n; ++e) {
                   const int p = g.column[e];
                   if (g.c[p] < 0) {
                     ++skipped;
                     continue;
                   }
                   if (g.s[p] % 7 == 3) {
                     found = p;
                     break;
                   }
                   skipped += 100;
                 }
                 return mix((u64)found, (u64)skipped) + (found >= 0 ? g.x[found] : (u64)t);
               }),
    QUERN_LOOP("exits to several places",
               {
                 u64 h = 17;
                 for (int e = b; e < n; ++e) {
                   const int p = g.column[e];
                   const unsigned v = g.x[p];
                   h = mix(h, v);
                   if (v % 29 == 1) goto rare;
                   if (g.s[p] % 31 == 2) return h + 5;
                   if (g.f[p] > 190.0f) break;
                   if (v % 37 == 3) goto other;
                 }
                 return mix(h, 1);
               rare:
                 h = mix(h, g.x[t]);
               other:
                 return mix(h, 2);
               }),
    QUERN_LOOP("flags across iterations",
               {
                 bool open = false;
                 bool ever = false;
                 bool twice = false;
                 int runs = 0;
                 for (int e = b; e < n; ++e) {
                   const bool odd = (g.x[g.column[e]] & 1) != 0;
                   if (odd != open) {
                     open = odd;
                     if (odd) ++runs;
                   }
                   twice = twice || (ever && odd);
                   ever = ever || odd;
                   if (twice && runs > 40) break;
                 }
                 return open * 8 + ever * 4 + twice * 2 + (u64)runs * 16;
               }),
    QUERN_LOOP("values that change places",
               {
                 u64 a = 1;
                 u64 c = (u64)i;
                 u64 d = (u64)t;
                 for (int e = b; e < n; ++e) {
                   const u64 v = g.x[g.column[e]];
                   const u64 old = a;
                   a = c;
                   c = d;
                   d = (v & 1) != 0 ? old : old + v;
                   if ((v & 6) == 0) {
                     const u64 swapped = a;
                     a = d;
                     d = swapped;
                   }
                 }
                 return mix(mix(a, c), d);
               }),
    QUERN_LOOP("the element before the last",
               {
                 unsigned before = 1;
                 unsigned now = 2;
                 int changes = 0;
                 for (int e = b; e < n; ++e) {
                   before = now;
                   now = g.x[g.column[e]] % 4;
                   changes += before != now;
                   if (changes == 50) break;
                 }
                 return mix(mix(before, now), (u64)changes);
               }),
    QUERN_LOOP("the greatest and least, and where",
               {
                 float most = -1e30f;
                 float least = 1e30f;
                 int at = -1;
                 int low = -1;
                 for (int e = b; e < n; ++e) {
                   const float v = g.f[g.column[e]];
                   if (v > most) {
                     most = v;
                     at = e;
                   }
                   if (v <= least) {
                     least = v;
                     low = e - b;
                   }
                 }
                 return mix(mix(bits(most), bits(least)), mix((u64)at, (u64)low));
               }),
    QUERN_LOOP("a condition and an address after the loop",
               {
                 const unsigned* best = g.x + t;
                 bool even = true;
                 for (int e = b; e < n; ++e) {
                   const unsigned* const p = g.x + g.column[e];
                   even = *p % 2 == 0;
                   if (*p > *best) best = p;
                   if (*best > 0xf0000000u) break;
                 }
                 return mix((u64)(best - g.x), *best) + (even ? 1 : g.x[i]);
               }),
    QUERN_LOOP("indices of 64 bits",
               {
                 u64 sum = 0;
                 const long long end = n;
                 long long e = b;
                 for (; e < end; e += 2) {
                   const unsigned long long p = (unsigned long long)g.column[e];
                   sum += g.x[p] + (u64)e * 0x100000000ull;
                   if ((long long)(sum >> 3) % 41 == 0) break;
                 }
                 return mix(sum, (u64)e);
               }),
    QUERN_LOOP("a loop that runs at least once",
               {
                 u64 h = 0;
                 int e = b;
                 int p = 0;
                 do {
                   p = g.column[e];
                   h = mix(h, g.x[p]);
                 } while (++e < n && p % 11 != 0);
                 return mix(h, (u64)e);
               }),
};

const std::vector<Loop> kNested = {
    QUERN_LOOP("rows of rows",
               {
                 u64 h = 0;
                 int steps = 0;
                 for (int e = b; e < n; ++e) {
                   const int k = g.column[e] % g.rows;
                   if (g.first[k + 1] - g.first[k] > 60) continue;
                   unsigned part = 0;
                   for (int q = g.first[k]; q < g.first[k + 1]; ++q) {
                     ++steps;
                     if (g.x[g.column[q]] % 8 == 5) break;
                     part += g.x[g.column[q]];
                   }
                   if (part % 64 == 9) return mix(h, part);
                   h = mix(h, part + (u64)steps);
                   if (steps > 500) break;
                 }
                 return mix(h, (u64)steps);
               }),
    QUERN_LOOP("three levels, left from the innermost",
               {
                 int found = -1;
                 int e = b;
                 int q = 0;
                 int s = 0;
                 unsigned work = 0;
                 for (; e < n; ++e) {
                   const int k = g.column[e] % g.rows;
                   for (q = g.first[k]; q < g.first[k + 1] && q < g.first[k] + 9; ++q) {
                     const int m = g.column[q] % g.rows;
                     for (s = g.first[m]; s < g.first[m + 1] && s < g.first[m] + 5; ++s) {
                       work += g.x[g.column[s]] & 3;
                       if (g.x[g.column[s]] % 101 == 7) {
                         found = s;
                         goto out;
                       }
                     }
                     if (work % 512 == 500) break;
                   }
                   if (work > 2000) break;
                 }
               out:
                 return mix(mix((u64)found, work), mix((u64)e, mix((u64)q, (u64)s)));
               }),
    QUERN_LOOP("a loop after another, as long as it says",
               {
                 unsigned sum = 0;
                 int limit = 0;
                 for (int e = b; e < n; ++e) {
                   sum += g.x[g.column[e]];
                   limit += g.c[g.column[e]] > 60;
                 }
                 u64 h = sum;
                 int e = b;
                 for (; e < b + limit; ++e) h = mix(h, g.s[g.column[e]]);
                 return mix(h, (u64)e) + (u64)limit;
               }),
    QUERN_LOOP("loops in both sides of a branch",
               {
                 float sum = 0;
                 unsigned count = 0;
                 if (g.x[i] % 3 == 0) {
                   for (int e = b; e < n; ++e) sum += g.f[g.column[e]];
                 } else if (g.x[i] % 3 == 1) {
                   for (int e = n - 1; e >= b; --e) {
                     sum -= g.f[g.column[e]];
                     if (sum < -300.0f) break;
                     ++count;
                   }
                 } else {
                   count = 1000;
                 }
                 for (int e = b; e < n && e < b + 3; ++e) sum += g.f[g.column[e]] * 0.5f;
                 return mix(bits(sum), count);
               }),
    QUERN_LOOP("two rows in step",
               {
                 int p = b;
                 int q = g.first[g.rows - 1 - i];
                 const int end = g.first[g.rows - i];
                 unsigned common = 0;
                 unsigned steps = 0;
                 while (p < n && q < end) {
                   const int left = g.sorted[p];
                   const int right = g.sorted[q];
                   if (left == right) common += g.x[left];
                   p += left <= right;
                   q += right <= left;
                   ++steps;
                 }
                 return mix(mix(common, steps), mix((u64)p, (u64)q));
               }),
    QUERN_LOOP("a search by halves",
               {
                 int low = b;
                 int high = n;
                 int steps = 0;
                 const int wanted = (int)(g.x[i] % 512);
                 while (low < high) {
                   const int middle = low + (high - low) / 2;
                   ++steps;
                   if (g.sorted[middle] < wanted) {
                     low = middle + 1;
                   } else {
                     high = middle;
                   }
                 }
                 return mix((u64)(low - b), (u64)steps) + (low < n ? g.x[g.sorted[low]] : 0);
               }),
    QUERN_LOOP("a list",
               {
                 int p = (int)(g.x[i] % 512);
                 u64 h = (u64)(n - b);
                 int length = 0;
                 while (p >= 0) {
                   h = mix(h, g.x[p]);
                   ++length;
                   if (g.x[p] % 67 == 9) break;
                   p = g.next[p];
                 }
                 return mix(h, (u64)length) + (u64)(long long)p;
               }),
    QUERN_LOOP("strings",
               {
                 const char* p = g.text + g.x[i] % 2000;
                 const char* q = g.text + g.x[i + 1] % 2000;
                 int same = 0;
                 unsigned h = 5;
                 while (*p != 0 && *p == *q) {
                   h = h * 31 + (unsigned char)*p;
                   ++p;
                   ++q;
                   ++same;
                 }
                 const char* r = p;
                 while (*r != 0) ++r;
                 return mix(mix(h, (u64)same), (u64)(r - g.text) * 256 + (unsigned char)*q);
               }),
    QUERN_LOOP("values from before: the same in all lanes, in steps, arbitrary",
               {
                 u64 h = (u64)t;
                 const unsigned* const shifted = g.x + t;
                 const int* const mine = g.column + b;
                 const unsigned odd = g.x[i] | 1;
                 for (int k = 0; k < n - b; ++k) {
                   const unsigned v = shifted[mine[k] % 256] * odd + (unsigned)g.rows;
                   h = mix(h, v + (unsigned)(3 * t + k));
                   if (v % 71 == (unsigned)t % 71) break;
                 }
                 return mix(h, odd) + (u64)(shifted - g.x) + (u64)g.rows * odd;
               }),
    QUERN_LOOP("vectors",
               {
                 float sum = 0;
                 float a = 0;
                 float d = 1;
                 int k = 0;
                 for (int e = b; e < n; ++e) {
                   const int p = g.column[e];
                   const float2 u = g.f2[p];
                   const float4 v = g.f4[p];
                   const short2 w = g.s2[p];
                   sum += u.x * v.y;
                   a = a * 0.5f + v.x - v.z;
                   d = v.w + u.y;
                   k += w.x - w.y;
                   if (k > 100000 || (w.x & 63) == 1) break;
                 }
                 return mix(mix(bits(sum), bits(a)), mix(bits(d), (u64)k));
               }),
    QUERN_LOOP("calls",
               {
                 u64 h = 3;
                 for (int e = b; e < n && e < b + 12; ++e) {
                   const int k = g.column[e] % g.rows;
                   if (g.first[k + 1] - g.first[k] > 40) continue;
                   h = mix(h, far_sum(g, k));
                   if (holds(g, k, g.column[b])) h ^= 0x5555;
                 }
                 return h + holds(g, i, 200) + walk(g, i, 2);
               }),
    QUERN_LOOP("a local array",
               {
                 unsigned counts[8] = {0, 0, 0, 0, 0, 0, 0, 0};
                 int e = b;
                 for (; e < n; ++e) {
                   const unsigned v = g.x[g.column[e]];
                   counts[v % 8] += v >> 20;
                   if (counts[(v >> 5) % 8] > 20000) break;
                 }
                 u64 h = (u64)e;
                 for (int k = 0; k < 8; ++k) h = mix(h, counts[k]);
                 return h;
               }),
    QUERN_LOOP("a choice of several cases",
               {
                 unsigned state = 0;
                 u64 h = 0;
                 for (int e = b; e < n; ++e) {
                   const unsigned v = g.x[g.column[e]];
                   switch ((v >> 4) % 5 + state) {
                     case 0:
                       state = 1;
                       continue;
                     case 1:
                       h += v;
                       break;
                     case 2:
                       h = mix(h, v);
                       state = 3;
                       break;
                     case 3:
                       state = v & 3;
                       break;
                     case 4:
                       h += state;
                       [[fallthrough]];
                     case 5:
                       h ^= v << 3;
                       break;
                     case 7:
                       return mix(h, state);
                     default:
                       state = 0;
                   }
                   h += 1;
                 }
                 return mix(h, state);
               }),
    QUERN_LOOP("quotients",
               {
                 unsigned h = 1;
                 int k = 1000003;
                 for (int e = b; e < n; ++e) {
                   const unsigned v = g.x[g.column[e]];
                   h = h / (v % 13 + 1) + v % (h % 17 + 1);
                   k = k / (g.c[g.column[e]] | 1) + g.s[g.column[e]];
                   if (k == 77) break;
                 }
                 return mix(h, (u64)k);
               }),
};

/// All loops for all rows of all shapes, `threads` in a block.
void check_loops(const std::vector<Loop>& loops, unsigned threads) {
  if (!ready()) return;
  std::string source = kHelpers + "\n";
  for (std::size_t k = 0; k < loops.size(); ++k) {
    const std::string name = "f" + std::to_string(k);
    source += function_of(loops[k], "__forceinline__", name) + "extern \"C\" __global__ void k" +
              std::to_string(k) +
              "(const Data* __restrict__ g, u64* __restrict__ out) { const int i = blockIdx.x * blockDim.x + "
              "threadIdx.x; if (i < g->rows) out[i] = " +
              name + "(*g, i, threadIdx.x); }\n";
  }
  const Module module = load(source);
  for (std::size_t shape = 0; shape < std::size(kShapes); ++shape) {
    const Data g = data_of(kShapes[shape]);
    const OnDevice data(g);
    for (std::size_t k = 0; k < loops.size(); ++k) {
      INFO(std::string(loops[k].name));
      INFO(std::string(kShapeNames[shape]));
      const std::size_t count = (250 + threads - 1) / threads * threads;
      std::vector<u64> expected(count);
      for (int i = 0; i < g.rows; ++i)
        expected[static_cast<std::size_t>(i)] = value_of(loops[k], g, i, i % static_cast<int>(threads));
      const std::vector<u64> out = data.run(module.kernel("k" + std::to_string(k)),
                                            static_cast<unsigned>(count) / threads, threads, count);
      for (std::size_t i = 0; i < count; ++i) {
        CAPTURE(i);
        CHECK(out[i] == expected[i]);
        if (out[i] != expected[i]) break;
      }
    }
  }
}

}  // namespace

TEST_CASE("loops over rows of all shapes") { check_loops(kPlain, 64); }

TEST_CASE("nested loops and chains of loads over rows of all shapes") { check_loops(kNested, 96); }

}  // namespace quern::cuda_test::rows
