#include <cstring>
#include <map>
#include <optional>
#include <tuple>

#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/ties.h>

namespace tenon {
namespace {

// Tensors are one if they have the same elements at the same places in memory, even through
// different handles.
using Place = std::tuple<const Storage*, int64_t, std::vector<int64_t>, std::vector<int64_t>>;

Place place_of(const Tensor& tensor) {
  auto& t = impl_of(tensor);
  return {t.storage.get(),
          t.offset,
          {t.shape.begin(), t.shape.end()},
          {t.strides.begin(), t.strides.end()}};
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()));
  tensor.copy_to_host(bytes.data(), tensor.dtype());
  return bytes;
}

// Compares bit by bit; both tensors have been converted to the dtype of the model.
bool same_values(const Tensor& a, const Tensor& b) {
  return place_of(a) == place_of(b) || bytes_of(a) == bytes_of(b);
}

// Calls visit(element of the storage) for each element of a tensor, in row-major order.
template <class F>
void each_element(const TensorImpl& t, F&& visit) {
  std::vector<int64_t> index(t.shape.size());
  int64_t at = t.offset;
  for (int64_t left = t.shape.numel(); left > 0; --left) {
    visit(static_cast<size_t>(at));
    for (size_t d = index.size(); d-- > 0;) {
      at += t.strides[d];
      if (++index[d] < t.shape[d]) break;
      at -= t.strides[d] * t.shape[d];
      index[d] = 0;
    }
  }
}

// What a load writes into a storage that several targets share.
class SharedStorage {
 public:
  // Returns the earlier target that was given another value for an element of this one, if there is
  // one.
  std::optional<size_t> put(size_t number, const Tensor& target, const Tensor& values) {
    const TensorImpl& t = impl_of(target);
    const size_t width = size_of(t.dtype), elements = static_cast<size_t>(t.storage->bytes) / width;
    bytes_.resize(elements * width);
    writers_.resize(elements);
    const std::vector<std::byte> wanted = bytes_of(values);
    const std::byte* from = wanted.data();
    std::optional<size_t> other;
    each_element(t, [&](size_t at) {
      std::byte* to = bytes_.data() + at * width;
      if (writers_[at] && std::memcmp(to, from, width) != 0 && !other) other = writers_[at] - 1;
      std::memcpy(to, from, width);
      writers_[at] = static_cast<uint32_t>(number + 1);
      from += width;
    });
    return other;
  }

 private:
  std::vector<std::byte> bytes_;
  std::vector<uint32_t> writers_;  // for each element, the number of its target plus 1, or 0
};

[[noreturn]] void contradiction(const std::string& model, const std::string& first,
                                const std::string& second, const char* how) {
  throw StateDictError(
      fmt::format("Error(s) in loading state_dict for {}:\n\t\"{}\" and \"{}\" {} in the model, "
                  "but different values were given for them. Copies of a module share its "
                  "parameters: make layers that are to differ with nn::repeat or nn::clone.",
                  model, first, second, how));
}

}  // namespace

void check_ties(KeyMap& map, const StagedLoad& staged, const std::string& model_name) {
  const std::vector<nn::StateEntry>& targets = staged.targets();
  std::map<Place, size_t> first;  // position in targets
  std::map<const Storage*, std::vector<size_t>> by_storage;
  for (auto [from, to] : map.pairs) {
    const nn::StateEntry& target = targets[to];
    if (target.tensor.numel() == 0) continue;
    auto [found, fresh] = first.try_emplace(place_of(target.tensor), to);
    if (fresh) {
      by_storage[impl_of(target.tensor).storage.get()].push_back(to);
      continue;
    }
    const size_t first_to = found->second;
    map.report.tied.push_back({target.name, targets[first_to].name});
    if (!same_values(staged.values(first_to), staged.values(to)))
      contradiction(model_name, targets[first_to].name, target.name, "are one tensor");
  }
  // Views of one memory, such as a weight and its transpose.
  for (auto& [storage, positions] : by_storage) {
    if (positions.size() == 1) continue;
    SharedStorage shared;
    for (size_t to : positions)
      if (auto other = shared.put(to, targets[to].tensor, staged.values(to)))
        contradiction(model_name, targets[*other].name, targets[to].name, "share memory");
  }
}

void check_ties_between(const KeyMap& map, const StagedLoad& staged, const KeyMap& other_map,
                        const StagedLoad& other_staged) {
  std::map<Place, size_t> first;
  for (auto [from, to] : map.pairs) first.try_emplace(place_of(staged.targets()[to].tensor), to);
  for (auto [from, to] : other_map.pairs) {
    const nn::StateEntry& target = other_staged.targets()[to];
    const auto found = first.find(place_of(target.tensor));
    if (target.tensor.numel() == 0 || found == first.end() ||
        same_values(staged.values(found->second), other_staged.values(to)))
      continue;
    throw StateDictError(fmt::format(
        "\"{}\" of the model and \"{}\" of its average are one tensor here, but the file "
        "has different values for them. Make an average that has memory of its own",
        staged.targets()[found->second].name, target.name));
  }
}

}  // namespace tenon
