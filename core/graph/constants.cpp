#include <algorithm>

#include <tenon/core/graph/constants.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

void Constants::wait() const noexcept {
  if (context_) wait_until_read(*context_->stream, ticket_);
}

void Constants::compute(const Trace& trace) {
  if (trace.constants.empty()) return;
  context_ = trace.constants[0].plan->context;
  DeviceContext& context = *context_;
  storages_.resize(trace.values.size());
  uint64_t workspace = 0;
  for (auto& node : trace.constants) workspace = std::max(workspace, node.plan->workspace_bytes);
  if (workspace) workspace_ = context.memory->allocate(workspace);
  for (uint32_t i = 0; i < trace.constants.size(); ++i) {
    const TraceNode& node = trace.constants[i];
    std::vector<Segment::Place> places;
    for (uint32_t k = 0; k < node.num_inputs + node.num_outputs; ++k) {
      const Access& access = trace.accesses[node.first_access + k];
      Segment::Place& place = places.emplace_back();
      if (access.value == kAbsent) continue;
      Ref<Storage>& storage = storages_[access.value];
      if (!storage) {
        storage = context.memory->allocate(trace.values[access.value].bytes);
        segment_.births.push_back(
            {i, {static_cast<char*>(storage->data), -1, 0}, trace.values[access.value].bytes});
      }
      place.fixed = static_cast<char*>(storage->data) + access.offset;
    }
    segment_.add(node, trace.scalars.data() + node.first_scalar, places,
                 node.plan->workspace_bytes ? static_cast<char*>(workspace_->data) : nullptr);
  }
  segment_.finish();
  frame_.segments.push_back(std::make_unique<QueuedSegment>(segment_, frame_));
  ticket_ = context.stream->run_all(*frame_.segments[0]);
}

}  // namespace tenon::graph
