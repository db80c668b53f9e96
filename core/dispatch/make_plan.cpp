// Makes the plan for a call: runs the shape rule, makes descriptors, and asks one plugin after the
// other.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/log.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/abi_dtypes.h>
#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/trace.h>

namespace tenon {

namespace {

tn_tensor_desc abi_desc(DType dtype, const Shape& shape, const Strides& strides) {
  tn_tensor_desc d{};
  d.struct_size = sizeof d;
  d.dtype = static_cast<tn_dtype>(dtype);
  d.rank = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), d.shape);
  std::copy(strides.begin(), strides.end(), d.strides);
  return d;
}

// Returns strides that read `t` as if it had the shape `shape`: 0 for dimensions that broadcasting
// adds.
Strides expanded_strides(const TensorDesc& t, const Shape& shape) {
  Strides s = Shape::filled(shape.size(), 0);
  const size_t added = shape.size() - t.shape.size();
  for (size_t i = 0; i < t.shape.size(); ++i)
    s[added + i] = t.shape[i] == 1 && shape[added + i] != 1 ? 0 : t.strides[i];
  return s;
}

// Owns everything to which a tn_op_request points. With `contiguous`, inputs that are not
// contiguous will be copied first.
struct Request {
  std::vector<tn_tensor_desc> descs;
  std::vector<const tn_tensor_desc*> inputs, outputs;
  std::vector<int32_t> aliases;
  std::vector<tn_attr> attrs;
  std::vector<const tn_attr*> attr_pointers;
  tn_op_request raw{};
  size_t num_hints = 0;  // the last attributes

  Request(const PlanEntry& entry, bool contiguous) {
    const CallDesc& call = entry.call;
    descs.reserve(call.inputs.size() + entry.outputs.size());
    for (auto& t : call.inputs) inputs.push_back(t ? input(*t, entry, contiguous) : nullptr);
    for (auto& o : entry.outputs) {
      outputs.push_back(output(o, entry, contiguous));
      // If the output is given, an input that will be copied does not share its memory with the
      // output any more.
      const bool in_place = o.kind == OutputKind::in_place;
      const bool copied = in_place && call.out && contiguous && !call.inputs[o.input]->contiguous;
      aliases.push_back(in_place && !copied ? static_cast<int32_t>(o.input) : -1);
    }
    for (const bool hint : {false, true})
      for (auto& x : call.attrs.all())
        if (x.hint == hint && !is_core_attr(x, *call.op)) {
          attrs.push_back({sizeof(tn_attr), x.name, x.kind, x.i, x.f, x.s, x.num_ints, x.ints});
          num_hints += hint;
        }
    for (auto& x : attrs) attr_pointers.push_back(&x);
    raw = {sizeof raw,           call.op->name,   inputs.size(),  inputs.data(),
           outputs.size(),       outputs.data(),  aliases.data(), attr_pointers.size(),
           attr_pointers.data(), call.num_scalars};
  }

 private:
  static bool is_core_attr(const Attr& x, const Op& op) {
    return op.core_attr && std::strcmp(x.name, op.core_attr) == 0;
  }

  const tn_tensor_desc* input(const TensorDesc& t, const PlanEntry& entry, bool contiguous) {
    if (entry.flattened) {
      const Shape flat{t.numel};
      descs.push_back(abi_desc(t.dtype, flat, Shape::row_major(flat)));
    } else if (entry.call.op->pointwise && !entry.outputs.empty()) {
      const Shape& shape = entry.outputs[0].shape;
      descs.push_back(abi_desc(t.dtype, shape, expanded_strides(t, shape)));
    } else {
      descs.push_back(
          abi_desc(t.dtype, t.shape, contiguous ? Shape::row_major(t.shape) : t.strides));
    }
    return &descs.back();
  }

  const tn_tensor_desc* output(const PlanOutput& o, const PlanEntry& entry, bool contiguous) {
    if (o.kind == OutputKind::absent) return nullptr;
    const CallDesc& call = entry.call;
    const TensorDesc* given = nullptr;
    if (call.out)
      given = &*call.out;
    else if (o.kind == OutputKind::in_place && !contiguous)
      given = &*call.inputs[o.input];
    const bool own_strides = given && !entry.flattened;
    descs.push_back(
        abi_desc(o.dtype, o.shape, own_strides ? given->strides : Shape::row_major(o.shape)));
    return &descs.back();
  }
};

