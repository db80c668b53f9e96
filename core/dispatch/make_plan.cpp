// Makes the plan for a call: runs the shape rule and asks the plugins.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/dispatch/ask_planners.h>
#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/dispatch/propose.h>
#include <tenon/core/dispatch/widened.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/trace.h>

namespace tenon {

namespace {

void require_distinct_elements(const CallDesc& call, size_t input) {
  const TensorDesc& t = *call.inputs[input];
  if (elements_overlap(t.shape, t.strides))
    throw ValueError(fmt::format(
        "{}: {} is changed in place, but several elements of this tensor of shape {} may "
        "share one place in memory, as after expand or unfold; change a .contiguous() copy of it{}",
        call.op->name, input_name(*call.op, input, call.inputs.size()), t.shape, path_suffix()));
}

// Plugins are told that each input of a pointwise operator has the shape of the result.
void require_broadcast(const PlanEntry& entry) {
  const Shape& result = entry.outputs[0].shape;
  for (size_t i = 0; i < entry.call.inputs.size(); ++i) {
    const auto& t = entry.call.inputs[i];
    if (!t) continue;
    bool fits = t->shape.size() <= result.size();
    for (size_t d = 1; fits && d <= t->shape.size(); ++d) {
      const int64_t size = t->shape[t->shape.size() - d];
      fits = size == 1 || size == result[result.size() - d];
    }
    if (!fits)
      throw ShapeError(
          fmt::format("{}: {} has shape {}, which does not fit into the "
                      "result's {}{}",
                      entry.call.op->name, input_name(*entry.call.op, i, entry.call.inputs.size()),
                      t->shape, result, path_suffix()));
  }
}

void infer_outputs(PlanEntry& entry) {
  const CallDesc& call = entry.call;
  require_scalars(call);
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
    entry.outputs.push_back({o.dtype,
                             o.shape,
                             numel,
                             wanted ? o.kind : OutputKind::absent,
                             o.input,
                             static_cast<uint64_t>(numel) * size_of(o.dtype),
                             {},
                             true});
  }
  if (call.op->pointwise && !entry.outputs.empty()) require_broadcast(entry);
}

Footprint footprint_of(const TensorDesc& t, bool contiguous) {
  return contiguous || t.contiguous ? Footprint(t.bytes())
                                    : Footprint(t.shape, t.strides, size_of(t.dtype));
}

void note_footprints(PlanEntry& entry) {
  const CallDesc& call = entry.call;
  const bool whole = entry.make_contiguous || entry.flattened;
  for (auto& t : call.inputs) {
    entry.read.push_back(t ? footprint_of(*t, whole) : Footprint());
    entry.read_types.push_back(t ? t->dtype : DType{});
  }
  for (auto& o : entry.outputs) {
    const bool in_place = o.kind == OutputKind::in_place;  // or a contiguous copy of it
    entry.in_place.push_back(in_place);
    entry.written_types.push_back(o.dtype);
    entry.written.push_back(call.out   ? footprint_of(*call.out, entry.flattened)
                            : in_place ? footprint_of(*call.inputs[o.input], whole)
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
    if (t && !has_format(t->shape, t->strides, entry.copies_in(t->shape)))
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

// " from f32 to f64" where an operator of one input makes another type of it.
std::string conversion_in(const PlanEntry& entry) {
  const auto& inputs = entry.call.inputs;
  if (inputs.size() != 1 || entry.outputs.size() != 1 || !inputs[0] ||
      inputs[0]->dtype == entry.outputs[0].dtype)
    return "";
  return fmt::format(" from {} to {}", inputs[0]->dtype, entry.outputs[0].dtype);
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
      "{}{}{}{}{}:{}{}{}", whole, entry.describe(), conversion_in(entry),
      whole.empty() ? ": no plugin of this device offers it" : ", which no plugin of it offers",
      path_suffix(), reasons, Detour::refusals(reasons), advice));
}

// Asks for outputs in a format of channels, first with the inputs as they are, and then with copies
// of those that are in another format.
void make_plan_in(MemoryFormat format, DeviceContext& context, PlanEntry& entry, Reasons& reasons) {
  const bool differs = any_differs(entry.call, format);
  set_format(entry, format);
  entry.copy_format = format;
  entry.as_rows = entry.call.op->rows_of_channels;
  if (!entry.as_rows || !differs) ask_planners(context, entry, false, reasons);
  if (entry.plan) return;
  if (differs) {
    require_room_for_copies(context, entry);
    ask_planners(context, entry, true, reasons);
    entry.make_contiguous = entry.plan != nullptr;
    if (entry.plan) return;
  }
  set_format(entry, contiguous_format);
  entry.copy_format = contiguous_format;
  entry.as_rows = false;
}

Ref<PlanEntry> entry_for(DeviceContext& context, CallDesc call) {
  auto entry = Ref<PlanEntry>::adopt(new PlanEntry(std::move(call)));
  entry->device = context.device;
  entry->context = &context;
  infer_outputs(*entry);
  return entry;
}

// Whether a call of half types that no plugin takes in the format keeps it where it runs in f32.
bool is_offered_wide_in(MemoryFormat format, DeviceContext& context, const CallDesc& call) {
  if (!can_be_widened(call)) return false;
  const auto entry = entry_for(context, widened(call));
  Reasons reasons;
  make_plan_in(format, context, *entry, reasons);
  return entry->plan != nullptr;
}

void make_plan(DeviceContext& context, PlanEntry& entry, Reasons& reasons) {
  const CallDesc& call = entry.call;
  if (const auto format = proposed_format(call); moves_channels(format)) {
    make_plan_in(format, context, entry, reasons);
    if (entry.plan || is_offered_wide_in(format, context, call)) return;
    reasons.text.clear();  // those of the next request are about the operator itself
  }
  ask_planners(context, entry, false, reasons);
  const bool all_contiguous = std::all_of(call.inputs.begin(), call.inputs.end(),
                                          [](auto& t) { return !t || t->contiguous; });
  if (entry.plan || all_contiguous || call.op->pointwise || call.flat) return;
  Reasons why_copies = std::exchange(reasons, {});
  require_room_for_copies(context, entry);
  ask_planners(context, entry, true, reasons);
  entry.make_contiguous = entry.plan != nullptr;
  if (entry.make_contiguous) reasons = std::move(why_copies);
}

// Whether a plugin makes a plan for the call.
bool is_offered(DeviceContext& context, CallDesc call) {
  const auto entry = entry_for(context, std::move(call));
  Reasons reasons;
  make_plan(context, *entry, reasons);
  return entry->plan != nullptr;
}

// Fills the entry in. `reasons` are those of all plugins whose plans are not used, also if this
// throws.
void prepare(DeviceContext& context, PlanEntry& entry, Reasons& reasons) {
  const CallDesc& call = entry.call;
  infer_outputs(entry);
  if (!call.out) require_room_for_outputs(context, entry);
  if (call.flat)
    flatten(entry, call.shape_of_all());
  else if (call.op->pointwise)
    order_dimensions(entry);
  else
    entry.as_lines = lie_alike(entry);

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
  } else if (can_be_widened(call) &&
             (!call.op->decomposes_halves || call.out || is_offered(context, widened(call)))) {
    entry.widened = true;
  } else if (call.op->decompose && !call.out) {
    entry.decomposed = true;
  } else if (context.device.type() != "cpu" &&
             (call.op->offered_by_cpu || cpu_fallback_from_environment() != CpuFallback::off)) {
    entry.on_cpu = true;
  } else {
    refuse(entry, reasons.text);
  }
  if (entry.make_contiguous || entry.widened || entry.decomposed || entry.on_cpu)
    entry.refusals = reasons.text;
}

// Counts at its end that a plugin made the plan, and what was said of those that made none.
class CountOfPlans {
 public:
  CountOfPlans(const PlanEntry& entry, const Reasons& reasons) : entry_(entry), reasons_(reasons) {}
  ~CountOfPlans() {
    if (!observe::watched_by(observe::kCount)) return;
    if (entry_.plan) observe::count_plan(entry_);
    if (!reasons_.refused) return;
    try {
      observe::count_detour(
          observe::DetourKind::refused,
          {entry_.name(), "refused", entry_.device, entry_.signature(), "", reasons_.text, 0});
    } catch (const std::bad_alloc&) {  // it is not counted
    }
  }
  CountOfPlans(const CountOfPlans&) = delete;

