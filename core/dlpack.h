// Tensors of other libraries without a copy, by DLPack (https://dmlc.github.io/dlpack). The structs
// are those of dlpack/dlpack.h, which a file that uses these functions includes; Tenon does not
// need it.
#pragma once

#include <tenon/core/tensor.h>

struct DLManagedTensor;
struct DLManagedTensorVersioned;

namespace tenon {

// Returns a tensor on cpu:0 that uses the memory of `managed`, whose deleter is called once, when
// the last tensor that shares the memory is gone and the work that uses it has ended (see
// from_blob). Takes memory of the CPU, pinned or not, and the types of Tenon in one lane: float of
// 16, 32 and 64 bits, bfloat, int of 32 and 64 bits, uint of 8 bits, and bool. If this throws, the
// caller still owns `managed`: a ValueError for a null pointer, a DeviceError for memory of another
// device, a DTypeError for another type, a ShapeError for a shape that no tensor has, and the
// errors of from_blob for the address and the strides.
TENON_API Tensor from_dlpack(DLManagedTensor* managed);
// Returns the same for the struct of DLPack 1, and throws a ValueError for any other major version.
// Memory that must not be written is copied, and given back at once.
TENON_API Tensor from_dlpack(DLManagedTensorVersioned* managed);

// Returns the values of a tensor of the CPU for another library, which calls `deleter` when it
// does not need them any more; until then the memory stays. Waits for the values. What is written
// on one side is seen on the other; a change from outside does not count in version(). Throws an
// AutogradError for a tensor that requires a gradient (export its detach()), and a DeviceError for
// a tensor on another device.
TENON_API DLManagedTensor* to_dlpack(const Tensor& tensor);
// Returns the same in the form of DLPack 1.0, which has a version.
TENON_API DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

}  // namespace tenon
