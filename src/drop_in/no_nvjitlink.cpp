// SPDX-License-Identifier: Apache-2.0
// An empty library with the name of NVIDIA's nvJitLink. A process that has loaded it finds no function in it
// when it asks for that library. Numba then links PTX through the driver, instead of giving the driver
// machine code of a GPU.
