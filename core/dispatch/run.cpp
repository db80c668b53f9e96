// The entry point of all operators: devices and replicas, the plan, memory, the queue, and the
// record for autograd.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/recording.h>
#include <tenon/core/base/short_array.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/cpu_fallback.h>
#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/misplaced.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/dispatch/promotion.h>
#include <tenon/core/dispatch/record.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/shares_memory.h>
#include <tenon/core/dispatch/widened.h>
#include <tenon/core/dispatch/write_over.h>
#include <tenon/core/dispatch/written.h>
#include <tenon/core/error.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/capture.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/order.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {
namespace {

// Returns a copy without gaps of a tensor for a call that cannot use the tensor itself.
Tensor hidden_copy(const Call& call, const std::string& reason, const Tensor& tensor,
                   MemoryFormat format) {
  NoGrad guard;
  const Detour detour(observe::DetourKind::hidden_copy, call, impl_of(tensor).device, reason,
                      &tensor);
  return tensor.clone(format);
}

// The inputs of one call. A small number of pointers is stored on the stack. Replicas and
// contiguous copies that the call needs are owned here.
class Arguments {
 public:
  Arguments(const Op& op, Inputs inputs, const Tensor* out)
      : count_(inputs.size()), used_(inputs.size()) {
    std::copy(inputs.begin(), inputs.end(), used_.data());
    for (size_t i = 0; i < count_; ++i)
      if (used_[i] && !used_[i]->defined())
        throw ValueError(fmt::format("{}: {} is an undefined tensor{}", op.name,
                                     input_name(op, i, count_), path_suffix()));
    device_ = out ? impl_of(*out).device : device_of_call(used());
    for (size_t i = 0; i < count_; ++i)
      if (used_[i] && impl_of(*used_[i]).device != device_) bring(op, i);
  }

  Device device() const { return device_; }
  Inputs used() const { return {&used_[0], count_}; }
  void make_contiguous(const Call& call, const PlanEntry& entry) {
    for (size_t i = 0; i < count_; ++i)
      if (used_[i])
        if (const MemoryFormat format = entry.copies_in(impl_of(*used_[i]).shape);
            !used_[i]->is_contiguous(format))
          own(i, hidden_copy(call, entry.refusals, *used_[i], format));
  }

 private:
  void bring(const Op& op, size_t i) {
    auto& t = impl_of(*used_[i]);
    if (!t.autograd || !t.autograd->replicas)
      throw MisplacedError(op.name, input_name(op, i, count_), *used_[i], device_, path_suffix());
    own(i, resolve_replica(*used_[i], device_));
  }

  void own(size_t i, Tensor tensor) {
    if (!owned_.capacity())
      owned_.reserve(
          2 * count_);  // so that pointers stay valid; a replica may also need a contiguous copy
    owned_.push_back(std::move(tensor));
    used_[i] = &owned_.back();
  }