// From ABI 1.1 on, plan_create alone accepts or refuses, so that nothing is computed twice. A
// plugin of ABI 1.0 may rely on being asked with supports() first.
tn_error* ask(const Planner& planner, const tn_op_request& request, tn_plan** plan) {
  auto& api = planner.backend->api();
  if (planner.backend->info().abi_minor == 0)
    if (tn_error* no = api.supports(planner.device, &request)) return no;
  return api.plan_create(planner.device, &request, plan);
}

// A plugin refuses attributes that it does not know. Hints are permissions, so that it is asked
// again without them.
tn_error* ask(const Planner& planner, const Request& request, tn_plan** plan) {
  tn_error* no = ask(planner, request.raw, plan);
  if (!no || no->code != TN_CODE_UNSUPPORTED || request.num_hints == 0) return no;
  no->destroy(no);
  tn_op_request without = request.raw;
  without.num_attrs -= request.num_hints;
  return ask(planner, without, plan);
}

// Returns a dtype of the request that the ABI version of the plugin does not know, or nothing.
std::optional<DType> unknown_dtype(const Planner& planner, const Request& request) {
  for (auto& d : request.descs)
    if (const auto dtype = static_cast<DType>(d.dtype);
        !abi_knows(planner.backend->info().abi_minor, dtype))
      return dtype;
  return std::nullopt;
}

// What no other plugin would do better: errors of the caller, and a shortage of memory.
bool ends_the_call(tn_code code) {
  return code == TN_CODE_INVALID_ARGUMENT || code == TN_CODE_OUT_OF_RANGE ||
         code == TN_CODE_OUT_OF_MEMORY;
}

// Whether `plan` is known to take less time than the one that `entry` has. These are estimates that
// plugins make from shapes alone: the choice is the same in every run, and so are the bits of
// results.
bool cheaper(const tn_plan& plan, const PlanEntry& entry) {
  return !entry.plan || (plan.cost_ns != 0 && plan.cost_ns < entry.plan->cost_ns);
}

// Keeps the cheaper one of `plan` and the plan that `entry` has, and tells why not the other.
void offer(PlanEntry& entry, const Planner& planner, tn_plan* plan, std::string& reasons) {
  auto& api = planner.backend->api();
  const bool taken = cheaper(*plan, entry);
  if (entry.plan)
    reasons += fmt::format(
        "\n  {}: {} ns, an estimate that does not beat the {} ns of {}",
        taken ? entry.api->name() : api.name(), taken ? entry.plan->cost_ns : plan->cost_ns,
        taken ? plan->cost_ns : entry.plan->cost_ns, taken ? api.name() : entry.api->name());
  if (!taken) return api.destroy(plan);
  if (entry.plan) entry.api->destroy(entry.plan);
  entry.plan = plan;
  entry.api = &api;
  entry.planner = planner.backend;
}

// Asks the overlays and then the plugin of the device, and collects the reasons of refusals. The
// plan stays null if all refuse. Of several plans, the one with the lowest cost wins; those after a
// plan of unknown cost are not asked.
void ask_planners(DeviceContext& context, PlanEntry& entry, bool contiguous, std::string& reasons) {
  const Request request(entry, contiguous);
  const bool first_wins = context.first_plan_wins();
  for (auto& p : context.planners) {
    if (entry.plan && (first_wins || entry.plan->cost_ns == 0)) return;
    if (const auto dtype = unknown_dtype(p, request)) {
      reasons += fmt::format("\n  {}: it was built with an ABI version that does not know {}",
                             p.backend->name(), *dtype);
      continue;
    }
    const checked::Work work(entry, nullptr, current_path());
    tn_plan* plan = nullptr;  // undefined if the plugin refuses
    tn_error* no = ask(p, request, &plan);
    if (!context.caller_thread) close_before_new_libraries();
    if (!no) {
      offer(entry, p, plan, reasons);
      continue;
    }
    // A malformed request is an error of the caller whichever plugin gets it. Only after
    // "unsupported" is the next plugin asked, and after an overlay that fails otherwise. Where
    // there is a plan already, what keeps the next plugin from making another does not matter.
    if (!entry.plan && ends_the_call(no->code))
      check(no, fmt::format("{}{}: {}: ", entry.describe(), path_suffix(), p.backend->name()));
    const tn_code code = no->code;
    const std::string reason = take_failure(no).message;
    if (!entry.plan && code != TN_CODE_UNSUPPORTED) {
      if (p.backend->info().kind != TN_PLUGIN_OVERLAY)
        throw_failure({code, fmt::format("{}{}: {}: {}", entry.describe(), path_suffix(),
                                         p.backend->name(), reason)});
      log_message(TN_LOG_WARNING, p.backend->name(),
                  fmt::format("{} is left to the plugin below: {}", entry.describe(), reason));
    }
    reasons += fmt::format("\n  {}: {}", p.backend->name(), reason);
  }
}

