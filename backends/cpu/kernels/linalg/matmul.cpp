#include <tenon/plugins/sdk/requests/linalg.h>

#include "kernels/linalg/gemm.h"
#include "runtime/common.h"

namespace tenon::cpu {
namespace {

// Where the matrices of each batch entry start, in elements.
struct BatchOffsets {
  std::vector<int64_t> a, b;
  BatchOffsets(const tn_tensor_desc& da, const tn_tensor_desc& db, int64_t count) {
    uint32_t dims = da.rank - 2;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at_a = 0, at_b = 0, rest = i;
      for (uint32_t d = dims; d-- > 0;) {
        at_a += rest % da.shape[d] * da.strides[d];
        at_b += rest % da.shape[d] * db.strides[d];
        rest /= da.shape[d];
      }
      a.push_back(at_a);
      b.push_back(at_b);
    }
  }
};

// A batch whose left or only entries lie evenly one below the other is one product; others run side
// by side, or one after the other where they are too few or too big.
template <class T>
tn_plan* plan_batch(const GemmShape& shape, BatchOffsets offsets) {
  auto count = static_cast<int64_t>(offsets.a.size());
  int64_t threads = thread_count();
  bool side_by_side = count >= threads && shape.work() < (1 << 26);
  Gemm<T> gemm(shape, side_by_side ? 1 : static_cast<uint32_t>(threads));
  uint64_t share = (gemm.workspace_bytes() + 63) / 64 * 64;
  int64_t grain =
      side_by_side
          ? std::max<int64_t>(1, static_cast<int64_t>((1 << 19) / std::max(1.0, shape.work())))
          : count;
  sdk::PlanOptions options{share * static_cast<uint64_t>(side_by_side ? threads : 1),
                           gemm.cost_ns() * static_cast<uint64_t>(count)};
  return sdk::make_plan(
      [gemm, share, grain, side_by_side, count, offsets = std::move(offsets),
       plane = shape.m * shape.n](const tn_run& run) {
        auto *a = static_cast<const T*>(run.inputs[0]), *b = static_cast<const T*>(run.inputs[1]);
        auto* y = static_cast<T*>(run.outputs[0]);
        auto* scratch = static_cast<char*>(run.workspace);
        auto part = [&](int64_t begin, int64_t end, uint32_t slot) {
          for (int64_t i = begin; i < end; ++i) {
            auto at = static_cast<size_t>(i);
            gemm.run(a + offsets.a[at], b + offsets.b[at], nullptr, y + i * plane,
                     scratch + (side_by_side ? slot * share : 0));
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
  GemmShape s = shape_of(r);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();

  BatchOffsets offsets(request.input(0), request.input(1), r.batch);
  // One weight for all entries and rows that go on from entry to entry: a single tall product.
  bool tall = r.batch > 1;
  for (int64_t i = 0; i < r.batch; ++i) {
    auto at = static_cast<size_t>(i);
    tall = tall && offsets.b[at] == 0 && offsets.a[at] == i * s.m * s.a_row;
  }
  if (tall) {
    s.m *= r.batch;
    offsets.a = offsets.b = {0};
  }
  return with_float(r.dtype, [&]<class T>(T) { return plan_batch<T>(s, std::move(offsets)); });
}

tn_plan* make_linear(tn_device*, const Request& request) {
  const auto r = sdk::ProductRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(r.dtype, [&]<class T>(T) {
    Gemm<T> gemm(shape_of(r), thread_count());
    return sdk::make_plan(
        [gemm](const tn_run& run) {
          gemm.run(static_cast<const T*>(run.inputs[0]), static_cast<const T*>(run.inputs[1]),
                   static_cast<const T*>(run.inputs[2]), static_cast<T*>(run.outputs[0]),
                   run.workspace);
        },
        {gemm.workspace_bytes(), gemm.cost_ns()});
  });
}

const sdk::Kernel matmul_registration({"matmul"}, make_matmul);
const sdk::Kernel linear_registration({"linear"}, make_linear);

}  // namespace
}  // namespace tenon::cpu