  size_t count_;
  ShortArray<const Tensor*, 8> used_;
  std::vector<Tensor> owned_;
  Device device_;
};

void* data_of(const Tensor* t) { return t ? impl_of(*t).data() : nullptr; }

// Adds the operator to the error, because the error of the device does not contain it.
[[noreturn, gnu::cold, gnu::noinline]] void refuse(const char* use, const OutOfMemoryError& e,
                                                   const PlanEntry& entry, const Shape* shape) {
  throw OutOfMemoryError(entry.describe(shape) + path_suffix() + ": " + use + e.what());
}

Ref<Storage> new_workspace(DeviceContext& context, const PlanEntry& entry, const Shape* shape) try {
  return context.memory->allocate(entry.workspace_bytes);
} catch (const OutOfMemoryError& e) {
  refuse("for the workspace of its plan: ", e, entry, shape);
}

// What is launched. `outputs[i]` is null if it is absent; `shape` is that of the call if the plan
// is flattened.
struct Work {
  DeviceContext& context;
  PlanEntry& entry;
  Inputs inputs;
  std::span<TensorImpl* const> outputs;
  std::span<const Scalar> scalars;
  const Shape* shape;
  bool outputs_hold_values = false;
};

// `versions` are those of the inputs, or null.
[[gnu::always_inline]] inline void queue_plan(const Work& work, const uint64_t* versions) {
  auto& [context, entry, inputs, outputs, scalars, shape, outputs_hold_values] = work;
  ShortArray<void*, 24> array(inputs.size() + outputs.size());
  void** const pointers = array.data();
  for (size_t i = 0; i < inputs.size(); ++i) {
    pointers[i] = data_of(inputs[i]);
    if (inputs[i]) context.stream->tell_of(await_values(context, *impl_of(*inputs[i]).storage));
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    pointers[inputs.size() + i] = outputs[i] ? outputs[i]->data() : nullptr;

  Ref<Storage> workspace;
  if (entry.workspace_bytes) workspace = new_workspace(context, entry, shape);
  Launch l{&entry,
           pointers,
           static_cast<uint32_t>(inputs.size()),
           pointers + inputs.size(),
           static_cast<uint32_t>(outputs.size()),
           reinterpret_cast<const tn_scalar*>(scalars.data()),
           static_cast<uint32_t>(scalars.size()),
           workspace ? workspace->data : nullptr,
           outputs_hold_values,
           shape,
           versions};
  const uint64_t ticket = context.stream->run(l);
  for (auto* t : inputs)
    if (t) note_read(context, *impl_of(*t).storage, ticket);
  for (auto* o : outputs)
    if (o) note_written(context, *o->storage, ticket);
  if (auto* recorder = recording::here()) [[unlikely]]
    recorder->launched(l, inputs, outputs);
  if (auto* capture = context.stream->own_capture())
    capture->note(inputs, outputs);
  else if (sync_mode())
    context.stream->wait_for_call(ticket);
}

// The versions have to be known before the run is queued. What is recorded runs again with other
// values, so there they are unknown.
[[gnu::noinline]] void launch_with_versions(const Work& work) {
  if (work.context.stream->own_capture()) return queue_plan(work, nullptr);
  ShortArray<uint64_t, 8> versions(work.inputs.size());
  for (size_t i = 0; i < work.inputs.size(); ++i)
    versions[i] = work.inputs[i] ? impl_of(*work.inputs[i]).storage->values_number() : 0;
  queue_plan(work, versions.data());
}

// Queues the plan.
void launch(const Work& work) {
  if (work.entry.wants_versions) [[unlikely]]
    launch_with_versions(work);
  else
    queue_plan(work, nullptr);
}

// The shape of a call whose plan is flattened, or null.
const Shape* shape_of_flat(const TensorImpl* common) { return common ? &common->shape : nullptr; }

// `common` is the layout of the call if the plan is flattened, for an output in `format`.
Tensor new_output(DeviceContext& context, const PlanEntry& entry, const PlanOutput& o,
                  const TensorImpl* common, MemoryFormat format) try {
  auto memory = context.memory->allocate(o.bytes);
  const Shape& shape = common ? common->shape : o.shape;
  const bool like_common = common && format == preserve_format;
  const bool row_major = like_common ? common->contiguous && !moves_channels(common->format)
                         : common    ? !moves_channels(format)
                                     : o.row_major;
  if (row_major)
    return Tensor(Ref<TensorImpl>::adopt(
        new TensorImpl(o.dtype, context.device, shape, o.numel, std::move(memory))));
  const Strides strides = like_common ? common->strides
                          : common    ? strides_in(shape, format)
                                      : o.strides;
  return Tensor(Ref<TensorImpl>::adopt(
      new TensorImpl(o.dtype, context.device, shape, strides, 0, std::move(memory))));
} catch (const OutOfMemoryError& e) {
  refuse("", e, entry, shape_of_flat(common));
}

Tensor output_of(DeviceContext& context, const PlanEntry& entry, const PlanOutput& o,
                 const Call& call, const TensorImpl* common) {
  switch (o.kind) {
    case OutputKind::made:
      return new_output(context, entry, o, common, call.format);
    case OutputKind::in_place:
      return call.in(o.input);
    case OutputKind::absent:
      break;
  }
  return Tensor();
}

// `call` is what the user called; `arguments` are its inputs on the device where they are used.
void run_entry(DeviceContext& context, PlanEntry& entry, const Call& call, Arguments& arguments,
               Outputs& outputs, const TensorImpl* common) {
  NoGrad guard;                                     // the call is recorded as a whole
  const AutocastOff off;                            // its dtypes are decided
  const auto held = Ref<PlanEntry>::share(&entry);  // other operators run before its last use
  const Call here = call.with_inputs(arguments.used());
  if (entry.widened) return run_widened(entry, here, outputs);
  if (entry.decomposed) {
    const Detour detour(observe::DetourKind::decomposed, here, entry.device, entry.refusals);
    return call.op.decompose(here, outputs);
  }
  if (entry.on_cpu) return run_on_cpu(entry, here, outputs);
  // An in-place output is the tensor of the caller, even if the plugin works on a contiguous copy
  // of it.
  for (auto& o : entry.outputs) outputs.push_back(output_of(context, entry, o, here, common));
  if (entry.make_contiguous) arguments.make_contiguous(call, entry);
  {
    std::vector<TensorImpl*> raw;
    std::vector<InPlaceChange> changes;
    raw.reserve(entry.outputs.size());
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto& o = entry.outputs[i];
      const bool in_place = o.kind == OutputKind::in_place;
      const Tensor& written = in_place ? here.in(o.input) : outputs[i];
      raw.push_back(written.impl().get());
      if (in_place) changes.emplace_back(*impl_of(written).storage, context);
    }
    if (entry.plan) launch({context, entry, here.inputs, raw, call.scalars, shape_of_flat(common)});
  }
  if (!entry.make_contiguous) return;
  for (size_t i = 0; i < outputs.size(); ++i)
    if (entry.outputs[i].kind == OutputKind::in_place) {
      const Tensor& changed = here.in(entry.outputs[i].input);
      if (changed.is_same(outputs[i])) continue;  // it needed no copy
      const Detour detour(observe::DetourKind::hidden_copy, call, entry.device, entry.refusals,
                          &changed);
      outputs[i].copy_(changed);
    }
}

// The common case, without a vector: one new output.
Tensor run_one(const Call& call) {
  const Op& op = call.op;
  if (innermost_autocast) [[unlikely]]
    if (const AutocastInputs converted(call); converted)
      return run_one(call.with_inputs(converted.inputs()));
  if (op.execute) return std::move(run_all(call)[0]);
  if (needs_promotion(call)) [[unlikely]]
    return std::move(run_promoted(call)[0]);
  if (write_over_target) [[unlikely]]
    if (const Tensor* changed = run_over_target(call)) return *changed;

  Arguments arguments(op, call.inputs, nullptr);
  auto& context = working_context(arguments.device());
  const Call here = call.with_inputs(arguments.used());
  const TensorImpl* common = common_layout(here);
  auto& entry = plans_of(context).find(here, common);
  Tensor output;
  if (entry.outputs.size() == 1 && entry.plan && entry.outputs[0].kind == OutputKind::made &&
      !entry.make_contiguous) {
    output = new_output(context, entry, entry.outputs[0], common, here.format);
    TensorImpl* raw = output.impl().get();
    launch({context, entry, here.inputs, {&raw, 1}, call.scalars, shape_of_flat(common)});
  } else {
    Outputs outputs;
    run_entry(context, entry, call, arguments, outputs, common);
    output = std::move(outputs[0]);
  }
  if (needs_recording(op, call.inputs)) record(call, {&output, 1});
  return output;
}
}  // namespace

