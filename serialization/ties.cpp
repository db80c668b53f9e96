#include <tenon/serialization/ties.h>

#include <cstring>
#include <map>
#include <tuple>

#include <tenon/core/error.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {
namespace {

// Two tensors are one where they have the same elements in the same places, whatever their handles.
using Place = std::tuple<const Storage*, int64_t, std::vector<int64_t>, std::vector<int64_t>>;

Place place_of(const Tensor& tensor) {
  auto& t = impl_of(tensor);
  return {t.storage.get(), t.offset, {t.shape.begin(), t.shape.end()}, {t.strides.begin(), t.strides.end()}};
}

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<size_t>(tensor.numel()) * size_of(tensor.dtype()));
  tensor.copy_to_host(bytes.data(), tensor.dtype());
  return bytes;
}

// To the bit; both have been converted to the model's type.
bool same_values(const Tensor& a, const Tensor& b) { return place_of(a) == place_of(b) || bytes_of(a) == bytes_of(b); }

}  // namespace

void check_ties(KeyMap& map, const StagedLoad& staged, const std::string& model_name) {
  const std::vector<nn::StateEntry>& targets = staged.targets();
  std::map<Place, size_t> first;  // position in targets
  for (auto [from, to] : map.pairs) {
    const nn::StateEntry& target = targets[to];
    if (target.tensor.numel() == 0) continue;
    auto [found, fresh] = first.try_emplace(place_of(target.tensor), to);
    if (fresh) continue;
    const size_t first_to = found->second;
    map.report.tied.push_back({target.name, targets[first_to].name});
    if (same_values(staged.values(first_to), staged.values(to))) continue;
    throw StateDictError("Error(s) in loading state_dict for " + model_name + ":\n\t\"" + targets[first_to].name + "\" and \"" +
                         target.name +
                         "\" are one tensor in the model, but different values were given for them. Copies of a module share "
                         "its parameters: make layers that are to differ with nn::repeat or nn::clone.");
  }
}

}  // namespace tenon
