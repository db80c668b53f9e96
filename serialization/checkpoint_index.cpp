#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/serialization/checkpoint_index.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/index_wire.h>
#include <tenon/serialization/wire_types.h>

namespace tenon {
namespace {

uint8_t wire_type(DType dtype) {
  return static_cast<uint8_t>(std::find(kWireTypes.begin(), kWireTypes.end(), dtype) -
                              kWireTypes.begin());
}

[[noreturn]] void refuse_index(const std::string& why) {
  throw CheckpointError("its index is damaged: " + why);
}

// Takes pieces from the bytes of an index.
class IndexBytes {
 public:
  explicit IndexBytes(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(uint64_t count) {
    if (count > bytes_.size()) refuse_index("it ends too early");
    const std::string_view taken = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return taken;
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  std::string_view bytes_;
};

Shape take_shape(IndexBytes& bytes, size_t rank) {
  if (rank > Shape::max_rank)
    throw CheckpointError(
        fmt::format("it has {} dimensions, and a tensor has at most {}", rank, +Shape::max_rank));
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    const auto dim = bytes.take<uint64_t>();
    if (dim > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()))
      throw CheckpointError("a dimension is absurdly large");
    shape.push_back(static_cast<int64_t>(dim));
  }
  // That of a tensor without elements, too, because its strides have to be computed.
  if (!is_addressable(shape))
    throw CheckpointError(fmt::format("its shape {} is absurdly large", shape));
  return shape;
}

class IndexReader {
 public:
  IndexReader(std::string_view bytes, uint64_t values_end)
      : bytes_(bytes), end_(values_end), keys_(1) {}

  std::optional<CheckpointIndex> read() {
    const auto head = bytes_.take<index_wire::Head>();
    if (head.version > index_wire::kVersion) return std::nullopt;
    if (head.version != index_wire::kVersion) refuse_index("it has no version");
    if (head.wrappers != index_wire::kNoWrappers) index_.contents.wrappers.emplace();
    for (uint32_t i = 0; i < head.wrappers && head.wrappers != index_wire::kNoWrappers; ++i)
      index_.contents.wrappers->emplace_back(bytes_.take(bytes_.take<uint32_t>()));
    for (uint32_t i = 0; i < head.groups; ++i) take_group();
    for (uint64_t i = 0; i < head.tensors; ++i) take_tensor();
    if (!bytes_.at_end()) refuse_index("it does not end where it should");
    for (const StoredGroup& group : index_.groups) index_.contents.groups.push_back(group.name);
    return std::move(index_);
  }

 private:
  void take_group() {
    const auto group = bytes_.take<index_wire::Group>();
    std::string name(bytes_.take(group.name_bytes));
    if (!name.starts_with('@') || name.find_first_of(std::string_view("/\0", 2)) != name.npos ||
        !names_.insert(name).second)
      refuse_index(fmt::format("'{}' is no group of its own", excerpt(name)));
    index_.groups.push_back({std::move(name), {}, printable(bytes_.take(group.fault_bytes))});
    keys_.emplace_back();
  }

  void take_tensor() {
    const auto entry = bytes_.take<index_wire::Tensor>();
    if (entry.group > index_.groups.size()) refuse_index("a tensor is in no group");
    StoredTensor tensor;
    if (entry.group > 0) tensor.group = index_.groups[entry.group - 1].name;
    // The key stands behind the dimensions, and errors name it.
    IndexBytes dims(bytes_.take(uint64_t{entry.rank} * sizeof(uint64_t)));
    tensor.key = bytes_.take(entry.key_bytes);
    try {
      describe(entry, dims, tensor);
    } catch (const CheckpointError& error) {
      throw CheckpointError(fmt::format("{}tensor '{}': {}",
                                        entry.group ? printable(tensor.group) + ": " : "",
                                        printable(tensor.key), error.what()));
    }
    (entry.group ? index_.groups[entry.group - 1].tensors : index_.contents.tensors)
        .push_back(std::move(tensor));
  }

  void describe(const index_wire::Tensor& entry, IndexBytes& dims, StoredTensor& tensor) {
    if (const char* fault = fault_of_key(tensor.group, tensor.key))
      throw CheckpointError(fmt::format("its name is not one of a tensor: {}", fault));
    if (!keys_[entry.group].insert(tensor.key).second)
      throw CheckpointError("there are two tensors of that name");
    if (entry.type >= kWireTypes.size())
      throw CheckpointError(fmt::format("its type has the number {}", entry.type));
    tensor.dtype = kWireTypes[entry.type];
    tensor.shape = take_shape(dims, entry.rank);
    tensor.bytes = static_cast<uint64_t>(tensor.shape.numel()) * size_of(tensor.dtype);
    if (tensor.bytes == 0) return;
    tensor.offset = entry.offset;
    if (tensor.offset < kCheckpointHeaderBytes || tensor.offset > end_ ||
        tensor.bytes > end_ - tensor.offset)
      throw CheckpointError(
          fmt::format("its values, {} bytes for its shape {}, are outside the file", tensor.bytes,
                      tensor.shape));
    // So a load takes no more memory than the file is large.
    if (tensor.bytes > end_ - values_)
      throw CheckpointError("its values overlap those of other tensors");
    values_ += tensor.bytes;
  }

  IndexBytes bytes_;
  const uint64_t end_;
  uint64_t values_ = 0;  // bytes of all tensors so far
  CheckpointIndex index_;
  std::unordered_set<std::string> names_;              // of groups
  std::vector<std::unordered_set<std::string>> keys_;  // of the model, and of each group
};

}  // namespace

std::string encode_index(const ImageContents& contents) {
  std::string groups, tensors, bytes;
  std::unordered_map<std::string, uint32_t> numbers = {{"", 0}};
  for (const StoredTensor& tensor : contents.tensors) {
    const auto [number, fresh] =
        numbers.emplace(tensor.group, static_cast<uint32_t>(numbers.size()));
    if (fresh) {
      index_wire::put(groups, index_wire::Group{static_cast<uint32_t>(tensor.group.size()), 0});
      groups += tensor.group;
    }
    index_wire::put(tensors, index_wire::Tensor{number->second,
                                                static_cast<uint32_t>(tensor.key.size()),
                                                wire_type(tensor.dtype),
                                                static_cast<uint8_t>(tensor.shape.size()),
                                                {},
                                                tensor.offset});
    for (const int64_t dim : tensor.shape) index_wire::put(tensors, static_cast<uint64_t>(dim));
    tensors += tensor.key;
  }
  const uint32_t wrappers = contents.wrappers ? static_cast<uint32_t>(contents.wrappers->size())
                                              : index_wire::kNoWrappers;
  index_wire::put(bytes, index_wire::Head{index_wire::kVersion, wrappers,
                                          static_cast<uint32_t>(numbers.size() - 1), 0,
                                          contents.tensors.size()});
  if (contents.wrappers)
    for (const std::string& wrapper : *contents.wrappers) index_wire::put_text(bytes, wrapper);
  return bytes + groups + tensors;
}

std::optional<CheckpointIndex> decode_index(std::string_view bytes, uint64_t values_end) {
  return IndexReader(bytes, values_end).read();
}

}  // namespace tenon
