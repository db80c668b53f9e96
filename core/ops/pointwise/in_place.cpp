// Arithmetic that changes a tensor (core/tensor.h).
#include <atomic>

#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/write_over.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/in_place.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

namespace {

// Throws unless the result is one that the target holds.
void check_result(const char* op, const Tensor& target, const Tensor& result) {
  const DType from = dtype_of(result), to = dtype_of(target);
  const bool loses = (is_floating_point(from) && !is_floating_point(to)) ||
                     (from != DType::boolean && to == DType::boolean);
  if (loses)
    throw DTypeError(fmt::format("{}: the result is {}, but the tensor that it changes is {}; {}",
                                 op, from, to, conversion_to(from)));
  if (!(shape_of(result) == shape_of(target)))
    throw ShapeError(fmt::format("{}: the result has shape {}, but the tensor that it changes {}",
                                 op, shape_of(result), shape_of(target)));
}

// A change is recorded by giving the tensor another history. Others that share its memory, such as
// a view or a value that a gradient rule will read, do not get to know of that history.
void require_recordable(const char* op, const Tensor& target) {
  if (wants_gradient(target) && target.is_leaf())
    throw AutogradError(fmt::format(
        "{}: changes a tensor in place that requires a gradient, and that is a leaf: its gradient "
        "would be that of the new values; do it inside tenon::NoGrad, or use the operator that "
        "returns a new tensor",
        op));
  auto& t = impl_of(target);
  const auto* const recorder = recording::here();
  const uint32_t own = recorder ? recorder->handles_of(*t.storage) : 0;
  if (t.storage->refs.load(std::memory_order_acquire) > 1 + own ||
      (t.autograd && t.autograd->replicas))
    throw AutogradError(fmt::format(
        "{}: this change requires a gradient and would have to be recorded, but the tensor of "
        "shape {} shares its memory with others (views, or what backward() still needs); use the "
        "operator that returns a new tensor, or change a clone()",
        op, t.shape));
}

// Returns the tensor as it was before the change, with its history and, where a gradient rule will
// read them, with values of its own.
Tensor before_change(const Tensor& target, bool keeps_values) {
  const Tensor before = keeps_values ? no_grad([&] { return target.clone(); }) : target.detach();
  if (const auto& meta = impl_of(target).autograd) {
    auto& history = impl_of(before).meta();
    history.requires_grad = meta->requires_grad;
    history.node = meta->node;
    history.output = meta->output;
  }
  return before;
}

void take_history(Tensor& target, const Tensor& result) {
  auto &to = impl_of(target).meta(), &from = impl_of(result).meta();
  to.requires_grad = from.requires_grad;
  to.node = from.node;
  to.output = from.output;
  if (auto* recorder = recording::here()) recorder->gets_history(impl_of(target));
  if (to.retained) {  // from now on it is the gradient of the new values
    to.retained.reset();
    target.retain_grad();
  }
}

constexpr InPlace kAdd{"add_", false, true}, kSub{"sub_", false, true}, kMul{"mul_", true, true},
    kDiv{"div_", true, true};

Tensor& change(InPlace op, Tensor& target, Number other, Tensor (*compute)(const Tensor&, Number)) {
  return change_in_place(op, target, {}, [&](auto& before) { return compute(before, other); });
}

Tensor& change(InPlace op, Tensor& target, const Tensor& other,
               Tensor (*compute)(const Tensor&, const Tensor&)) {
  return change_in_place(op, target, {&other}, [&](auto& before) {
    return compute(before, other.is_same(target) ? before : other);
  });
}

// other alpha, for add_ and sub_.
Tensor times_alpha(InPlace op, const Tensor& other, Number alpha) {
  require_tensor(op.name, other, "other");
  return alpha.f == 1 ? other : mul(other, alpha);
}

}  // namespace

Tensor& detail::change_in_place(InPlace op, Tensor& target,
                                std::initializer_list<const Tensor*> operands, const void* context,
                                Tensor (*compute)(const void*, const Tensor&)) {
  require_tensor(op.name, target);
  bool recorded = wants_gradient(target);
  size_t argument = 0;
  for (const Tensor* operand : operands) {
    if (operands.size() == 1)
      require_tensor(op.name, *operand, "other");
    else
      require_tensor(op.name, *operand, "operands", argument++);
    recorded = recorded || wants_gradient(*operand);
  }
  if (recorded) require_recordable(op.name, target);
  const auto computed = [&] {
    if (recorded) return compute(context, before_change(target, op.reads_operands));
    const WriteOver over(op.writes_over ? &target : nullptr);
    return compute(context, target);
  };
  Tensor result = computed();
  check_result(op.name, target, result);
  if (recorded) result = result.to(dtype_of(target));
  no_grad([&] { target.copy_(result); });
  if (recorded) take_history(target, result);
  return target;
}

Tensor& Tensor::add_(const Tensor& other, Number alpha) {
  return change(kAdd, *this, times_alpha(kAdd, other, alpha), tenon::add);
}
Tensor& Tensor::add_(Number other) { return change(kAdd, *this, other, tenon::add); }
Tensor& Tensor::sub_(const Tensor& other, Number alpha) {
  return change(kSub, *this, times_alpha(kSub, other, alpha), tenon::sub);
}
Tensor& Tensor::sub_(Number other) { return change(kSub, *this, other, tenon::sub); }
Tensor& Tensor::mul_(const Tensor& other) { return change(kMul, *this, other, tenon::mul); }
Tensor& Tensor::mul_(Number other) { return change(kMul, *this, other, tenon::mul); }
Tensor& Tensor::div_(const Tensor& other) { return change(kDiv, *this, other, tenon::div); }
Tensor& Tensor::div_(Number other) { return change(kDiv, *this, other, tenon::div); }

}  // namespace tenon
