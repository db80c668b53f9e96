#include <unordered_map>
#include <utility>

#include <tenon/core/base/input_file.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/checkpoint_file.h>
#include <tenon/serialization/checkpoint_reader.h>
#include <tenon/serialization/tensor_file.h>

namespace tenon {

struct CheckpointReader::Opened {
  std::filesystem::path path;
  TensorFile file;
  std::vector<NamedShape> tensors;
  std::vector<size_t> places;  // of the tensors in the file
  std::unordered_map<std::string_view, size_t> by_key;
};

CheckpointReader::CheckpointReader(std::unique_ptr<Opened> opened) : opened_(std::move(opened)) {}
CheckpointReader::CheckpointReader(CheckpointReader&&) noexcept = default;
CheckpointReader& CheckpointReader::operator=(CheckpointReader&&) noexcept = default;
CheckpointReader::~CheckpointReader() = default;

FileFormat CheckpointReader::format() const { return opened_->file.format; }
const std::vector<NamedShape>& CheckpointReader::tensors() const { return opened_->tensors; }
const std::optional<std::vector<std::string>>& CheckpointReader::wrappers() const {
  return opened_->file.wrappers;
}
bool CheckpointReader::contains(std::string_view key) const {
  return opened_->by_key.contains(key);
}
const NamedShape& CheckpointReader::at(std::string_view key) const {
  return opened_->tensors[position(key)];
}

size_t CheckpointReader::position(std::string_view key) const {
  const auto found = opened_->by_key.find(key);
  if (found != opened_->by_key.end()) return found->second;
  for (const FileTensor& tensor : opened_->file.tensors)
    if (tensor.key == key)
      throw StateDictError(fmt::format("'{}': tensor '{}' cannot be read: {}",
                                       printable(opened_->path.native()), printable(key),
                                       printable(tensor.fault)));
  throw StateDictError(fmt::format("'{}' has no tensor '{}' among its {}",
                                   printable(opened_->path.native()), printable(key),
                                   opened_->tensors.size()));
}

Tensor CheckpointReader::read(std::string_view key) const {
  const size_t at = position(key);
  return naming_lack_of_memory<CheckpointError>("cannot load checkpoint", opened_->path, [&] {
    return naming_tensor(opened_->path, opened_->tensors[at].key, [&] {
      const Tensor values = opened_->file.read(opened_->places[at]);
      // A view must not keep the memory of all that lies around it.
      const auto bytes = static_cast<uint64_t>(values.numel()) * size_of(values.dtype());
      return impl_of(values).storage->bytes > 2 * bytes + 4096 ? values.clone().wait() : values;
    });
  });
}

CheckpointReader open(const std::filesystem::path& path, const std::string& section, bool verify) {
  return naming_lack_of_memory<CheckpointError>("cannot load checkpoint", path, [&] {
    auto opened = std::make_unique<CheckpointReader::Opened>();
    opened->path = path;
    opened->file = open_tensor_file(path, section, verify, Reads::any);
    for (size_t i = 0; i < opened->file.tensors.size(); ++i) {
      const FileTensor& tensor = opened->file.tensors[i];
      if (!tensor.fault.empty()) continue;
      opened->tensors.push_back({tensor.key, tensor.shape, tensor.dtype});
      opened->places.push_back(i);
    }
    for (size_t i = 0; i < opened->tensors.size(); ++i)
      opened->by_key.emplace(opened->tensors[i].key, i);
    return CheckpointReader(std::move(opened));
  });
}

}  // namespace tenon
