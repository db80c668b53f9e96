// "primitives": the cpu plugin without the operators that the core can make of simpler ones, as a
// small backend of somebody else's would be. What a model needs must still work.
#include <mutex>
#include <set>
#include <string>

#include <dlfcn.h>

#include <tenon/core/dispatch/op.h>
#include <tenon/plugins/sdk/backend.h>
#include <tenon/plugins/sdk/requests/fused.h>

#include "asked.h"

using tenon::sdk::Error;
using tenon::sdk::guard;

namespace {

tn_backend_api cpu;  // the cpu plugin's table
Asked& asked = *new Asked;

// The operators that the core makes of simpler ones or computes on the CPU, and normal, of which
// neither is true, so that a program has to do without one. Whether a fused program is offered
// depends on its members.
std::set<std::string> absent_operators() {
  std::set<std::string> absent, needed = {"fused"};
  for (auto* op = tenon::all_ops(); op; op = op->next)
    (op->decompose || op->offered_by_cpu ? absent : needed).insert(op->name);
  // Two operators have the name pow, one of them for integers.
  for (auto& name : needed) absent.erase(name);
  absent.insert("normal");
  return absent;
}
const std::set<std::string>& absent = *new std::set<std::string>(absent_operators());

bool is_offered(const std::string& op) {
  std::lock_guard lock(asked.mutex);
  return !asked.withheld.count(op) && (!absent.count(op) || asked.offered.count(op));
}
tn_error* lacks(const std::string& op) {
  return tenon::sdk::make_error(TN_CODE_UNSUPPORTED, "primitives has no " + op);
}

tn_error* refusal(const tn_op_request* request) {
  const bool whole_power =
      std::string_view(request->op) == "pow" && request->inputs[0]->dtype >= TN_I64;
  if (whole_power)
    return tenon::sdk::make_error(TN_CODE_UNSUPPORTED, "primitives has no pow of integers");
  if (!is_offered(request->op)) return lacks(request->op);
  if (std::string_view(request->op) != "fused") return nullptr;
  tn_error* no = nullptr;
  tn_error* unreadable = guard([&] {
    for (auto& step :
         tenon::sdk::FusedRequest::with_reductions(tenon::sdk::Request(*request)).steps)
      if (!no && !is_offered(step.member->op)) no = lacks(step.member->op);
  });
  return unreadable ? unreadable : no;
}

tn_error* supports(tn_device* device, const tn_op_request* request) {
  tn_error* no = refusal(request);
  return no ? no : cpu.supports(device, request);
}

// A plan of the cpu that is noted when it runs.
struct Noted {
  tn_plan head;
  tn_plan* inner;
  std::string op;
};

tn_error* run(tn_plan* self, const tn_run* args) {
  auto& plan = *reinterpret_cast<Noted*>(self);
  {
    std::lock_guard lock(asked.mutex);
    asked.ran.insert(plan.op);
  }
  return plan.inner->run(plan.inner, args);
}

void destroy(tn_plan* self) {
  auto* plan = reinterpret_cast<Noted*>(self);
  plan->inner->destroy(plan->inner);
  delete plan;
}

tn_error* plan_create(tn_device* device, const tn_op_request* request, tn_plan** plan) {
  tn_plan* inner = nullptr;
  tn_error* no = refusal(request);
  if (!no) no = cpu.plan_create(device, request, &inner);
  if (no) {
    std::lock_guard lock(asked.mutex);
    asked.refused.insert(request->op);
    return no;
  }
  return guard([&] {
    auto* noted = new Noted{*inner, inner, request->op};
    noted->head.run = run;
    noted->head.destroy = destroy;
    *plan = &noted->head;
  });
}

const void* extension(tn_backend*, const char* name, uint32_t) {
  return std::string_view(name) == "primitives.asked" ? &asked : nullptr;
}

tn_error* init(const tn_host* host, tn_backend_api* api) {
  return guard([&] {
    void* library = dlopen(TENON_CPU_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) throw Error(TN_CODE_UNAVAILABLE, dlerror());
    auto* entry = static_cast<const tn_plugin_info*>(dlsym(library, TN_PLUGIN_ENTRY_NAME));
    cpu.struct_size = sizeof cpu;
    if (auto* e = entry->init(host, &cpu)) {
      e->destroy(e);
      throw Error(TN_CODE_UNAVAILABLE, "the cpu plugin does not start");
    }
    tn_backend_api table = cpu;
    table.supports = supports;
    table.plan_create = plan_create;
    table.extension = extension;
    if (tn_error* error = tenon::sdk::fill_table(api, table)) tenon::sdk::throw_error(error);
  });
}

}  // namespace

extern "C" TN_EXPORT constexpr tn_plugin_info tn_plugin_entry =
    tenon::sdk::device_plugin("primitives", "1.0", init);
