// The HDF5 part of a checkpoint as an image in memory, which is laid out for writing. It is read by
// its index (checkpoint_index.h) or by another process. docs/checkpoints.md describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/dtype.h>
#include <tenon/core/shape.h>
#include <tenon/serialization/hdf5_memory.h>

namespace tenon {

// The description of a tensor in a checkpoint.
struct StoredTensor {
  std::string key;
  DType dtype = DType::f32;
  Shape shape;
  uint64_t offset = 0;     // where its values begin in the file; 0 for a tensor without elements
  uint64_t bytes = 0;      // the size of its values
  std::string group = {};  // "@optimizer"; empty for a tensor of the model
  uint32_t shard = 0;  // which file of a checkpoint in several it is in, from 1; 0: the only one
};

// The data set of a group "@…" that holds its numbers and texts; no tensor has such a name.
inline constexpr const char* kValuesKey = "@values";

struct ImageContents {
  std::vector<StoredTensor> tensors;                 // in the order in which they were saved
  std::optional<std::vector<std::string>> wrappers;  // nullopt if the writer did not record them
  std::vector<std::string> groups = {};  // "@…", whatever they hold; set when a file is read
};

// Returns why `key` cannot name a tensor in a file (it is empty or ".", contains a '/' or a zero
// byte, starts with '@', or is not UTF-8), or null if it can.
const char* fault_of_key(std::string_view key);
// The same for a key in a group, which may be kValuesKey, or in none.
const char* fault_of_key(std::string_view group, std::string_view key);

// Lays out a file in `memory` and sets the offsets; the caller writes the values themselves. Takes
// time in proportion to the number of tensors. Throws a CheckpointError for a key that cannot name
// a tensor.
void build_image(ImageContents& contents, MemoryFile& memory);

}  // namespace tenon
