#include <string>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/promotion.h>
#include <tenon/core/error.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

// The categories bool < integer < floating, as PyTorch orders them.
int category(DType t) { return is_floating_point(t) ? 2 : is_integer(t) ? 1 : 0; }

const std::string kMixedTypes = "\n  its inputs differ in type";

DType wanted_type(const Call& call) {
  const Tensor *first = nullptr, *second = nullptr;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    if (!is_promoted(call, i)) continue;
    if (second) throw Error(fmt::format("{}: more than two operands are promoted", call.op.name));
    (first ? second : first) = &call.in(i);
  }
  const DType type = second ? result_type(*first, *second) : impl_of(*first).dtype;
  return call.op.promotion == Promotion::floating && !is_floating_point(type) ? DType::f32 : type;
}

}  // namespace

DType result_type(const Tensor& a, const Tensor& b) {
  DType ta = impl_of(a).dtype, tb = impl_of(b).dtype;
  if (ta == tb) return ta;
  bool scalar_a = impl_of(a).shape.empty(), scalar_b = impl_of(b).shape.empty();
  if (scalar_a == scalar_b) return promote(ta, tb);
  DType with_dims = scalar_a ? tb : ta, without = scalar_a ? ta : tb;
  return category(without) > category(with_dims) ? promote(ta, tb) : with_dims;
}

Outputs run_promoted(const Call& call) {
  const DType type = wanted_type(call);
  std::vector<Tensor> owned(call.inputs.size());
  std::vector<const Tensor*> converted(call.inputs.begin(), call.inputs.end());
  for (size_t i = 0; i < owned.size(); ++i)
    if (is_promoted(call, i) && impl_of(call.in(i)).dtype != type) {
      const Detour detour(observe::DetourKind::conversion, call, impl_of(call.in(i)).device,
                          kMixedTypes, &call.in(i));
      converted[i] = &(owned[i] = call.in(i).to(type));
    }
  return run_all(call.with_inputs(converted));
}

}  // namespace tenon
