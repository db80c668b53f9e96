// From an operator call to a plan: shape rule, descriptors, and the question to each plugin in
// turn.
#include <algorithm>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

tn_tensor_desc describe(DType dtype, const Shape& shape, const Strides& strides) {
  tn_tensor_desc d{};
  d.struct_size = sizeof d;
  d.dtype = static_cast<tn_dtype>(dtype);
  d.rank = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), d.shape);
  std::copy(strides.begin(), strides.end(), d.strides);
  return d;
}

// Strides that read `t` as if it had `shape`: 0 along what broadcasting adds.
Strides expanded_strides(const TensorImpl& t, const Shape& shape) {
  Strides s = Shape::filled(shape.size(), 0);
  const size_t added = shape.size() - t.shape.size();
  for (size_t i = 0; i < t.shape.size(); ++i)
    s[added + i] = t.shape[i] == 1 && shape[added + i] != 1 ? 0 : t.strides[i];
  return s;
}

// Owns what a tn_op_request points to.
struct Request {
  std::vector<tn_tensor_desc> descs;
  std::vector<const tn_tensor_desc*> inputs, outputs;
  std::vector<int32_t> aliases;
  std::vector<tn_attr> attrs;
  std::vector<const tn_attr*> attr_pointers;
  tn_op_request raw{};

  Request(const Op& op, Inputs in, const Attrs& a, size_t num_scalars, const PlanEntry& entry,
          const Tensor* out, bool contiguous) {
    descs.reserve(in.size() + entry.outputs.size());
    for (auto* t : in) inputs.push_back(t ? input(op, impl_of(*t), entry, contiguous) : nullptr);
    for (auto& o : entry.outputs) outputs.push_back(output(entry, o, in, out, contiguous));
    for (auto& o : entry.outputs) {
      // With a given output, an input that is copied is no longer the output's memory.
      const bool copied =
          out && contiguous && o.alias >= 0 && !in[static_cast<size_t>(o.alias)]->is_contiguous();
      aliases.push_back(copied ? -1 : std::max(o.alias, -1));
    }
    for (auto& x : a.all())
      attrs.push_back({sizeof(tn_attr), x.name, x.kind, x.i, x.f, x.s, x.num_ints, x.ints});
    for (auto& x : attrs) attr_pointers.push_back(&x);
    raw = {sizeof raw,           op.name,        inputs.size(),  inputs.data(),
           outputs.size(),       outputs.data(), aliases.data(), attr_pointers.size(),
           attr_pointers.data(), num_scalars};
  }

 private:
  const tn_tensor_desc* input(const Op& op, const TensorImpl& t, const PlanEntry& entry,
                              bool contiguous) {
    const Strides own = contiguous ? t.shape.contiguous_strides() : t.strides;
    if (entry.flattened) {
      const Shape flat{t.numel};
      descs.push_back(describe(t.dtype, flat, flat.contiguous_strides()));
    } else if (op.pointwise && !entry.outputs.empty()) {
      const Shape& shape = entry.outputs[0].shape;
      descs.push_back(describe(t.dtype, shape, expanded_strides(t, shape)));
    } else {
      descs.push_back(describe(t.dtype, t.shape, own));
    }
    return &descs.back();
  }

  const tn_tensor_desc* output(const PlanEntry& entry, const PlanOutput& o, Inputs in,
                               const Tensor* out, bool contiguous) {
    if (o.alias == -2) return nullptr;
    const bool as_given = !entry.flattened && (out || (o.alias >= 0 && !contiguous));
    const TensorImpl* given = !as_given ? nullptr : out ? &impl_of(*out) : &impl_of(*in[o.alias]);
    descs.push_back(
        describe(o.dtype, o.shape, given ? given->strides : o.shape.contiguous_strides()));
    return &descs.back();
  }
};

