// The HDF5 part of a checkpoint as an image in memory: laid out for writing, and read back.
// docs/checkpoints.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>
#include <tenon/serialization/hdf5_memory.h>

namespace tenon {

// A tensor as a checkpoint knows it.
struct StoredTensor {
  std::string key;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t offset = 0;  // of its values in the file; 0 where it has none
  uint64_t bytes = 0;
};

struct ImageContents {
  std::vector<StoredTensor> tensors;                 // in the order in which they were saved
  std::optional<std::vector<std::string>> wrappers;  // absent where the writer did not know
};

// Why `key` cannot name a tensor in a file (empty, ".", with a '/' or a zero byte, starting with
// '@', or not UTF-8); null where it can.
const char* fault_of_key(std::string_view key);

// Lays out a file in `memory` and fills in the offsets; the values themselves are left for the
// caller to write. Takes time in proportion to the number of tensors. CheckpointError where a key
// cannot name a tensor.
void build_image(ImageContents& contents, MemoryFile& memory);

// Reads what build_image wrote. CheckpointError where it is anything else; all values lie within
// the image, behind the header, and every shape is one that a tensor may have.
ImageContents read_image(std::span<const std::byte> image);

}  // namespace tenon
