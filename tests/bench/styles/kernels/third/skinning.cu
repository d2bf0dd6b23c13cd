// SPDX-License-Identifier: Apache-2.0
// Vertices of a mesh moved by the bones of a skeleton: four bones each, three rows of a matrix a bone.

__device__ float4 scaled(float4 a, float s) { return make_float4(a.x * s, a.y * s, a.z * s, a.w * s); }
__device__ float4 added(float4 a, float4 b, float s) {
  return make_float4(a.x + b.x * s, a.y + b.y * s, a.z + b.z * s, a.w + b.w * s);
}
__device__ float dot(float4 a, float x, float y, float z) { return a.x * x + a.y * y + a.z * z; }

extern "C" __global__ void skin(const float4* __restrict__ positions, const float4* __restrict__ normals,
                                const uchar4* __restrict__ bones, const float4* __restrict__ weights,
                                const float4* __restrict__ palette, float4* __restrict__ new_positions,
                                float4* __restrict__ new_normals, int vertices) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= vertices) return;
  const uchar4 bone = bones[i];
  const float4 weight = weights[i];
  float4 row[3];
#pragma unroll
  for (int r = 0; r < 3; ++r) {
    row[r] = scaled(__ldg(&palette[bone.x * 3 + r]), weight.x);
    row[r] = added(row[r], __ldg(&palette[bone.y * 3 + r]), weight.y);
    row[r] = added(row[r], __ldg(&palette[bone.z * 3 + r]), weight.z);
    row[r] = added(row[r], __ldg(&palette[bone.w * 3 + r]), weight.w);
  }
  const float4 p = positions[i], n = normals[i];
  new_positions[i] = make_float4(dot(row[0], p.x, p.y, p.z) + row[0].w, dot(row[1], p.x, p.y, p.z) + row[1].w,
                                 dot(row[2], p.x, p.y, p.z) + row[2].w, 1.0f);
  const float x = dot(row[0], n.x, n.y, n.z), y = dot(row[1], n.x, n.y, n.z), z = dot(row[2], n.x, n.y, n.z);
  const float inverse = rsqrtf(x * x + y * y + z * z);
  new_normals[i] = make_float4(x * inverse, y * inverse, z * inverse, 0.0f);
}