// From ABI 1.1 on plan_create alone says yes or no, so that nothing is worked out twice. A plugin
// of 1.0 may count on being asked before.
tn_error* ask(const Planner& planner, const tn_op_request& request, tn_plan** plan) {
  auto& api = planner.backend->api();
  if (planner.backend->info().abi_minor == 0)
    if (tn_error* no = api.supports(planner.device, &request)) return no;
  return api.plan_create(planner.device, &request, plan);
}

// Asks overlays, then the plugin; collects why each said no. Null where none does it.
tn_plan* ask_planners(DeviceContext& context, const tn_op_request& request, std::string& reasons) {
  for (auto& p : context.planners) {
    tn_plan* plan = nullptr;
    tn_error* no = ask(p, request, &plan);
    if (!context.caller_thread) close_before_new_libraries();
    if (!no) return plan;
    // A malformed request is the caller's error wherever it is sent; only "unsupported" asks the
    // next one.
    if (no->code != TN_CODE_UNSUPPORTED) check(no, std::string(request.op) + ": ");
    reasons += "\n  " + p.backend->name() + ": " + take_failure(no).message;
  }
  return nullptr;
}

void require_places_of_their_own(const Op& op, size_t input, const Tensor& t) {
  if (shares_places(t))
    throw ValueError(
        std::string(op.name) + ": argument " + std::to_string(input) +
        " is changed in place, but several elements of this expanded tensor of shape " +
        t.shape().str() +
        " share one place in memory; use .contiguous() or .clone() before changing it" +
        path_suffix());
}

void infer_outputs(PlanEntry& entry, const Op& op, Inputs inputs, const Attrs& attrs,
                   uint32_t wanted, const Tensor* out) {
  Infer infer(op, inputs, attrs);
  if (out) {
    auto& t = impl_of(*out);
    infer.outputs.push_back({t.dtype, t.shape, alias_of(*out, inputs)});
  } else {
    op.infer(infer);
    for (auto& o : infer.outputs)
      if (o.alias >= 0)
        require_places_of_their_own(op, static_cast<size_t>(o.alias),
                                    *inputs[static_cast<size_t>(o.alias)]);
  }
  for (size_t i = 0; i < infer.outputs.size(); ++i) {
    auto& o = infer.outputs[i];
    const bool absent = o.alias == -2 || (i < 32 && !(wanted >> i & 1));
    if (!is_addressable(o.shape))
      refuse_extent(entry.describe() + ": the result" + path_suffix(), o.shape);
    const int64_t numel = o.shape.numel();
    entry.outputs.push_back({o.dtype, o.shape, numel, absent ? -2 : o.alias,
                             static_cast<uint64_t>(numel) * size_of(o.dtype)});
  }
}

Footprint footprint_of(const Tensor* t, bool contiguous) {
  if (!t) return {};
  auto& impl = impl_of(*t);
  const uint64_t item = size_of(impl.dtype);
  return contiguous ? Footprint(static_cast<uint64_t>(impl.numel) * item)
                    : Footprint(impl.shape, impl.strides, item);
}

void note_footprints(PlanEntry& entry, Inputs inputs, const Tensor* out) {
  for (auto* t : inputs) entry.read.push_back(footprint_of(t, entry.make_contiguous));
  for (auto& o : entry.outputs) {
    const Tensor* changed = o.alias >= 0 ? inputs[static_cast<size_t>(o.alias)]
                                         : nullptr;  // or a contiguous copy of it
    entry.in_place.push_back(o.alias >= 0);
    entry.written.push_back(out       ? footprint_of(out, false)
                            : changed ? footprint_of(changed, entry.make_contiguous)
                                      : Footprint(o.alias == -2 ? 0 : o.bytes));
  }
}

