// Makes the descriptors of a call, and asks one plugin after the other for a plan.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/base/log.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/device.h>
#include <tenon/core/dispatch/abi_dtypes.h>
#include <tenon/core/dispatch/ask_planners.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/dispatch/planning.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/runtime/check/work.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/observe.h>

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

// The matrix of the channels of each pixel.
Shape rows_of(const Shape& shape) {
  int64_t rows = shape[0];
  for (size_t d = 2; d < shape.size(); ++d) rows *= shape[d];
  return {rows, shape[1]};
}

// Owns everything to which a tn_op_request points. With `contiguous`, inputs that are not
// contiguous in the format that the entry wants will be copied first.
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
      const bool copied =
          in_place && call.out && contiguous && !is_taken(entry, *call.inputs[o.input]);
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

  static bool is_taken(const PlanEntry& entry, const TensorDesc& t) {
    return has_format(t.shape, t.strides, entry.copies_in(t.shape));
  }

  // In the order of the entry, if that is not the tensor's own.
  const tn_tensor_desc* add(const PlanEntry& entry, DType dtype, const Shape& shape,
                            const Strides& strides) {
    if (entry.order.empty()) {
      descs.push_back(abi_desc(dtype, shape, strides));
      return &descs.back();
    }
    Shape ordered;
    Strides steps;
    for (const int64_t d : entry.order) {
      ordered.push_back(shape[d]);
      steps.push_back(strides[d]);
    }
    descs.push_back(abi_desc(dtype, ordered, steps));
    return &descs.back();
  }
  const tn_tensor_desc* add_row_major(DType dtype, const Shape& shape) {
    descs.push_back(abi_desc(dtype, shape, Shape::row_major(shape)));
    return &descs.back();
  }
  static bool has_rows(const PlanEntry& entry, const Shape& shape) {
    return entry.as_rows && shape.size() == rank_of(entry.copy_format);
  }

  const tn_tensor_desc* input(const TensorDesc& t, const PlanEntry& entry, bool contiguous) {
    if (entry.flattened) return add_row_major(t.dtype, {t.numel});
    if (has_rows(entry, t.shape)) return add_row_major(t.dtype, rows_of(t.shape));
    if (entry.as_lines && !t.contiguous) return add_row_major(t.dtype, {t.numel});
    if (entry.call.op->pointwise && !entry.outputs.empty()) {
      const Shape& shape = entry.outputs[0].shape;
      return add(entry, t.dtype, shape, expanded_strides(t.shape, t.strides, shape));
    }
    return add(entry, t.dtype, t.shape,
               contiguous ? strides_in(t.shape, entry.copies_in(t.shape)) : t.strides);
  }

  const tn_tensor_desc* output(const PlanOutput& o, const PlanEntry& entry, bool contiguous) {
    if (o.kind == OutputKind::absent) return nullptr;
    const CallDesc& call = entry.call;
    if (entry.flattened) return add_row_major(o.dtype, o.shape);
    if (has_rows(entry, o.shape)) return add_row_major(o.dtype, rows_of(o.shape));
    if (call.out) return add(entry, o.dtype, o.shape, call.out->strides);
    if (o.kind == OutputKind::made)
      return add(entry, o.dtype, o.shape, o.row_major ? Shape::row_major(o.shape) : o.strides);
    return input(*call.inputs[o.input], entry, contiguous);
  }
};

// From ABI 1.1 on, plan_create alone accepts or refuses, so that nothing is computed twice. A
// plugin of ABI 1.0 may rely on being asked with supports() first.
tn_error* ask(const Planner& planner, const tn_op_request& request, const plugins::Asked& asked,
              tn_plan** plan) {
  auto& api = planner.backend->api();
  const Planning planning;
  if (planner.backend->info().abi_minor == 0)
    if (tn_error* no = api.supports(planner.device, &request)) return no;
  return api.plan_create(planner.device, &request, plan, &asked);
}

// A plugin refuses attributes that it does not know. Hints are permissions, so that it is asked
// again without them.
tn_error* ask(const Planner& planner, const Request& request, const plugins::Asked& asked,
              tn_plan** plan) {
  tn_error* no = ask(planner, request.raw, asked, plan);
  if (!no || no->code != TN_CODE_UNSUPPORTED || request.num_hints == 0) return no;
  no->destroy(no);
  tn_op_request without = request.raw;
  without.num_attrs -= request.num_hints;
  return ask(planner, without, asked, plan);
}

// Returns a dtype of the request that the ABI version of the plugin does not know, or nothing.
std::optional<DType> unknown_dtype(const Planner& planner, const Request& request) {
  for (auto& d : request.descs)
    if (const auto dtype = static_cast<DType>(d.dtype);
        !abi_knows(planner.backend->info().abi_minor, dtype))
      return dtype;
  return std::nullopt;
}

// A plugin of ABI 1.2 or older was promised that new outputs are row-major, except those of
// pointwise operators.
bool may_propose(const Planner& planner) { return planner.backend->info().abi_minor >= 3; }

// What no other plugin would do better: errors of the caller, and a shortage of memory.
bool ends_the_call(tn_code code) {
  return code == TN_CODE_INVALID_ARGUMENT || code == TN_CODE_OUT_OF_RANGE ||
         code == TN_CODE_OUT_OF_MEMORY;
}

