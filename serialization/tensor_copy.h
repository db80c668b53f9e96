// Files of tensors, read and written one tensor at a time, with all that a checkpoint holds. For
// the `tenon` command, which links the library.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/serialization/key_map.h>
#include <tenon/serialization/save_options.h>
#include <tenon/serialization/tensor_file.h>

namespace tenon {

// Opens a file of any format. The parts of a training run follow the tensors of its model, as
// "@optimizer/state.fc1.weight.exp_avg"; "@optimizer/@values" are the bytes that hold its numbers
// and texts. Errors, those of read() too, name the file. Throws a CheckpointError as load does.
TENON_API TensorFile open_all_tensors(const std::filesystem::path& path, const std::string& section,
                                      bool verify);

// What to write. Names that begin with "@" are those of parts.
struct TensorSource {
  std::vector<NamedShape> tensors;
  std::optional<std::vector<std::string>> wrappers;
  std::function<Tensor(size_t)> read;  // makes tensor i; each is asked for once
};
// Writes a checkpoint or a safetensors file, which appears complete or not at all. Throws a
// CheckpointError as save does, and a ValueError for another format.
TENON_API void write_tensors(const std::filesystem::path& path, FileFormat format,
                             const TensorSource& source, const SaveOptions& options = {});

}  // namespace tenon