 private:
  const PlanEntry& entry_;
  const Reasons& reasons_;
};

std::string outcome_of(const PlanEntry& entry) {
  if (entry.widened) return "by no plugin, in f32";
  if (entry.decomposed) return "by no plugin, decomposed";
  if (entry.on_cpu) return "by no plugin, on the CPU";
  if (!entry.plan) return "has nothing to compute";
  return fmt::format("by {}{}", entry.api->name(),
                     !entry.make_contiguous              ? ""
                     : moves_channels(entry.copy_format) ? " on copies in channels_last"
                                                         : " on contiguous copies");
}

}  // namespace

Ref<PlanEntry> make_plan_entry(DeviceContext& context, CallDesc desc) {
  auto entry = Ref<PlanEntry>::adopt(new PlanEntry(std::move(desc)));
  entry->device = context.device;
  entry->context = &context;
  Reasons reasons;
  if (!observe::watched()) [[likely]] {
    prepare(context, *entry, reasons);
    return entry;
  }
  const CountOfPlans count(*entry, reasons);
  if (!observe::watched_by(observe::kTrace)) {
    prepare(context, *entry, reasons);
    return entry;
  }
  const auto began = tracing::Clock::now();
  try {
    prepare(context, *entry, reasons);
  } catch (const Error& e) {
    tracing::add_plan(*entry, fmt::format("was not made: {}", e.what()), "", began);
    throw;
  }
  tracing::add_plan(*entry, outcome_of(*entry), reasons.text, began);
  return entry;
}

}  // namespace tenon
