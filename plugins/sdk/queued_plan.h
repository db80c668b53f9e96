// Plans for devices whose streams work while the caller goes on. The arrays of a tn_run live for
// the call only, so what is queued has to own a copy of them.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/plugins/sdk/sdk.h>

#pragma GCC visibility push(hidden)

namespace tenon::sdk {

// Says how many inputs, outputs and scalars each run of a plan has. A tn_run says so itself from
// ABI 1.2 on; the request has said it ever since 1.0, so a plan that keeps these works under every
// host.
struct RunCounts {
  size_t inputs = 0, outputs = 0, scalars = 0;

  // Returns the counts of a request.
  static RunCounts of(const tn_op_request& request) {
    return {request.num_inputs, request.num_outputs, request.num_scalars};
  }
};

// Copies a tn_run, so that it outlives the call: its pointers, scalars and versions. The memory to
// which they point, and the workspace, live until the stream has done the work.
class OwnedRun {
 public:
  // Makes the copy.
  OwnedRun(const tn_run& run, const RunCounts& counts)
      : counts_(counts), workspace_(run.workspace) {
    pointers_.reserve(counts.inputs + counts.outputs);
    pointers_.insert(pointers_.end(), run.inputs, run.inputs + counts.inputs);
    pointers_.insert(pointers_.end(), run.outputs, run.outputs + counts.outputs);
    if (counts.scalars > 0) scalars_.assign(run.scalars, run.scalars + counts.scalars);
    if (TN_HAS(tn_run, &run, input_versions) && run.input_versions)
      versions_.assign(run.input_versions, run.input_versions + counts.inputs);
  }

  // Returns the run for a plan that computes on the calling thread. It is valid as long as this
  // object lives.
  tn_run args() const {
    return {sizeof(tn_run),
            pointers_.data(),
            pointers_.data() + counts_.inputs,
            scalars_.empty() ? nullptr : scalars_.data(),
            workspace_,
            nullptr,
            counts_.inputs,
            counts_.outputs,
            counts_.scalars,
            versions_.empty() ? nullptr : versions_.data()};
  }

 private:
  RunCounts counts_;
  std::vector<void*> pointers_;
  std::vector<tn_scalar> scalars_;
  std::vector<uint64_t> versions_;
  void* workspace_;
};

// Makes a plan that queues what `inner`, which it then owns, does on the thread that calls it.
// `push(tn_stream*, task)` puts `task`, a copyable `void()`, into the queue; the task throws what
// `inner` reports, with the operator in the detail "op", by which the host finds out which of its
// calls it was. The host destroys a plan only after its runs, so a task may use it.
template <class Push>
tn_plan* make_queued_plan(tn_plan* inner, const tn_op_request& request, Push push) {
  struct Destroy {
    void operator()(tn_plan* plan) const { plan->destroy(plan); }
  };
  struct Plan {
    tn_plan head;
    std::unique_ptr<tn_plan, Destroy> inner;
    RunCounts counts;
    std::string op;
    Push push;
  };
  std::unique_ptr<tn_plan, Destroy> owned(inner);
  auto run = [](tn_plan* self, const tn_run* args) -> tn_error* {
    return guard([&] {
      auto* plan = reinterpret_cast<Plan*>(self);
      plan->push(args->stream, [plan, copy = OwnedRun(*args, plan->counts)] {
        const tn_run own = copy.args();
        if (tn_error* e = plan->inner->run(plan->inner.get(), &own))
          throw_error(e, {{"op", plan->op}});
      });
    });
  };
  auto destroy = [](tn_plan* self) { delete reinterpret_cast<Plan*>(self); };
  const tn_plan head{sizeof(tn_plan), run,
                     destroy,         inner->workspace_bytes,
                     inner->cost_ns,  TN_HAS(tn_plan, inner, flags) ? inner->flags : 0};
  auto* plan = new Plan{head, nullptr, RunCounts::of(request), request.op, std::move(push)};
  plan->inner = std::move(owned);
  return &plan->head;
}

}  // namespace tenon::sdk

#pragma GCC visibility pop