// The plan with the lowest rank is used; of equal ranks, that of the plugin which was asked first.
// A plan that states no cost (0) comes before all others if it is an overlay's, because an overlay
// is installed to be used, and after all others if it is the device's own. So the choice between
// two plans does not depend on which other plugins are installed. Plugins estimate costs from
// shapes alone, so the choice, and with it every bit of the results, is the same in every run.
uint64_t rank(const tn_plan& plan, const plugins::Backend& planner) {
  if (plan.cost_ns) return plan.cost_ns;
  return planner.info().kind == TN_PLUGIN_OVERLAY ? 0 : ~uint64_t{0};
}
uint64_t rank(const PlanEntry& entry) { return rank(*entry.plan, *entry.planner); }

// Why a plan is not used, of which one of the two may have the cost 0.
std::string why_not(uint64_t cost, uint64_t cost_of_used, const std::string& used) {
  if (cost_of_used == 0)
    return fmt::format(
        "estimated to take {} ns; {} states no cost, and an overlay that states none goes first",
        cost, used);
  if (cost == 0)
    return fmt::format("it states no cost, and so goes behind the {} ns of {}", cost_of_used, used);
  return fmt::format("{}, estimated to take {} ns where {} takes {} ns",
                     cost > cost_of_used ? "dearer" : "as dear", cost, used, cost_of_used);
}

// Keeps the better one of `plan` and the plan that `entry` has, and tells why not the other. Each
// plan has its owner before anything can fail.
void offer(PlanEntry& entry, const Planner& planner, tn_plan* plan, Reasons& reasons) {
  auto& api = planner.backend->api();
  if (entry.plan && rank(*plan, *planner.backend) >= rank(entry)) {
    const uint64_t cost = plan->cost_ns;
    api.destroy(plan);
    reasons.text += fmt::format("\n  {}: {}", api.name(),
                                why_not(cost, entry.plan->cost_ns, entry.api->name()));
    return;
  }
  tn_plan* const before = std::exchange(entry.plan, plan);
  auto* const api_before = std::exchange(entry.api, &api);
  entry.planner = planner.backend;
  if (!before) return;
  const uint64_t cost = before->cost_ns;
  api_before->destroy(before);
  reasons.text +=
      fmt::format("\n  {}: {}", api_before->name(), why_not(cost, plan->cost_ns, api.name()));
}

// What the call is, for messages about a plugin whose plan is not used.
std::string asked_for(PlanEntry& entry) {
  auto* const planner = std::exchange(entry.planner, nullptr);
  std::string text = entry.describe();
  entry.planner = planner;
  return text;
}

}  // namespace

void ask_planners(DeviceContext& context, PlanEntry& entry, bool contiguous, Reasons& reasons) {
  context.stream->require_device();
  const Request request(entry, contiguous);
  bool settled = false;  // by a plan of a preferred overlay
  const bool proposes = entry.proposes();
  for (auto& p : context.planners) {
    if (entry.plan && (settled || rank(entry) == 0)) {
      reasons.text +=
          fmt::format("\n  {}: not asked, because {}{}", p.backend->name(), entry.api->name(),
                      settled ? " is preferred" : ", an overlay, states no cost");
      continue;
    }
    if (proposes && !may_propose(p)) {
      reasons.refused = true;
      reasons.text +=
          fmt::format("\n  {}: it was built with an ABI version in which outputs are row-major",
                      p.backend->name());
      continue;
    }
    if (const auto dtype = unknown_dtype(p, request)) {
      reasons.refused = true;
      reasons.text += fmt::format("\n  {}: it was built with an ABI version that does not know {}",
                                  p.backend->name(), *dtype);
      continue;
    }
    const checked::Work work(entry, nullptr, current_path());
    tn_plan* plan = nullptr;  // undefined if the plugin refuses
    const observe::PlanAtWork asked(entry, nullptr, current_path());
    tn_error* no = ask(p, request, asked, &plan);
    // A library may need memory of the device at its start, which our caches hold.
    if (no && no->code == TN_CODE_OUT_OF_MEMORY && !context.stream->capturing()) {
      no->destroy(no);
      empty_cache(context.device);
      no = ask(p, request, asked, &plan);
    }
    if (!context.caller_thread) close_before_new_libraries();
    if (!no) {
      offer(entry, p, plan, reasons);
      settled = p.preferred;
      continue;
    }
    // The next plugin is asked if this one answers "unsupported", or if it is an overlay and fails
    // in another way. A malformed request ends the call, because every plugin would refuse it. If
    // there is a plan already, it is used, and the failure is only reported. No plugin can make
    // plans for a lost device.
    if (no->code == TN_CODE_DEVICE_LOST || (!entry.plan && ends_the_call(no->code)))
      context.stream->require(
          no, fmt::format("{}{}: {}: ", entry.describe(), path_suffix(), p.backend->name()));
    reasons.refused = true;
    const tn_code code = no->code;
    const std::string reason = take_failure(no).message;
    if (code != TN_CODE_UNSUPPORTED) {
      if (p.preferred || (!entry.plan && p.backend->info().kind != TN_PLUGIN_OVERLAY))
        throw_error(code, fmt::format("{}{}: {}: {}", entry.describe(), path_suffix(),
                                      p.backend->name(), reason));
      log_message(TN_LOG_WARNING, p.backend->name(),
                  fmt::format("{} is left to {}: {}", asked_for(entry),
                              entry.plan ? "the other plugins" : "the plugin below", reason));
    }
    reasons.text += fmt::format("\n  {}: {}", p.backend->name(), reason);
  }
}

}  // namespace tenon
