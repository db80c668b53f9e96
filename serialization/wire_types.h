// The numbers of element types that stand in indexes of checkpoints and in answers of
// tenon-hdf5-reader.
#pragma once

#include <array>
#include <cstdint>

#include <tenon/core/dtype.h>
#include <tenon/serialization/hdf5_wire.h>

namespace tenon {

// By hdf5_wire::Type, in the order of its values.
inline constexpr std::array kWireTypes = {DType::f32, DType::f64, DType::f16, DType::bf16,
                                          DType::i64, DType::i32, DType::u8,  DType::boolean};

}  // namespace tenon
