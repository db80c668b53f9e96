// safetensors files (https://github.com/huggingface/safetensors): the length of a header, the
// header in JSON, values. save_safetensors is in checkpoint.h.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include <tenon/serialization/key_map.h>
#include <tenon/serialization/tensor_file.h>

namespace tenon {

// Whether a file that begins with these bytes looks like a safetensors file.
bool begins_as_safetensors(std::string_view first_bytes);

// Returns the format's name of a dtype, such as "BF16".
std::string_view safetensors_name(DType dtype);

// Checks the header and returns the tensors. The header takes memory in proportion to its length,
// which is at most that of the file and 100 MB: about 15 times as much. Throws a CheckpointError
// for everything that the specification forbids: a header that is longer than the file, that is no
// JSON, nested in another way or with a name twice; a shape whose size overflows or is not that of
// the values; values that overlap, leave gaps or do not end with the file.
TensorFile open_safetensors(std::shared_ptr<const InputFile> file);

// Whether a file that begins with these bytes can be an index of several safetensors files.
bool begins_as_safetensors_index(std::string_view first_bytes);
// Returns the tensors of all files that an index at `path` lists, in the order of their names.
// Throws a CheckpointError for one that is missing or has other tensors than the index says.
TensorFile open_safetensors_index(const InputFile& file, const std::filesystem::path& path);

// Writes tensors, of which read(i) makes one at a time. Throws a CheckpointError as
// save_safetensors does.
void write_safetensors(const std::filesystem::path& path, const std::vector<NamedShape>& tensors,
                       const std::function<Tensor(size_t)>& read);

}  // namespace tenon