void require_distinct_elements(const CallDesc& call, size_t input) {
  const TensorDesc& t = *call.inputs[input];
  if (elements_overlap(t.shape, t.strides))
    throw ValueError(fmt::format(
        "{}: argument {} is changed in place, but several elements of this expanded tensor of "
        "shape {} share one place in memory; use .contiguous() or .clone() before changing it{}",
        call.op->name, input, t.shape, path_suffix()));
}

void infer_outputs(PlanEntry& entry) {
  const CallDesc& call = entry.call;
  Infer infer(call);
  if (call.out) {
    const bool in_place = call.out_input >= 0;
    infer.outputs.push_back({call.out->dtype, call.out->shape,
                             in_place ? OutputKind::in_place : OutputKind::made,
                             in_place ? static_cast<uint32_t>(call.out_input) : 0});
  } else {
    call.op->infer(infer);
    for (auto& o : infer.outputs)
      if (o.kind == OutputKind::in_place) require_distinct_elements(call, o.input);
  }
  for (size_t i = 0; i < infer.outputs.size(); ++i) {
    auto& o = infer.outputs[i];
    const bool wanted = i >= 32 || (call.wanted >> i & 1);
    if (!is_addressable(o.shape))
      refuse_extent(fmt::format("{}: the result{}", entry.describe(), path_suffix()), o.shape);
    const int64_t numel = o.shape.numel();
    entry.outputs.push_back({o.dtype, o.shape, numel, wanted ? o.kind : OutputKind::absent, o.input,
                             static_cast<uint64_t>(numel) * size_of(o.dtype)});
  }
}

Footprint footprint_of(const TensorDesc& t, bool contiguous) {
  return contiguous ? Footprint(t.bytes()) : Footprint(t.shape, t.strides, size_of(t.dtype));
}

void note_footprints(PlanEntry& entry) {
  const CallDesc& call = entry.call;
  for (auto& t : call.inputs) {
    entry.read.push_back(t ? footprint_of(*t, entry.make_contiguous) : Footprint());
    entry.read_types.push_back(t ? t->dtype : DType{});
  }
  for (auto& o : entry.outputs) {
    const bool in_place = o.kind == OutputKind::in_place;  // or a contiguous copy of it
    entry.in_place.push_back(in_place);
    entry.written_types.push_back(o.dtype);
    entry.written.push_back(call.out   ? footprint_of(*call.out, false)
                            : in_place ? footprint_of(*call.inputs[o.input], entry.make_contiguous)
                            : o.kind == OutputKind::absent ? Footprint(0)
                                                           : Footprint(o.bytes));
  }
}

// Results that do not fit into any memory are refused before a plugin is asked, because plugins may
// rely on possible sizes, and need not prepare work that can never run.
void require_room(DeviceContext& context, const PlanEntry& entry, const Shape& shape,
                  uint64_t bytes, const char* what) {
  if (bytes > context.max_bytes())
    context.refuse_allocation(
        bytes, fmt::format("{}: {} of shape {}{}: ", entry.describe(), what, shape, path_suffix()));
}
void require_room_for_outputs(DeviceContext& context, const PlanEntry& entry) {
  for (auto& o : entry.outputs)
    if (o.kind == OutputKind::made) require_room(context, entry, o.shape, o.bytes, "a result");
}
void require_room_for_copies(DeviceContext& context, const PlanEntry& entry) {
  for (auto& t : entry.call.inputs)
    if (t && !t->contiguous)
      require_room(context, entry, t->shape, t->bytes(), "a contiguous copy");
}

