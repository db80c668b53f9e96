// A model in several safetensors files, as Hugging Face's transformers writes it: an index in JSON,
// {"metadata": …, "weight_map": {"layer.weight": "model-00001-of-00002.safetensors"}}, and files
// beside it. None of them has checksums; what is checked is that each file has the tensors that the
// index says, and no others.
#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include <tenon/core/base/json_value.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/serialization/safetensors.h>
#include <tenon/serialization/shards.h>

namespace tenon {
namespace {

constexpr uint64_t kMaxIndexBytes = 100'000'000;  // as of the header of a file

// The names of the files, and of the tensors that each has to have.
using WeightMap = std::map<std::string, std::vector<std::string>>;

CheckpointError no_index() {
  return CheckpointError(
      "it is a text in braces, but no index of safetensors files: that is a JSON object with a "
      "\"weight_map\" of tensors and their files");
}

JsonValue parsed(std::string_view text) {
  try {
    return parse_json(text, 3);
  } catch (const ValueError&) {
    throw no_index();
  }
}

WeightMap read_weight_map(const InputFile& file) {
  if (file.size() > kMaxIndexBytes)
    throw CheckpointError(
        fmt::format("it would be an index in JSON of {} bytes; one has at most {}", file.size(),
                    kMaxIndexBytes));
  std::string text(file.size(), '\0');
  read_exactly(file, text.data(), text.size(), 0);
  const JsonValue index = parsed(text);
  const JsonValue* found = index.kind() == JsonValue::object ? index.find("weight_map") : nullptr;
  if (!found || found->kind() != JsonValue::object || found->fields().empty()) throw no_index();
  // Where a name is there twice, the last counts.
  std::map<std::string_view, const JsonValue*> names;
  for (const auto& [key, name] : found->fields()) names[key] = &name;
  WeightMap files;
  for (const auto& [key, name] : names) {
    if (name->kind() != JsonValue::string || !is_file_name(name->text()))
      throw CheckpointError(fmt::format(
          "its \"weight_map\" names no file in its folder for tensor '{}'", excerpt(key)));
    files[name->text()].emplace_back(key);
  }
  return files;
}

// Throws unless a file has these tensors, which are sorted, and no others.
void require_same(const TensorFile& shard, const std::vector<std::string>& keys) {
  for (const FileTensor& tensor : shard.tensors)
    if (!std::binary_search(keys.begin(), keys.end(), tensor.key))
      throw CheckpointError(fmt::format(
          "it has the tensor '{}', which the index does not list for it", excerpt(tensor.key)));
  std::vector<std::string_view> there;
  for (const FileTensor& tensor : shard.tensors) there.push_back(tensor.key);
  std::sort(there.begin(), there.end());
  for (const std::string& key : keys)
    if (!std::binary_search(there.begin(), there.end(), key))
      throw CheckpointError(
          fmt::format("it lacks the tensor '{}', which the index lists for it", excerpt(key)));
}

}  // namespace

bool begins_as_safetensors_index(std::string_view first_bytes) {
  const size_t at = first_bytes.find_first_not_of(" \t\r\n");
  return at != first_bytes.npos && first_bytes[at] == '{';
}

TensorFile open_safetensors_index(const InputFile& file, const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  const std::filesystem::path folder = (error ? path : real).parent_path();
  TensorFile opened{FileFormat::safetensors, file.size(), {}, {}, {}, {}, {}};
  std::vector<TensorFile> shards;
  std::vector<std::pair<size_t, size_t>> places;  // of each tensor: the shard, and where in it
  for (auto& [name, keys] : read_weight_map(file)) {
    const auto shard_file = std::make_shared<InputFile>(folder / name, "cannot load checkpoint",
                                                        InputFile::throw_as<NamedFileError>);
    try {
      TensorFile shard = open_safetensors(shard_file);
      if (shards.size() >= kMaxOpenShards) shard_file->close_between_reads();
      require_same(shard, keys);
      for (size_t i = 0; i < shard.tensors.size(); ++i) places.emplace_back(shards.size(), i);
      opened.tensors.insert(opened.tensors.end(), shard.tensors.begin(), shard.tensors.end());
      opened.bytes += shard.bytes;
      shards.push_back(std::move(shard));
    } catch (const NamedFileError&) {
      throw;
    } catch (const CheckpointError& fault) {
      shard_file->fail(fault.what());
    }
  }
  opened.read = [shards = std::move(shards), places = std::move(places)](size_t i) {
    return shards[places[i].first].read(places[i].second);
  };
  return opened;
}

}  // namespace tenon
