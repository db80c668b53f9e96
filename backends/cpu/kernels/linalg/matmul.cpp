#include <tenon/plugins/sdk/requests/linalg.h>

#include "kernels/linalg/gemm.h"
#include "runtime/common.h"

namespace tenon::cpu {
namespace {

// A batch whose left or only entries lie evenly one below the other is one product; others run side
// by side, or one after the other where they are too few or too big.
template <class T>
tn_plan* plan_batch(const GemmShape& shape, const sdk::ProductRequest& r, int64_t count,
                    const Finish& finish) {
  int64_t threads = thread_count();
  bool side_by_side = count >= threads && shape.work() < (1 << 26);
  Gemm<T> gemm(shape, side_by_side ? 1 : static_cast<uint32_t>(threads), finish);
  uint64_t share = (gemm.workspace_bytes() + 63) / 64 * 64;
  int64_t grain =
      side_by_side
          ? std::max<int64_t>(1, static_cast<int64_t>((1 << 19) / std::max(1.0, shape.work())))
          : count;
  sdk::PlanOptions options{share * static_cast<uint64_t>(side_by_side ? threads : 1),
                           gemm.cost_ns() * static_cast<uint64_t>(count)};
  return sdk::make_plan(
      [gemm, share, grain, side_by_side, count, r, finish](const tn_run& run) {
        auto *a = static_cast<const T*>(run.inputs[0]), *b = static_cast<const T*>(run.inputs[1]);
        auto* y = static_cast<T*>(run.outputs[0]);
        auto* scratch = static_cast<char*>(run.workspace);
        const Finish::Run with = finish.of(run);
        auto part = [&](int64_t begin, int64_t end, uint32_t slot) {
          for (int64_t i = begin; i < end; ++i) {
            const auto at = r.offsets(i);
            gemm.run(a + at.a, b + at.b, nullptr, y + at.y,
                     scratch + (side_by_side ? slot * share : 0), with);
          }
        };
        if (side_by_side) {
          parallel_for(count, grain, part);
        } else {
          part(0, count, 0);
        }
      },
      options);
}

GemmShape shape_of(const sdk::ProductRequest& r) {
  return {r.m, r.n, r.k, r.a_row, r.a_col, r.b_row, r.b_col};
}

tn_plan* make_matmul(tn_device*, const Request& request) {
  const auto r = sdk::ProductRequest::from(request);
  const Finish finish = finish_of(request, 2);
  GemmShape s = shape_of(r);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();

  // One weight for all entries and rows that go on from entry to entry: a single tall product.
  int64_t count = r.batch;
  if (count > 1 && r.step_of(r.b_batch) == 0 && r.step_of(r.a_batch) == s.m * s.a_row) {
    s.m *= count;
    count = 1;
  }
  return with_float(r.dtype, [&]<class T>(T) { return plan_batch<T>(s, r, count, finish); });
}

tn_plan* make_linear(tn_device*, const Request& request) {
  const auto r = sdk::ProductRequest::from(request);
  const Finish finish = finish_of(request, 3);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(r.dtype, [&]<class T>(T) {
    Gemm<T> gemm(shape_of(r), thread_count(), finish);
    return sdk::make_plan(
        [gemm, finish](const tn_run& run) {
          gemm.run(static_cast<const T*>(run.inputs[0]), static_cast<const T*>(run.inputs[1]),
                   static_cast<const T*>(run.inputs[2]), static_cast<T*>(run.outputs[0]),
                   run.workspace, finish.of(run));
        },
        {gemm.workspace_bytes(), gemm.cost_ns()});
  });
}

const sdk::Kernel matmul({"matmul"}, make_matmul);
const sdk::Kernel linear({"linear"}, make_linear);

}  // namespace
}  // namespace tenon::cpu
