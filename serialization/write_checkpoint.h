// How a file of tensors is written that nobody has as a model.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>

#include <tenon/core/tensor.h>
#include <tenon/serialization/image.h>
#include <tenon/serialization/save_options.h>

namespace tenon {

// Writes a file, or an index and shards, with tensors of which read(i) makes one at a time; their
// places need not be set. Throws a CheckpointError as save does.
void write_checkpoint(const std::filesystem::path& path, ImageContents contents,
                      const std::function<Tensor(size_t)>& read, const SaveOptions& options);

}  // namespace tenon
