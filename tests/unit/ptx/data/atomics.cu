// SPDX-License-Identifier: Apache-2.0
extern "C" __global__ void atomics(int* i, unsigned* u, unsigned long long* l, float* f, double* d, short* s) {
  __shared__ int shared_counter;
  if (threadIdx.x == 0) shared_counter = 0;
  __syncthreads();
  atomicAdd(&shared_counter, 1);
  atomicAdd(i, 1);
  atomicSub(i, 2);
  atomicExch(i + 1, 3);
  atomicMin(i + 2, 4);
  atomicMax(u, 5u);
  atomicInc(u + 1, 6u);
  atomicDec(u + 2, 7u);
  atomicAnd(u + 3, 8u);
  atomicOr(u + 4, 9u);
  atomicXor(u + 5, 10u);
  u[6] = atomicCAS(u + 6, 1u, 2u);
  l[0] = atomicCAS(l + 1, 1ull, 2ull);
  atomicAdd(l + 2, 3ull);
  atomicMax(l + 3, 4ull);
  atomicAdd(f, 1.0f);
  atomicAdd(d, 1.0);
  atomicCAS(reinterpret_cast<unsigned short*>(s), static_cast<unsigned short>(1), static_cast<unsigned short>(2));
  atomicAdd_system(i + 3, 1);
  atomicAdd_block(i + 4, 1);
  __threadfence();
  __threadfence_block();
  __threadfence_system();
  int loaded;
  __nv_atomic_load(i + 5, &loaded, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_store_n(i + 5, loaded + shared_counter, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);
  __nv_atomic_fetch_add(i + 5, 1, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_BLOCK);
  __nv_atomic_fetch_add(i + 5, 1, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM);
}

extern "C" __global__ void spin_lock(int* lock, volatile int* value) {
  while (atomicCAS(lock, 0, 1) != 0) __nanosleep(100);
  *value = *value + 1;
  atomicExch(lock, 0);
}
