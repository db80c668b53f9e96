// The order in which the elements of a tensor lie in memory. Names are PyTorch's.
#pragma once

#include <cstdint>

namespace tenon {

// A format is a property of strides, not of shapes or values: x.to(channels_last) holds what x
// holds, and every operator takes it. Some shapes are in several formats at once, such as those
// with one channel.
enum class MemoryFormat : uint8_t {
  contiguous_format,  // row-major: the last dimension is the innermost
  preserve_format,    // of a copy: as what is copied, if that has no gaps; no tensor's own format
  channels_last,      // four dimensions (n, c, h, w), in memory n, h, w, c
  channels_last_3d,   // five dimensions (n, c, d, h, w), in memory n, d, h, w, c
};

// Give the values without the name of the type.
inline constexpr MemoryFormat contiguous_format = MemoryFormat::contiguous_format,
                              preserve_format = MemoryFormat::preserve_format,
                              channels_last = MemoryFormat::channels_last,
                              channels_last_3d = MemoryFormat::channels_last_3d;

}  // namespace tenon
