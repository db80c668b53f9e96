#include <algorithm>
#include <cstring>
#include <string_view>

#include <tenon/core/graph/restored_nodes.h>

namespace tenon::graph {

namespace {

bool same_tensor(const std::optional<TensorDesc>& a, const std::optional<TensorDesc>& b) {
  if (!a || !b) return !a && !b;
  return a->dtype == b->dtype && a->shape == b->shape && a->strides == b->strides;
}
bool same_attr(const Attr& a, const Attr& b) {
  return std::string_view(a.name) == b.name && a.kind == b.kind && a.hint == b.hint && a.i == b.i &&
         std::memcmp(&a.f, &b.f, sizeof a.f) == 0 && std::string_view(a.s) == b.s &&
         a.list() == b.list();
}
bool same_call(const CallDesc& a, const CallDesc& b) {
  const auto x = a.attrs.all(), y = b.attrs.all();
  return a.num_scalars == b.num_scalars && a.wanted == b.wanted && a.format == b.format &&
         a.flat == b.flat && a.shape == b.shape && a.out_input == b.out_input &&
         same_tensor(a.out, b.out) &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(),
                    same_tensor) &&
         std::equal(x.begin(), x.end(), y.begin(), y.end(), same_attr);
}
}  // namespace

bool same_output(const SavedOutput& a, const SavedOutput& b) {
  if (a.kind != b.kind) return false;
  if (a.kind == OutputKind::absent) return true;
  if (a.input != b.input || a.dtype != b.dtype || a.shape != b.shape) return false;
  for (size_t d = 0; d < a.shape.size(); ++d)
    if (a.shape[d] > 1 && a.strides[d] != b.strides[d]) return false;
  return true;
}

bool same_node(const SavedNode& a, const SavedNode& b) {
  return same_call(a.call, b.call) && std::equal(a.outputs.begin(), a.outputs.end(),
                                                 b.outputs.begin(), b.outputs.end(), same_output);
}

}  // namespace tenon::graph
