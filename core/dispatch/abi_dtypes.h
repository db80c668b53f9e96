// Which dtypes a version of the plugin ABI knows. A plugin is not asked for others.
#pragma once

#include <cstdint>

#include <tenon/core/dtype.h>

namespace tenon {

// Returns the minor version of the ABI that added a dtype. A new dtype needs a line here, with the
// minor version that adds it to plugins/abi/abi.h.
constexpr uint32_t abi_minor_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
    case DType::f64:
    case DType::f16:
    case DType::bf16:
    case DType::i64:
    case DType::i32:
    case DType::u8:
    case DType::boolean:
      return 0;
  }
  return ~0u;
}

// Returns whether a plugin that was built with this minor version of the ABI knows the dtype.
constexpr bool abi_knows(uint32_t minor, DType dtype) { return abi_minor_of(dtype) <= minor; }

}  // namespace tenon