Tensor run(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs,
           std::initializer_list<Scalar> scalars) {
  return run_one({op, Inputs(inputs.begin(), inputs.size()), attrs,
                  std::span<const Scalar>(scalars.begin(), scalars.size())});
}

Tensor run_as(const Shape& shape, const Op& op, std::initializer_list<const Tensor*> inputs,
              const Attrs& attrs, MemoryFormat format) {
  return run_one(
      {op, Inputs(inputs.begin(), inputs.size()), attrs, {}, ~0u, nullptr, &shape, format});
}

Outputs run_all(const Call& call) {
  const Op& op = call.op;
  if (innermost_autocast) [[unlikely]]
    if (const AutocastInputs converted(call); converted)
      return run_all(call.with_inputs(converted.inputs()));
  if (needs_promotion(call)) [[unlikely]]
    return run_promoted(call);
  Outputs outputs;
  if (op.execute) {
    for (auto* t : call.inputs)
      if (t) checked_impl(*t, op.name);
    NoGrad guard;
    const AutocastOff off;
    if (!execute_on_guard_device(call, outputs)) op.execute(call, outputs);
  } else {
    Arguments arguments(op, call.inputs, nullptr);
    auto& context = working_context(arguments.device());
    const Call here = call.with_inputs(arguments.used());
    const TensorImpl* common = common_layout(here);
    auto& entry = plans_of(context).find(here, common);
    run_entry(context, entry, call, arguments, outputs, common);
  }
  if (needs_recording(op, call.inputs)) record(call, outputs);
  return outputs;
}

