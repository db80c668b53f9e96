#include <string_view>
#include <vector>

#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/dispatch/widened.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

// The inputs in f32.
class Widened {
 public:
  explicit Widened(const Call& call) : tensors_(call.inputs.size()), inputs_(tensors_.size()) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!call.has(i)) continue;
      inputs_[i] = &call.in(i);
      if (is_half(call.in(i).dtype())) inputs_[i] = &(tensors_[i] = call.in(i).to(DType::f32));
    }
  }
  Inputs inputs() const { return inputs_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> inputs_;
};

}  // namespace

bool can_be_widened(const CallDesc& call) {
  // The members of a fused program round to the dtypes that it says.
  const std::string_view op = call.op->name;
  if (op == "copy" || op == "fused") return false;
  if (call.out && is_half(call.out->dtype)) return true;
  for (auto& t : call.inputs)
    if (t && is_half(t->dtype)) return true;
  return false;
}

CallDesc widened(const CallDesc& call) {
  CallDesc wide = call;
  for (auto& t : wide.inputs)
    if (t) t->dtype = computation_type(t->dtype);
  return wide;
}

void run_widened(const PlanEntry& entry, const Call& call, Outputs& outputs) {
  const Detour detour(observe::DetourKind::widened, call, entry.device, entry.refusals);
  const NoGrad not_recorded;
  const Widened widened(call);
  const auto results = run_all(call.with_inputs(widened.inputs()));
  for (size_t i = 0; i < results.size(); ++i) {
    const PlanOutput& o = entry.outputs[i];
    if (o.kind != OutputKind::in_place) {
      outputs.push_back(results[i].defined() ? results[i].to(o.dtype) : Tensor());
      continue;
    }
    // A tensor that was not converted has been changed already.
    Tensor& target = outputs.emplace_back(call.in(o.input));
    if (impl_of(results[i]).storage != impl_of(target).storage) target.copy_(results[i]);
  }
}

void run_into_widened(const PlanEntry& entry, const Call& call) {
  const Detour detour(observe::DetourKind::widened, call, entry.device, entry.refusals);
  const NoGrad not_recorded;
  const Widened widened(call);
  const auto& out = impl_of(*call.out);
  const Tensor result = allocate_tensor(out.shape, computation_type(out.dtype), entry.device);
  run_into(result, {call.op, widened.inputs(), call.attrs, call.scalars}, Target::new_result);
  Tensor(*call.out).copy_(result);
}

}  // namespace tenon