// What no memory can hold is refused before plugins are asked: they may count on sizes that exist,
// and none is asked for plans, tables and workspaces of what never runs.
void require_room(DeviceContext& context, const PlanEntry& entry, const Shape& shape,
                  uint64_t bytes, const char* what) {
  if (bytes > context.most_bytes())
    context.refuse_allocation(
        bytes, entry.describe() + ": " + what + " of shape " + shape.str() + path_suffix() + ": ");
}
void require_room_for_outputs(DeviceContext& context, const PlanEntry& entry) {
  for (auto& o : entry.outputs)
    if (o.alias == -1) require_room(context, entry, o.shape, o.bytes, "a result");
}
void require_room_for_copies(DeviceContext& context, const PlanEntry& entry, Inputs inputs) {
  for (auto* t : inputs)
    if (t && !t->is_contiguous())
      require_room(context, entry, t->shape(),
                   static_cast<uint64_t>(t->numel()) * size_of(t->dtype()), "a contiguous copy");
}

// One dimension stands for whatever shape a call has.
void flatten(PlanEntry& entry, const Op& op, const Shape& common) {
  for (auto& o : entry.outputs) {
    if (o.alias == -2) continue;
    if (o.shape != common)
      throw Error(std::string(op.name) + ": a pointwise operator made " + o.shape.str() +
                  " of tensors of shape " + common.str());
    o.shape = {o.numel};
  }
  entry.flattened = true;
}

[[noreturn]] void refuse(const PlanEntry& entry, const std::string& reasons) {
  const char* advice = entry.device.type() == "cpu"
                           ? "\nConvert the tensors to a type that it offers, such as .to(f32), or "
                             "move them to another device"
                           : "\nMove the tensors to another device, or set TENON_CPU_FALLBACK=1 to "
                             "compute it on the CPU";
  throw UnsupportedError(entry.describe() + ": no plugin of this device offers it" + path_suffix() +
                         ":" + reasons + advice);
}

}  // namespace

Ref<PlanEntry> make_plan_entry(DeviceContext& context, const Op& op, Inputs inputs,
                               const Attrs& attrs, size_t num_scalars, uint32_t wanted,
                               const Tensor* out, const Shape* common) {
  auto entry = Ref<PlanEntry>::adopt(new PlanEntry);
  entry->op = &op;
  entry->device = context.device;
  for (auto* t : inputs)
    if (t) entry->input_shapes.push_back(t->shape());
  infer_outputs(*entry, op, inputs, attrs, wanted, out);
  if (!out) require_room_for_outputs(context, *entry);
  if (common) flatten(*entry, op, *common);

  const bool nothing_to_write = std::all_of(entry->outputs.begin(), entry->outputs.end(),
                                            [](auto& o) { return o.alias == -2 || o.bytes == 0; });
  if (nothing_to_write) return entry;

  context.stream->require_open();
  std::string reasons;
  Request request(op, inputs, attrs, num_scalars, *entry, out, false);
  entry->plan = ask_planners(context, request.raw, reasons);
  const bool all_contiguous =
      std::all_of(inputs.begin(), inputs.end(), [](auto* t) { return !t || t->is_contiguous(); });
  if (!entry->plan && !all_contiguous && !op.pointwise) {
    reasons.clear();
    require_room_for_copies(context, *entry, inputs);
    Request again(op, inputs, attrs, num_scalars, *entry, out, true);
    entry->plan = ask_planners(context, again.raw, reasons);
    entry->make_contiguous = entry->plan != nullptr;
  }
  if (entry->plan) {
    note_footprints(*entry, inputs, out);
    entry->cost_ns = entry->plan->cost_ns;
    entry->workspace_bytes = entry->plan->workspace_bytes;
    if (entry->workspace_bytes > context.most_bytes())
      context.refuse_allocation(
          entry->workspace_bytes,
          entry->describe() + ": the plugin's workspace" + path_suffix() + ": ");
  } else if (op.decompose && !out) {
    entry->decomposed = true;
  } else if (flag_from_environment("TENON_CPU_FALLBACK") && context.device.type() != "cpu" &&
             !out) {
    entry->on_cpu = true;
  } else {
    refuse(*entry, reasons);
  }
  return entry;
}

}  // namespace tenon