namespace {
const std::string kAliases = "\n  it shares memory with the result";

// Launches the work with the target as its output.
void launch_into(TensorImpl& target, Target kind, Work work) {
  InPlaceChange change(*target.storage, work.context);
  if (!work.entry.plan) return;
  TensorImpl* raw = &target;
  work.outputs = {&raw, 1};
  work.outputs_hold_values = kind == Target::existing && was_written(target);
  launch(work);
  note_written(target);
}
}  // namespace

void run_into(const Tensor& out, const Call& call, Target kind) {
  if (changes_replica(out)) [[unlikely]]
    return run_into(replica_to_change(out), call, kind);
  auto& target = checked_impl(out, call.op.name);
  Arguments arguments(call.op, call.inputs, &out);
  // An input that shares memory, but not element for element, would be read after it was changed.
  const int32_t alias = alias_of(out, arguments.used());
  std::vector<Tensor> copies;
  std::vector<const Tensor*> safe(arguments.used().begin(), arguments.used().end());
  copies.reserve(safe.size());
  for (size_t i = 0; i < safe.size(); ++i)
    if (safe[i] && static_cast<int32_t>(i) != alias &&
        may_share_memory(impl_of(*safe[i]), target) && target.numel)
      safe[i] = &copies.emplace_back(hidden_copy(call, kAliases, *safe[i], preserve_format));
  auto& context = working_context(target.device);
  const Call here{call.op, safe, call.attrs, call.scalars, ~0u, &out};
  const TensorImpl* common = common_layout(here);
  auto& entry = plans_of(context).find(here, common);
  const auto held = Ref<PlanEntry>::share(&entry);  // copies may be made before its last use
  if (entry.make_contiguous)
    for (auto*& t : safe)
      if (t && !t->is_contiguous()) {
        copies.push_back(hidden_copy(call, entry.refusals, *t, contiguous_format));
        t = &copies.back();
      }
  if (entry.widened || entry.on_cpu) {
    entry.widened ? run_into_widened(entry, here) : run_into_on_cpu(entry, here);
    return note_written(target);
  }
  launch_into(target, kind, {context, entry, safe, {}, call.scalars, shape_of_flat(common)});
}

void run_plan_into(PlanEntry& entry, const Tensor& out, const Call& call,
                   const TensorImpl* common) {
  auto& target = impl_of(out);
  launch_into(target, Target::existing,
              {working_context(target.device),
               entry,
               call.inputs,
               {},
               call.scalars,
               shape_of_flat(common)});
}

bool is_decomposed(const Call& call) {
  Arguments arguments(call.op, call.inputs, nullptr);
  const Call here = call.with_inputs(arguments.used());
  return plans_of(working_context(arguments.device())).find(here, common_layout(here)).decomposed;
}

}  // namespace tenon
