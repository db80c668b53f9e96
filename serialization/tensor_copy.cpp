#include <memory>

#include <tenon/core/base/input_file.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/safetensors.h>
#include <tenon/serialization/tensor_copy.h>

namespace tenon {
namespace {

void add_parts(TensorFile& file, const std::filesystem::path& path) {
  const auto native = file.native;
  const auto stored = std::make_shared<std::vector<StoredTensor>>(native->contents().tensors);
  try {
    for (const std::string& group : native->contents().groups)
      for (StoredTensor& tensor : native->group(group)) {
        file.tensors.push_back({group + "/" + tensor.key, tensor.shape, tensor.dtype, ""});
        stored->push_back(std::move(tensor));
      }
  } catch (const NamedFileError&) {
    throw;
  } catch (const CheckpointError& error) {
    throw CheckpointError(
        fmt::format("cannot load checkpoint '{}': {}", printable(path.native()), error.what()));
  }
  file.read = [native, stored](size_t i) { return read_values(*native, (*stored)[i]); };
}

// "@optimizer/state.step" is "state.step" of the group "@optimizer".
StoredTensor stored_tensor(const NamedShape& tensor) {
  const size_t slash = tensor.key.starts_with('@') ? tensor.key.find('/') : std::string::npos;
  if (slash == std::string::npos) return {tensor.key, tensor.dtype, tensor.shape};
  return {tensor.key.substr(slash + 1), tensor.dtype, tensor.shape, 0, 0,
          tensor.key.substr(0, slash)};
}

}  // namespace

TensorFile open_all_tensors(const std::filesystem::path& path, const std::string& section,
                            bool verify) {
  return naming_lack_of_memory<CheckpointError>("cannot load checkpoint", path, [&] {
    TensorFile file = open_tensor_file(path, section, verify);
    if (file.native) add_parts(file, path);
    file.read = [path, read = std::move(file.read), tensors = file.tensors](size_t i) {
      return naming_tensor(path, tensors[i].key, [&] {
        if (!tensors[i].fault.empty()) throw CheckpointError(tensors[i].fault);
        return read(i);
      });
    };
    return file;
  });
}

void write_tensors(const std::filesystem::path& path, FileFormat format, const TensorSource& source,
                   const SaveOptions& options) {
  naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path, [&] {
    if (format == FileFormat::safetensors && options.max_shard_size > 0)
      throw ValueError("write_tensors: safetensors files are not written in shards");
    if (format == FileFormat::safetensors)
      return write_safetensors(path, source.tensors, source.read);
    if (format != FileFormat::tenon)
      throw ValueError(fmt::format("write_tensors: {} files are not written", name_of(format)));
    ImageContents contents{{}, source.wrappers};
    for (const NamedShape& tensor : source.tensors)
      contents.tensors.push_back(stored_tensor(tensor));
    write_checkpoint(path, std::move(contents), source.read, options);
  });
}

}  // namespace tenon
