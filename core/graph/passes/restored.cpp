// What the trace of a file needs to know of operators.
#include <fmt/core.h>

#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/restored_nodes.h>
#include <tenon/core/ops/creation/factory.h>
#include <tenon/core/ops/pointwise/fused.h>

namespace tenon::graph {

bool is_made_by_passes(const Op& op) { return &op == &fused_op || &op == &fused_rows_op; }

TraceNode fill_with_zeros(Trace& trace, uint32_t value, DeviceContext& context) {
  const Shape shape{static_cast<int64_t>(trace.values[value].bytes)};
  CallDesc call;
  call.op = &fill_op;
  call.num_scalars = 1;
  call.out = describe(DType::u8, shape, Shape::row_major(shape));
  TraceNode node;
  node.plan = plans_of(context).make_apart(call);
  if (!node.plan->plan)
    throw UnsupportedError(
        fmt::format("{} cannot fill memory with zeros{}", context.device, node.plan->refusals));
  node.first_access = static_cast<uint32_t>(trace.accesses.size());
  node.num_outputs = 1;
  node.first_scalar = static_cast<uint32_t>(trace.scalars.size());
  node.num_scalars = 1;
  trace.accesses.push_back({value, 0});
  trace.scalars.push_back(Scalar::integer(0));
  return node;
}

}  // namespace tenon::graph
