// The index of a checkpoint: keys, shapes, dtypes and places of all tensors, groups and wrappers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/serialization/image.h>

namespace tenon {

// A group "@…" of a checkpoint, which holds no tensor of the model.
struct StoredGroup {
  std::string name;
  std::vector<StoredTensor> tensors = {};
  std::string fault = {};  // why it cannot be read
};

struct CheckpointIndex {
  ImageContents contents;  // the tensors of the model alone
  std::vector<StoredGroup> groups = {};
};

// Returns the bytes of an index of everything in `contents`.
std::string encode_index(const ImageContents& contents);

// Reads an index, of which nothing is believed: values lie between the header of the file and
// `values_end`, are together no more than fit there, and are those of tensors that may exist.
// Throws a CheckpointError for anything else. Returns nullopt for an index of a later version.
std::optional<CheckpointIndex> decode_index(std::string_view bytes, uint64_t values_end);

}  // namespace tenon
