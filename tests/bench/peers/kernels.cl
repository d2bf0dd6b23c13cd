// SPDX-License-Identifier: Apache-2.0
// The works in OpenCL C. Where two ways are common, with local memory as for GPUs and without as for CPUs, both are here: the faster one
// counts. with_pocl.py has the launches.

kernel void saxpy(int n, float a, global const float* restrict x, global float* restrict y) {
  const int i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}

// The grid has exactly n work-items: no work-item is masked.
kernel void saxpy_exact(float a, global const float* restrict x, global float* restrict y) {
  const size_t i = get_global_id(0);
  y[i] = a * x[i] + y[i];
}

float normal_cdf(float x) {
  const float k = 1.0f / (1.0f + 0.2316419f * fabs(x));
  const float polynomial = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float tail = 0.39894228040143267794f * exp(-0.5f * x * x) * polynomial;
  return x > 0.0f ? 1.0f - tail : tail;
}

kernel void black_scholes(global const float* restrict spot, global const float* restrict strike, global const float* restrict years,
                          float rate, float volatility, global float* restrict call, global float* restrict put) {
  const size_t i = get_global_id(0);
  const float root = volatility * sqrt(years[i]);
  const float d1 = (log(spot[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / root;
  const float discounted = strike[i] * exp(-rate * years[i]);
  const float price = spot[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - root);
  call[i] = price;
  put[i] = price - spot[i] + discounted;
}

// Sixteen options a work-item, in vectors: the library's vector functions.
float16 normal_cdf16(float16 x) {
  const float16 k = 1.0f / (1.0f + 0.2316419f * fabs(x));
  const float16 polynomial = k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  const float16 tail = 0.39894228040143267794f * exp(-0.5f * x * x) * polynomial;
  return select(tail, 1.0f - tail, x > 0.0f);
}

kernel void black_scholes_vectors(global const float* restrict spot, global const float* restrict strike, global const float* restrict years,
                                  float rate, float volatility, global float* restrict call, global float* restrict put) {
  const size_t i = get_global_id(0);
  const float16 s = vload16(i, spot), x = vload16(i, strike), t = vload16(i, years);
  const float16 root = volatility * sqrt(t);
  const float16 d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / root;
  const float16 discounted = x * exp(-rate * t);
  const float16 price = s * normal_cdf16(d1) - discounted * normal_cdf16(d1 - root);
  vstore16(price, i, call);
  vstore16(price - s + discounted, i, put);
}

kernel void nbody(global const float4* restrict position, global float4* restrict acceleration, int n, float softening) {
  local float4 tile[256];
  const float4 own = position[get_global_id(0)];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int first = 0; first < n; first += 256) {
    tile[get_local_id(0)] = position[first + get_local_id(0)];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int j = 0; j < 256; ++j) {
      const float dx = tile[j].x - own.x, dy = tile[j].y - own.y, dz = tile[j].z - own.z;
      const float inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
      const float pull = tile[j].w * inverse * inverse * inverse;
      ax += dx * pull;
      ay += dy * pull;
      az += dz * pull;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  acceleration[get_global_id(0)] = (float4)(ax, ay, az, 0.0f);
}

kernel void nbody_plain(global const float4* restrict position, global float4* restrict acceleration, int n, float softening) {
  const float4 own = position[get_global_id(0)];
  float ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < n; ++j) {
    const float dx = position[j].x - own.x, dy = position[j].y - own.y, dz = position[j].z - own.z;
    const float inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
    const float pull = position[j].w * inverse * inverse * inverse;
    ax += dx * pull;
    ay += dy * pull;
    az += dz * pull;
  }
  acceleration[get_global_id(0)] = (float4)(ax, ay, az, 0.0f);
}

// Sixteen bodies a work-item, in vectors.
kernel void nbody_vectors(global const float4* restrict position, global float4* restrict acceleration, int n, float softening) {
  const size_t base = get_global_id(0) * 16;
  float own_x[16], own_y[16], own_z[16];
  for (int k = 0; k < 16; ++k) {
    own_x[k] = position[base + k].x;
    own_y[k] = position[base + k].y;
    own_z[k] = position[base + k].z;
  }
  const float16 x = vload16(0, own_x), y = vload16(0, own_y), z = vload16(0, own_z);
  float16 ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (int j = 0; j < n; ++j) {
    const float4 other = position[j];
    const float16 dx = other.x - x, dy = other.y - y, dz = other.z - z;
    const float16 inverse = rsqrt(dx * dx + dy * dy + dz * dz + softening);
    const float16 pull = other.w * inverse * inverse * inverse;
    ax += dx * pull;
    ay += dy * pull;
    az += dz * pull;
  }
  float out_x[16], out_y[16], out_z[16];
  vstore16(ax, 0, out_x);
  vstore16(ay, 0, out_y);
  vstore16(az, 0, out_z);
  for (int k = 0; k < 16; ++k) acceleration[base + k] = (float4)(out_x[k], out_y[k], out_z[k], 0.0f);
}

kernel void matmul(global const float* restrict a, global const float* restrict b, global float* restrict c, int n) {
  local float tile_a[16][16];
  local float tile_b[16][16];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int column = get_global_id(0), row = get_global_id(1);
  float sum = 0.0f;
  for (int k0 = 0; k0 < n; k0 += 16) {
    tile_a[ty][tx] = a[row * n + k0 + tx];
    tile_b[ty][tx] = b[(k0 + ty) * n + column];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < 16; ++k) sum += tile_a[ty][k] * tile_b[k][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  c[row * n + column] = sum;
}

// Four rows by sixteen columns a work-item, in registers.
kernel void matmul_vectors(global const float* restrict a, global const float* restrict b, global float* restrict c, int n) {
  const int column = get_global_id(0), row = 4 * get_global_id(1);
  float16 sum0 = 0.0f, sum1 = 0.0f, sum2 = 0.0f, sum3 = 0.0f;
  for (int k = 0; k < n; ++k) {
    const float16 other = vload16(column, b + (size_t)k * n);
    sum0 += a[row * n + k] * other;
    sum1 += a[(row + 1) * n + k] * other;
    sum2 += a[(row + 2) * n + k] * other;
    sum3 += a[(row + 3) * n + k] * other;
  }
  vstore16(sum0, column, c + (size_t)row * n);
  vstore16(sum1, column, c + (size_t)(row + 1) * n);
  vstore16(sum2, column, c + (size_t)(row + 2) * n);
  vstore16(sum3, column, c + (size_t)(row + 3) * n);
}

// Eight rows by sixteen columns.
kernel void matmul_eight_rows(global const float* restrict a, global const float* restrict b, global float* restrict c, int n) {
  const int column = get_global_id(0), row = 8 * get_global_id(1);
  float16 sum[8] = {};
  for (int k = 0; k < n; ++k) {
    const float16 other = vload16(column, b + (size_t)k * n);
#pragma unroll
    for (int i = 0; i < 8; ++i) sum[i] += a[(row + i) * n + k] * other;
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) vstore16(sum[i], column, c + (size_t)(row + i) * n);
}

kernel void mandelbrot(global int* restrict image, int width, int height, int limit) {
  const int column = get_global_id(0), row = get_global_id(1);
  const float cx = -2.0f + 3.0f * column / width;
  const float cy = -1.0f + 2.0f * row / height;
  float x = 0.0f, y = 0.0f;
  int steps = 0;
  while (steps < limit && x * x + y * y < 4.0f) {
    const float next = x * x - y * y + cx;
    y = 2.0f * x * y + cy;
    x = next;
    ++steps;
  }
  image[row * width + column] = steps;
}

// Sixteen points a work-item, in vectors, until all of them have left the circle.
kernel void mandelbrot_vectors(global int* restrict image, int width, int height, int limit) {
  const int column = get_global_id(0) * 16, row = get_global_id(1);
  const float16 lane = (float16)(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const float16 cx = -2.0f + 3.0f * (lane + column) / width;
  const float cy = -1.0f + 2.0f * row / height;
  float16 x = 0.0f, y = 0.0f;
  int16 steps = 0;
  for (int i = 0; i < limit; ++i) {
    const float16 xx = x * x, yy = y * y;
    const int16 inside = xx + yy < 4.0f;
    if (!any(inside)) break;
    steps -= inside;
    y = 2.0f * x * y + cy;
    x = xx - yy + cx;
  }
  vstore16(steps, 0, image + row * width + column);
}

kernel void stencil(global const float* restrict in, global float* restrict out, int width, int height) {
  const int x = get_global_id(0), y = get_global_id(1);
  if (x > 0 && x < width - 1 && y > 0 && y < height - 1) {
    const int i = y * width + x;
    out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
  }
}

// A work-item a row.
kernel void stencil_rows(global const float* restrict in, global float* restrict out, int width, int height) {
  const int y = get_global_id(0);
  if (y == 0 || y >= height - 1) return;
  for (int i = y * width + 1; i < (y + 1) * width - 1; ++i) out[i] = 0.25f * (in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
}

kernel void transpose(global const float* restrict in, global float* restrict out, int side) {
  local float tile[32][33];
  const int tx = get_local_id(0), ty = get_local_id(1);
  int x = get_group_id(0) * 32 + tx, y = get_group_id(1) * 32 + ty;
  for (int j = 0; j < 32; j += 8) tile[ty + j][tx] = in[(y + j) * side + x];
  barrier(CLK_LOCAL_MEM_FENCE);
  x = get_group_id(1) * 32 + tx;
  y = get_group_id(0) * 32 + ty;
  for (int j = 0; j < 32; j += 8) out[(y + j) * side + x] = tile[tx][ty + j];
}

kernel void transpose_plain(global const float* restrict in, global float* restrict out, int side) {
  const int x = get_global_id(0), y = get_global_id(1);
  out[x * side + y] = in[y * side + x];
}

// Blocks of 16 x 16 a work-item.
kernel void transpose_blocks(global const float* restrict in, global float* restrict out, int side) {
  const int x = get_global_id(0) * 16, y = get_global_id(1) * 16;
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 16; ++j) out[(x + i) * side + y + j] = in[(y + j) * side + x + i];
}

kernel void block_sums(global const float* restrict x, global float* restrict sums) {
  local float part[256];
  const int t = get_local_id(0);
  const size_t i = get_group_id(0) * 512 + t;
  part[t] = x[i] + x[i + 256];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_ = 128; half_ > 0; half_ >>= 1) {
    if (t < half_) part[t] += part[t + half_];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (t == 0) sums[get_group_id(0)] = part[0];
}

// A work-item a sum, in vectors.
kernel void block_sums_vectors(global const float* restrict x, global float* restrict sums) {
  const size_t block = get_global_id(0);
  float16 sum = 0.0f, other = 0.0f;
  for (int i = 0; i < 32; i += 2) {
    sum += vload16(block * 32 + i, x);
    other += vload16(block * 32 + i + 1, x);
  }
  sum += other;
  const float8 eight = sum.lo + sum.hi;
  const float4 four = eight.lo + eight.hi;
  sums[block] = four.x + four.y + four.z + four.w;
}

kernel void histogram(global const uchar* restrict data, int n, global uint* restrict counts) {
  local uint own[256];
  own[get_local_id(0)] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&own[data[i]]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&counts[get_local_id(0)], own[get_local_id(0)]);
}

// A work-item counts a part of the data in tables of its own, four of them, so that equal neighbours do not wait for each other.
kernel void histogram_private(global const uchar* restrict data, int n, global uint* restrict counts) {
  uint own[4][256];
  for (int k = 0; k < 4; ++k)
    for (int bin = 0; bin < 256; ++bin) own[k][bin] = 0;
  const int part = n / get_global_size(0), first = get_global_id(0) * part;
  for (int i = first; i < first + part; i += 4)
    for (int k = 0; k < 4; ++k) ++own[k][data[i + k]];
  for (int bin = 0; bin < 256; ++bin) atomic_add(&counts[bin], own[0][bin] + own[1][bin] + own[2][bin] + own[3][bin]);
}

// A group a row: trees in local memory.
kernel void softmax(global const float* restrict in, global float* restrict out, int columns) {
  local float part[256];
  const int t = get_local_id(0);
  global const float* row = in + get_group_id(0) * (size_t)columns;
  global float* to = out + get_group_id(0) * (size_t)columns;
  float most = -3.402823466e38f;
  for (int i = t; i < columns; i += 256) most = fmax(most, row[i]);
  part[t] = most;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_ = 128; half_ > 0; half_ >>= 1) {
    if (t < half_) part[t] = fmax(part[t], part[t + half_]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  most = part[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
  for (int i = t; i < columns; i += 256) {
    const float e = exp(row[i] - most);
    to[i] = e;
    sum += e;
  }
  part[t] = sum;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_ = 128; half_ > 0; half_ >>= 1) {
    if (t < half_) part[t] += part[t + half_];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float scale = 1.0f / part[0];
  for (int i = t; i < columns; i += 256) to[i] *= scale;
}

// A work-item a row, in vectors of eight; 1,000 is a multiple of eight.
kernel void softmax_vectors(global const float* restrict in, global float* restrict out, int columns) {
  global const float* row = in + get_global_id(0) * (size_t)columns;
  global float* to = out + get_global_id(0) * (size_t)columns;
  float8 most8 = -3.402823466e38f;
  for (int i = 0; i < columns / 8; ++i) most8 = fmax(most8, vload8(i, row));
  const float4 most4 = fmax(most8.lo, most8.hi);
  const float most = fmax(fmax(most4.x, most4.y), fmax(most4.z, most4.w));
  float8 sum8 = 0.0f;
  for (int i = 0; i < columns / 8; ++i) {
    const float8 e = exp(vload8(i, row) - most);
    vstore8(e, i, to);
    sum8 += e;
  }
  const float4 sum4 = sum8.lo + sum8.hi;
  const float scale = 1.0f / (sum4.x + sum4.y + sum4.z + sum4.w);
  for (int i = 0; i < columns / 8; ++i) vstore8(vload8(i, to) * scale, i, to);
}

kernel void csr(int rows, global const int* restrict begin, global const int* restrict column, global const float* restrict value,
                global const float* restrict x, global float* restrict y) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0.0f;
  for (int i = begin[row]; i < begin[row + 1]; ++i) sum += value[i] * x[column[i]];
  y[row] = sum;
}

constant float filter[49] = {
    1, 2, 3, 4,  3, 2, 1, 2, 5, 7,  8, 6, 4, 2, 3, 7, 9, 12, 10, 6, 3, 4, 9, 13, 16,
    13, 8, 4, 3, 6, 11, 12, 9, 7, 3, 2, 4, 6, 8,  7, 5, 2, 1, 2, 3, 4, 3, 2, 1,
};

kernel void convolve(global const float* restrict in, global float* restrict out, int width, int height) {
  local float tile[22][22];
  const int tx = get_local_id(0), ty = get_local_id(1);
  const int left = get_group_id(0) * 16 - 3, top = get_group_id(1) * 16 - 3;
  for (int j = ty; j < 22; j += 16)
    for (int i = tx; i < 22; i += 16) {
      const int x = left + i, y = top + j;
      tile[j][i] = x >= 0 && x < width && y >= 0 && y < height ? in[y * width + x] : 0.0f;
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  float sum = 0.0f;
#pragma unroll
  for (int j = 0; j < 7; ++j)
#pragma unroll
    for (int i = 0; i < 7; ++i) sum += filter[j * 7 + i] * tile[ty + j][tx + i];
  out[get_global_id(1) * width + get_global_id(0)] = sum;
}

// Sixteen points a work-item, in vectors; at the rim one by one.
kernel void convolve_vectors(global const float* restrict in, global float* restrict out, int width, int height) {
  const int left = get_global_id(0) * 16, y = get_global_id(1);
  if (left >= 16 && left + 32 <= width && y >= 3 && y + 3 < height) {
    float16 sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 7; ++j)
#pragma unroll
      for (int i = 0; i < 7; ++i) sum += filter[j * 7 + i] * vload16(0, in + (y + j - 3) * width + left + i - 3);
    vstore16(sum, 0, out + y * width + left);
    return;
  }
  for (int x = left; x < left + 16; ++x) {
    float sum = 0.0f;
    for (int j = 0; j < 7; ++j)
      for (int i = 0; i < 7; ++i) {
        const int from_x = x + i - 3, from_y = y + j - 3;
        if (from_x >= 0 && from_x < width && from_y >= 0 && from_y < height) sum += filter[j * 7 + i] * in[from_y * width + from_x];
      }
    out[y * width + x] = sum;
  }
}

kernel void lennard_jones(int n, int neighbours, global const double* restrict x, global const double* restrict y, global const double* restrict z,
                          global const int* restrict neighbour, double cutoff_squared, global double* restrict fx, global double* restrict fy,
                          global double* restrict fz) {
  const int i = get_global_id(0);
  const double xi = x[i], yi = y[i], zi = z[i];
  double sx = 0.0, sy = 0.0, sz = 0.0;
  for (int k = 0; k < neighbours; ++k) {
    const int j = neighbour[k * n + i];
    const double dx = xi - x[j], dy = yi - y[j], dz = zi - z[j];
    const double squared = dx * dx + dy * dy + dz * dz;
    if (squared < cutoff_squared) {
      const double inverse = 1.0 / squared;
      const double six = inverse * inverse * inverse;
      const double force = 48.0 * inverse * six * (six - 0.5);
      sx += force * dx;
      sy += force * dy;
      sz += force * dz;
    }
  }
  fx[i] = sx;
  fy[i] = sy;
  fz[i] = sz;
}

// Without the branch, so that work-items stay together.
kernel void lennard_jones_select(int n, int neighbours, global const double* restrict x, global const double* restrict y,
                                 global const double* restrict z, global const int* restrict neighbour, double cutoff_squared,
                                 global double* restrict fx, global double* restrict fy, global double* restrict fz) {
  const int i = get_global_id(0);
  const double xi = x[i], yi = y[i], zi = z[i];
  double sx = 0.0, sy = 0.0, sz = 0.0;
  for (int k = 0; k < neighbours; ++k) {
    const int j = neighbour[k * n + i];
    const double dx = xi - x[j], dy = yi - y[j], dz = zi - z[j];
    const double squared = dx * dx + dy * dy + dz * dz;
    const double inverse = 1.0 / squared;
    const double six = inverse * inverse * inverse;
    const double force = squared < cutoff_squared ? 48.0 * inverse * six * (six - 0.5) : 0.0;
    sx += force * dx;
    sy += force * dy;
    sz += force * dz;
  }
  fx[i] = sx;
  fy[i] = sy;
  fz[i] = sz;
}

kernel void scan(global const int* restrict in, global int* restrict out) {
  local int buffer[2][256];
  const int t = get_local_id(0), i = get_global_id(0);
  int from = 0;
  buffer[0][t] = in[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int step = 1; step < 256; step *= 2) {
    const int value = buffer[from][t];
    buffer[1 - from][t] = t >= step ? value + buffer[from][t - step] : value;
    from = 1 - from;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  out[i] = buffer[from][t];
}

// A work-item a block.
kernel void scan_rows(global const int* restrict in, global int* restrict out) {
  const size_t first = get_global_id(0) * 256;
  int sum = 0;
  for (size_t i = first; i < first + 256; ++i) out[i] = sum += in[i];
}
