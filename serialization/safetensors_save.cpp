#include <algorithm>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <span>

#include <nlohmann/json.hpp>

#include <tenon/core/base/printable.h>
#include <tenon/core/format.h>
#include <tenon/modules/module.h>
#include <tenon/serialization/atomic_file.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/safetensors.h>

namespace tenon {
namespace {

constexpr size_t kValuesAlignment = 64;

uint64_t bytes_of_values(const NamedShape& tensor) {
  return value_bytes(tensor.shape, tensor.dtype);
}

[[noreturn]] void refuse(const std::filesystem::path& path, const std::string& key,
                         const char* why) {
  throw CheckpointError(fmt::format("cannot save checkpoint '{}': tensor '{}' {}",
                                    printable(path.native()), printable(key), why));
}

void require_storable(const std::filesystem::path& path, const std::vector<NamedShape>& tensors) {
  for (const auto& [key, shape, dtype] : tensors) {
    auto fail = [&, &name = key](const char* why) { refuse(path, name, why); };
    if (key == "__metadata__") fail("has the name of the format's metadata. Rename it");
    if (!is_utf8(key)) fail("has a name that is not valid UTF-8. Rename it");
  }
}

// Returns the positions of the tensors by the size of their elements, the largest first: so every
// element lies at a multiple of its size.
std::vector<size_t> order_of_values(const std::vector<NamedShape>& tensors) {
  std::vector<size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return size_of(tensors[a].dtype) > size_of(tensors[b].dtype);
  });
  return order;
}

// Returns the length of the header and the header itself. Spaces fill it to the alignment of
// values, and to the size of the part of a file that AtomicFile writes last.
std::string header_of(const std::vector<NamedShape>& tensors, const std::vector<size_t>& order) {
  std::vector<uint64_t> begins(tensors.size());
  uint64_t end = 0;
  for (size_t i : order) {
    begins[i] = end;
    end += bytes_of_values(tensors[i]);
  }
  // Programs that ask the file whose it is (transformers) want to read "pt", "tf" or "flax".
  std::string text = R"(        {"__metadata__":{"format":"pt"})";
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto& [key, shape, dtype] = tensors[i];
    std::string dims;
    for (int64_t dim : shape) dims += fmt::format("{}{}", dims.empty() ? "" : ",", dim);
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[{}],"data_offsets":[{},{}]}})",
                        nlohmann::json(key).dump(), safetensors_name(dtype), dims, begins[i],
                        begins[i] + bytes_of_values(tensors[i]));
  }
  text += '}';
  const size_t filled = (text.size() + kValuesAlignment - 1) / kValuesAlignment * kValuesAlignment;
  text.resize(std::max(filled, kCheckpointHeaderBytes), ' ');
  const uint64_t length = text.size() - sizeof length;
  std::memcpy(text.data(), &length, sizeof length);
  return text;
}

void write_state_dict(const std::filesystem::path& path, const nn::StateDict& tensors) {
  std::vector<NamedShape> shapes;
  for (const auto& [key, tensor] : tensors) {
    if (!tensor.defined()) refuse(path, key, "is undefined");
    shapes.push_back({key, tensor.shape(), tensor.dtype()});
  }
  write_safetensors(path, shapes, [&](size_t i) { return tensors[i].second; });
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedShape>& tensors,
                       const std::function<Tensor(size_t)>& read) {
  require_storable(path, tensors);
  const std::vector<size_t> order = order_of_values(tensors);
  const std::string header = header_of(tensors, order);
  const auto bytes = std::as_bytes(std::span(header));
  AtomicFile file(path);
  file.append(bytes.data() + kCheckpointHeaderBytes, bytes.size() - kCheckpointHeaderBytes);
  for (size_t i : order) append_values(file, read(i), bytes_of_values(tensors[i]));
  file.commit(bytes.first(kCheckpointHeaderBytes));
}

void save_safetensors(const std::filesystem::path& path, const nn::StateDict& tensors) {
  naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path,
                                         [&] { write_state_dict(path, tensors); });
}
void save_safetensors(const std::filesystem::path& path, nn::ModuleRef model) {
  naming_lack_of_memory<CheckpointError>("cannot save checkpoint", path,
                                         [&] { write_state_dict(path, nn::state_dict(model)); });
}

}  // namespace tenon
