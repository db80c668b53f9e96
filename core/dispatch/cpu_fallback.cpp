#include <cstdio>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/cpu_fallback.h>
#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/layout.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

const Device kCpu;

// The first call of each operator prints a line, so that a user who allowed the CPU sees that it is
// used. Those that go there in any case are documented.
void tell_once(const PlanEntry& entry) {
  if (entry.call.op->offered_by_cpu) return;
  struct Told {
    ForkMutex mutex{ForkOrder::tables};
    std::set<const Op*> of;
  };
  static constinit NeverDestroyed<Told> kept;
  {
    Told& told = kept.get();
    std::lock_guard lock(told.mutex);
    if (!told.of.insert(entry.call.op).second) return;
  }
  std::fprintf(stderr, "tenon: %s is computed on the CPU (TENON_CPU_FALLBACK)\n",
               entry.describe().c_str());
}

Tensor move(const Tensor& tensor, Device device, Detour& detour) {
  detour.add_bytes(describe(impl_of(tensor)).bytes());
  return copy_to_device(tensor, device);
}

Tensor to_cpu(const Tensor& tensor, Detour& detour) {
  auto& t = impl_of(tensor);
  if (t.numel == 0 || is_dense(t.shape, t.strides)) return move(tensor, kCpu, detour);
  return make_view(move(span_of(tensor), kCpu, detour), t.shape, t.strides, 0);
}

void write_back(const Tensor& values, const Tensor& target, Detour& detour) {
  auto& t = impl_of(target);
  if (t.numel == 0) return;
  Tensor from = values.contiguous(), to = target;
  if (!t.contiguous) {  // what lies between its elements is written as it was
    to = span_of(target);
    from = move(to, kCpu, detour);
    make_view(from, t.shape, t.strides, 0).copy_(values);
  }
  detour.add_bytes(describe(impl_of(from)).bytes());
  copy_between_devices(from, to);
}

// The inputs on the CPU.
class Moved {
 public:
  Moved(const Call& call, Detour& detour) : tensors_(call.inputs.size()), inputs_(tensors_.size()) {
    for (size_t i = 0; i < tensors_.size(); ++i)
      if (call.has(i)) inputs_[i] = &(tensors_[i] = to_cpu(call.in(i), detour));
  }
  Inputs inputs() const { return inputs_; }

 private:
  std::vector<Tensor> tensors_;
  std::vector<const Tensor*> inputs_;
};

}  // namespace

void run_on_cpu(const PlanEntry& entry, const Call& call, Outputs& outputs) {
  tell_once(entry);
  Detour detour(observe::DetourKind::on_cpu, call, entry.device, entry.refusals);
  const NoGrad not_recorded;
  const DeviceGuard guard(kCpu);  // for operators without inputs
  const Moved moved(call, detour);
  auto there = run_all(call.with_inputs(moved.inputs()));
  for (size_t i = 0; i < there.size(); ++i) {
    auto& o = entry.outputs[i];
    if (o.kind == OutputKind::in_place)
      write_back(there[i], outputs.emplace_back(call.in(o.input)), detour);
    else
      outputs.push_back(there[i].defined() ? move(there[i], entry.device, detour) : Tensor());
  }
}

void run_into_on_cpu(const PlanEntry& entry, const Call& call) {
  tell_once(entry);
  Detour detour(observe::DetourKind::on_cpu, call, entry.device, entry.refusals);
  const NoGrad not_recorded;
  const Moved moved(call, detour);
  const auto& out = impl_of(*call.out);
  const Tensor result = allocate_tensor(out.shape, out.dtype, kCpu);
  run_into(result, {call.op, moved.inputs(), call.attrs, call.scalars}, Target::new_result);
  write_back(result, *call.out, detour);
}

}  // namespace tenon