// Replaces the shapes of the outputs by one dimension, because the plan depends only on the number
// of elements.
void flatten(PlanEntry& entry, const Shape& common) {
  for (auto& o : entry.outputs) {
    if (o.kind == OutputKind::absent) continue;
    if (o.shape != common)
      throw Error(fmt::format("{}: a pointwise operator made {} of tensors of shape {}",
                              entry.name(), o.shape, common));
    o.shape = {o.numel};
  }
  entry.flattened = true;
}

[[noreturn]] void refuse(const PlanEntry& entry, const std::string& reasons) {
  const char* advice =
      entry.device.type() == "cpu"
          ? "\nConvert the tensors to a type that it offers, such as .to(f32), or move them to "
            "another device"
          : "\nMove the tensors to another device, or set TENON_CPU_FALLBACK=1 to compute it on "
            "the CPU";
  const std::string whole = Detour::whole();
  throw UnsupportedError(fmt::format(
      "{}{}{}{}:{}{}", whole, entry.describe(),
      whole.empty() ? ": no plugin of this device offers it" : ", which no plugin of it offers",
      path_suffix(), reasons, advice));
}

void make_plan(DeviceContext& context, PlanEntry& entry, std::string& reasons) {
  const CallDesc& call = entry.call;
  ask_planners(context, entry, false, reasons);
  const bool all_contiguous = std::all_of(call.inputs.begin(), call.inputs.end(),
                                          [](auto& t) { return !t || t->contiguous; });
  if (entry.plan || all_contiguous || call.op->pointwise) return;
  std::string why_copies = std::exchange(reasons, {});
  require_room_for_copies(context, entry);
  ask_planners(context, entry, true, reasons);
  entry.make_contiguous = entry.plan != nullptr;
  if (entry.make_contiguous) reasons = std::move(why_copies);
}

// Fills the entry in. `reasons` are those of all plugins that refused, also if this throws.
void prepare(DeviceContext& context, PlanEntry& entry, std::string& reasons) {
  const CallDesc& call = entry.call;
  infer_outputs(entry);
  if (!call.out) require_room_for_outputs(context, entry);
  if (call.flat) flatten(entry, call.shape_of_all());

  const bool nothing_to_write =
      std::all_of(entry.outputs.begin(), entry.outputs.end(),
                  [](auto& o) { return o.kind == OutputKind::absent || o.bytes == 0; });
  if (nothing_to_write) return;

  context.stream->require_open();
  make_plan(context, entry, reasons);
  if (entry.plan) {
    note_footprints(entry);
    entry.cost_ns = entry.plan->cost_ns;
    entry.workspace_bytes = entry.plan->workspace_bytes;
    entry.wants_versions =
        TN_HAS(tn_plan, entry.plan, flags) && (entry.plan->flags & TN_PLAN_INPUT_VERSIONS) != 0;
    if (entry.workspace_bytes > context.max_bytes())
      context.refuse_allocation(
          entry.workspace_bytes,
          fmt::format("{}: the plugin's workspace{}: ", entry.describe(), path_suffix()));
  } else if (call.op->decompose && !call.out) {
    entry.decomposed = true;
  } else if (cpu_fallback_from_environment() != CpuFallback::off &&
             context.device.type() != "cpu") {
    entry.on_cpu = true;
  } else {
    refuse(entry, reasons);
  }
  if (entry.make_contiguous || entry.decomposed || entry.on_cpu) entry.refusals = reasons;
}

std::string outcome_of(const PlanEntry& entry) {
  if (entry.decomposed) return "by no plugin, decomposed";
  if (entry.on_cpu) return "by no plugin, on the CPU";
  if (!entry.plan) return "has nothing to compute";
  return fmt::format("by {}{}", entry.api->name(),
                     entry.make_contiguous ? " on contiguous copies" : "");
}

}  // namespace

Ref<PlanEntry> make_plan_entry(DeviceContext& context, CallDesc desc) {
  auto entry = Ref<PlanEntry>::adopt(new PlanEntry(std::move(desc)));
  entry->device = context.device;
  entry->context = &context;
  std::string reasons;
  if (!observe::watched_by(observe::kTrace)) [[likely]] {
    prepare(context, *entry, reasons);
    return entry;
  }
  const auto began = trace::Clock::now();
  try {
    prepare(context, *entry, reasons);
  } catch (const Error& e) {
    trace::add_plan(*entry, fmt::format("was not made: {}", e.what()), "", began);
    throw;
  }
  trace::add_plan(*entry, outcome_of(*entry), reasons, began);
  return entry;
}

}  // namespace tenon
