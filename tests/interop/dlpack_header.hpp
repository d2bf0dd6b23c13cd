// SPDX-License-Identifier: Apache-2.0
// Compares quern's structs with DLPack's own header, from a package that contains it.
#pragma once

#include <dlpack.h>
#include <quern/dlpack_tensor.hpp>

#include <cstddef>

static_assert(DLPACK_MAJOR_VERSION == quern::dlpack::Version{}.major);
static_assert(DLPACK_MINOR_VERSION == quern::dlpack::Version{}.minor);
static_assert(sizeof(DLTensor) == sizeof(quern::dlpack::Tensor));
static_assert(sizeof(DLManagedTensor) == sizeof(quern::dlpack::ManagedTensor));
static_assert(sizeof(DLManagedTensorVersioned) == sizeof(quern::dlpack::ManagedTensorVersioned));
#define QUERN_SAME_PLACE(theirs, their_field, ours, our_field) \
  static_assert(offsetof(theirs, their_field) == offsetof(quern::dlpack::ours, our_field))
QUERN_SAME_PLACE(DLTensor, data, Tensor, data);
QUERN_SAME_PLACE(DLTensor, device, Tensor, device);
QUERN_SAME_PLACE(DLTensor, ndim, Tensor, ndim);
QUERN_SAME_PLACE(DLTensor, dtype, Tensor, dtype);
QUERN_SAME_PLACE(DLTensor, shape, Tensor, shape);
QUERN_SAME_PLACE(DLTensor, strides, Tensor, strides);
QUERN_SAME_PLACE(DLTensor, byte_offset, Tensor, byte_offset);
QUERN_SAME_PLACE(DLManagedTensor, dl_tensor, ManagedTensor, tensor);
QUERN_SAME_PLACE(DLManagedTensor, manager_ctx, ManagedTensor, context);
QUERN_SAME_PLACE(DLManagedTensor, deleter, ManagedTensor, deleter);
QUERN_SAME_PLACE(DLManagedTensorVersioned, version, ManagedTensorVersioned, version);
QUERN_SAME_PLACE(DLManagedTensorVersioned, manager_ctx, ManagedTensorVersioned, context);
QUERN_SAME_PLACE(DLManagedTensorVersioned, deleter, ManagedTensorVersioned, deleter);
QUERN_SAME_PLACE(DLManagedTensorVersioned, flags, ManagedTensorVersioned, flags);
QUERN_SAME_PLACE(DLManagedTensorVersioned, dl_tensor, ManagedTensorVersioned, tensor);
#undef QUERN_SAME_PLACE
static_assert(kDLCPU == static_cast<int>(quern::dlpack::DeviceType::cpu));
static_assert(kDLCUDA == static_cast<int>(quern::dlpack::DeviceType::cuda));
static_assert(kDLCUDAHost == static_cast<int>(quern::dlpack::DeviceType::cuda_host));
static_assert(kDLCUDAManaged == static_cast<int>(quern::dlpack::DeviceType::cuda_managed));
static_assert(kDLBfloat == static_cast<int>(quern::dlpack::TypeCode::bfloat));
static_assert(kDLComplex == static_cast<int>(quern::dlpack::TypeCode::complex));
static_assert(kDLBool == static_cast<int>(quern::dlpack::TypeCode::boolean));
static_assert(DLPACK_FLAG_BITMASK_READ_ONLY == quern::dlpack::kReadOnly);
static_assert(DLPACK_FLAG_BITMASK_IS_COPIED == quern::dlpack::kCopied);
