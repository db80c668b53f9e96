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

tn_plan* make_matmul(tn_device*, const Request& request) {
  auto &a = request.input(0), &b = request.input(1), &y = request.output(0);
  auto found = sdk::shape_text(a) + " and " + sdk::shape_text(b) + " to " + sdk::shape_text(y);
  uint32_t r = a.rank;
  if (r < 2 || b.rank != r || y.rank != r)
    sdk::invalid("operands need one rank of at least 2; found " + found);
  if (a.dtype != b.dtype || a.dtype != y.dtype) sdk::invalid("all tensors have one dtype");
  GemmShape s{a.shape[r - 2],   b.shape[r - 1],   a.shape[r - 1],  a.strides[r - 2],
              a.strides[r - 1], b.strides[r - 2], b.strides[r - 1]};
  bool fits = b.shape[r - 2] == s.k && y.shape[r - 2] == s.m && y.shape[r - 1] == s.n;
  int64_t count = 1;
  for (uint32_t d = 0; d + 2 < r; ++d) {
    fits = fits && a.shape[d] == b.shape[d] && a.shape[d] == y.shape[d];
    count *= a.shape[d];
  }
  if (!fits) sdk::invalid("shapes do not fit together; found " + found);
  if (sdk::numel(y) == 0) return empty_plan();

  BatchOffsets offsets(a, b, count);
  // One weight for all entries and rows that go on from entry to entry: a single tall product.
  bool tall = count > 1;
  for (int64_t i = 0; i < count; ++i) {
    auto at = static_cast<size_t>(i);
    tall = tall && offsets.b[at] == 0 && offsets.a[at] == i * s.m * s.a_row;
  }
  if (tall) {
    s.m *= count;
    offsets.a = offsets.b = {0};
  }
  return with_float(request, a.dtype,
                    [&](auto zero) { return plan_batch<decltype(zero)>(s, std::move(offsets)); });
}

tn_plan* make_linear(tn_device*, const Request& request) {
  auto &x = request.input(0), &weight = request.input(1), &y = request.output(0);
  auto found =
      sdk::shape_text(x) + " and weight " + sdk::shape_text(weight) + " to " + sdk::shape_text(y);
  if (x.rank != 2 || weight.rank != 2 || y.rank != 2)
    sdk::invalid("operands have 2 dimensions; found " + found);
  if (x.dtype != weight.dtype || x.dtype != y.dtype) sdk::invalid("all tensors have one dtype");
  GemmShape s{x.shape[0],   weight.shape[0],   x.shape[1],       x.strides[0],
              x.strides[1], weight.strides[1], weight.strides[0]};
  if (weight.shape[1] != s.k || y.shape[0] != s.m || y.shape[1] != s.n)
    sdk::invalid("shapes do not fit together; found " + found);
  if (request.has_input(2)) {
    auto& bias = request.input(2);
    if (bias.rank != 1 || bias.shape[0] != s.n || bias.dtype != x.dtype)
      sdk::invalid("bias must be (" + std::to_string(s.n) + ") of the input's dtype; found " +
                   sdk::shape_text(bias));
    require_contiguous(request, bias);
  }
  if (sdk::numel(y) == 0) return empty_plan();
  return with_float(request, x.dtype, [&](auto zero) {
    using T = decltype(zero);
    Gemm<T> gemm(s, thread_count());
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
