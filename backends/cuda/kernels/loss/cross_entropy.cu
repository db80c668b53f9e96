// Cross entropy of logits against class numbers: log-softmax and the negative log-likelihood in
// one.
#include <tenon/plugins/sdk/requests/loss.h>

#include "kernels/normalization/softmax.h"
#include "runtime/common.h"

namespace tenon::cuda {
namespace {

struct CrossEntropy : sdk::CrossEntropyRequest {
  explicit CrossEntropy(const Request& request) : CrossEntropyRequest(from(request)) {}

  unsigned lanes() const {
    return c > 2048 || (c > 512 && n < 2048) ? kBlock
                                             : std::min(32u, power_of_two_from(ceil_div(c, 4)));
  }
};

// What the kernels get. `weight` is null where all classes weigh 1.
template <class T>
struct Operands {
  const T* logits;
  const int64_t* target;
  const T* weight;
  Fault* fault;

  Operands(const CrossEntropy& s, const tn_run& run, size_t first)
      : logits(static_cast<const T*>(run.inputs[first])),
        target(static_cast<const int64_t*>(run.inputs[first + 1])),
        weight(s.weighted ? static_cast<const T*>(run.inputs[first + 2]) : nullptr),
        fault(run.stream->fault) {}
};

__device__ inline bool inside(int64_t label, const CrossEntropy& s) {
  return label >= 0 && label < s.c;
}

// Loss of row i: (1 - smoothing) w[t] l(t) + smoothing / c * sum over j of w[j] l(j), where l(j) =
// -log(softmax(x)[j]) = log_sum - (x[j] - top). The last sum is taken before the top is known, so
// of x[j] - near: what is added up is as small as the differences of the logits.
template <class T>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_rows(CrossEntropy s, Operands<T> o, T* losses, T* normalizer, unsigned lanes,
                       bool packs) {
  __shared__ T shared[32];
  const Group group = Group::of(lanes);
  const int64_t turns = group.turns(s.n);
  const T smoothing = static_cast<T>(s.smoothing);
  for (int64_t turn = 0; turn < turns; ++turn) {
    const int64_t row = turn * group.count + group.index;
    const T* x = o.logits + (row < s.n ? row : s.n - 1) * s.c;
    LogSum<T> found;
    const T near = s.c > 0 && x[0] - x[0] == 0 ? x[0] : T(0);
    T smooth = 0, weights = 0;
    for_row_of<T>(packs, s.c, group.lane, group.lanes, [&](int64_t at, auto width) {
      constexpr int V = decltype(width)::value;
      const auto p = load_pack<V>(x + at);
      found.take(p.at);
      if (smoothing == 0) return;
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const T w = o.weight ? o.weight[at + i] : T(1);
        smooth += (p.at[i] - near) * w;
        weights += w;
      }
    });
    found = group_log_sum(found, group, shared);
    if (smoothing != 0) {
      smooth = group.reduce(smooth, Add{}, shared);
      weights = group.reduce(weights, Add{}, shared);
    }
    if (group.lane != 0 || row >= s.n) continue;
    const T log_sum = log_of(found.sum);
    const int64_t t = o.target[row];
    T loss = 0;
    if (t != s.ignore && !inside(t, s)) {
      file_fault(o.fault, FaultSite::cross_entropy, row, t, s.c);
      loss = kNan<T>;
    } else if (t != s.ignore) {
      loss = (1 - smoothing) * (o.weight ? o.weight[t] : T(1)) * (log_sum - (x[t] - found.top));
      if (smoothing != 0)
        loss +=
            smoothing / static_cast<T>(s.c) * (weights * (log_sum + (found.top - near)) - smooth);
    }
    normalizer[row] = found.top;
    normalizer[s.n + row] = log_sum;
    losses[row] = loss;
  }
}

// Sums over rows, in f64.
struct Totals {
  double loss, weight;
  __device__ Totals shuffled(unsigned mask) const {
    return {shuffle_xor(loss, mask), shuffle_xor(weight, mask)};
  }
};
struct AddTotals {
  __device__ Totals operator()(const Totals& a, const Totals& b) const {
    return {a.loss + b.loss, a.weight + b.weight};
  }
};

template <class T>
__device__ void write_totals(sdk::Reduction reduction, const Totals& sum, T* loss, T* total) {
  *total = static_cast<T>(sum.weight);
  if (reduction != sdk::Reduction::none)
    *loss = static_cast<T>(reduction == sdk::Reduction::mean ? sum.loss / sum.weight : sum.loss);
}

// One block writes the results, several leave their shares.
template <class T>
__global__ void __launch_bounds__(1024)
    cross_entropy_total(CrossEntropy s, Operands<T> o, const T* losses, T* loss, T* total,
                        Totals* shares) {
  __shared__ Totals shared[32];
  Totals sum{0, 0};
  for (int64_t row = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; row < s.n;
       row += int64_t{gridDim.x} * blockDim.x) {
    const int64_t t = o.target[row];
    if (t == s.ignore) continue;
    sum.loss += static_cast<double>(losses[row]);
    sum.weight += o.weight && inside(t, s) ? static_cast<double>(o.weight[t]) : 1.0;
  }
  sum = block_reduce(sum, AddTotals{}, shared);
  if (threadIdx.x != 0) return;
  if (gridDim.x == 1)
    write_totals(s.reduction, sum, loss, total);
  else
    shares[blockIdx.x] = sum;
}

template <class T>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_finish(sdk::Reduction reduction, const Totals* shares, unsigned count, T* loss,
                         T* total) {
  __shared__ Totals shared[32];
  Totals sum{0, 0};
  for (unsigned i = threadIdx.x; i < count; i += blockDim.x) sum = AddTotals{}(sum, shares[i]);
  sum = block_reduce(sum, AddTotals{}, shared);
  if (threadIdx.x == 0) write_totals(reduction, sum, loss, total);
}

template <class T>
__global__ void __launch_bounds__(1024) sum_of_weights(const T* weight, int64_t c, T* sum) {
  __shared__ T shared[32];
  T mine = 0;
  for (int64_t i = threadIdx.x; i < c; i += blockDim.x) mine += weight[i];
  mine = block_reduce(mine, Add{}, shared);
  if (threadIdx.x == 0) *sum = mine;
}

template <class T>
struct CrossEntropyBackward {
  const T *g, *normalizer, *total,
      *weights;  // weights: the sum over classes; null where it is c or of no interest
  T* glogits;
  Divider packs_a_row;
};

template <class T, int V>
__global__ void __launch_bounds__(kBlock)
    cross_entropy_backward(CrossEntropy s, Operands<T> o, CrossEntropyBackward<T> b) {
  const T smooth = static_cast<T>(s.smoothing) / static_cast<T>(s.c),
          keep = 1 - static_cast<T>(s.smoothing);
  const T weights = smooth == 0 ? T(0) : b.weights ? *b.weights : static_cast<T>(s.c);
  const int64_t units = s.n * (s.c / V);
  for (int64_t unit = int64_t{blockIdx.x} * blockDim.x + threadIdx.x; unit < units;
       unit += int64_t{gridDim.x} * blockDim.x) {
    int64_t row = unit;
    const int64_t column = split(row, b.packs_a_row) * V, t = o.target[row];
    Pack<T, V> p{};
    if (t != s.ignore && !inside(t, s)) {
      if (column == 0) file_fault(o.fault, FaultSite::cross_entropy, row, t, s.c);
#pragma unroll
      for (T& v : p.at) v = kNan<T>;
    } else if (t != s.ignore) {
      const T g = s.reduction == sdk::Reduction::none   ? b.g[row]
                  : s.reduction == sdk::Reduction::mean ? *b.g / *b.total
                                                        : *b.g;
      const T hit = keep * (o.weight ? o.weight[t] : T(1)), scale = g * (hit + smooth * weights),
              lower = g * smooth;
      const T top = b.normalizer[row], log_sum = b.normalizer[s.n + row];
      p = load_pack<V>(o.logits + unit * V);
#pragma unroll
      for (int i = 0; i < V; ++i) {
        T v = exp_of(p.at[i] - top - log_sum) * scale;
        if (smooth != 0) v -= o.weight ? o.weight[column + i] * lower : lower;
        p.at[i] = column + i == t ? v - g * hit : v;
      }
    }
    store_pack<V>(b.glogits + unit * V, p);
  }
}

// ---- Plans

constexpr int64_t kRowsOfBlock = 8192;  // that one block adds up

template <class T>
tn_plan* plan_forward(const CrossEntropy& s) {
  const bool none = s.reduction == sdk::Reduction::none;
  const unsigned blocks =
      static_cast<unsigned>(std::clamp<int64_t>(ceil_div(s.n, kRowsOfBlock), 1, 256));
  const auto losses_bytes = none ? 0 : (static_cast<uint64_t>(s.n) * sizeof(T) + 63) / 64 * 64;
  auto body = [=](const tn_run& run) {
    const Operands<T> o(s, run, 0);
    auto *loss = static_cast<T*>(run.outputs[0]), *normalizer = static_cast<T*>(run.outputs[1]),
         *total = static_cast<T*>(run.outputs[2]);
    T* losses = none ? loss : static_cast<T*>(run.workspace);
    auto* shares = reinterpret_cast<Totals*>(static_cast<char*>(run.workspace) + losses_bytes);
    const GroupShape shape{kBlock, s.lanes()};
    const bool packs = s.c % kFullPack<T> == 0 && aligned(o.logits, 16);
    if (s.n > 0)
      launch(run.stream, shape.grid(*run.stream->device, s.n), shape.block, cross_entropy_rows<T>,
             s, o, losses, normalizer, shape.lanes, packs);
    launch(run.stream, blocks, 1024, cross_entropy_total<T>, s, o, losses, loss, total, shares);
    if (blocks > 1)
      launch(run.stream, 1, kBlock, cross_entropy_finish<T>, s.reduction, shares, blocks, loss,
             total);
  };
  return make_plan(body, losses_bytes + (blocks > 1 ? blocks * sizeof(Totals) : 0));
}

template <class T>
tn_plan* plan_backward(const CrossEntropy& s) {
  const bool sums_weights = s.weighted && s.smoothing != 0;
  auto body = [=, by_packs = divider_of(s.c / kFullPack<T>),
               by_elements = divider_of(s.c)](const tn_run& run) {
    const Operands<T> o(s, run, 1);
    CrossEntropyBackward<T> b{static_cast<const T*>(run.inputs[0]),
                              static_cast<const T*>(run.inputs[4]),
                              static_cast<const T*>(run.inputs[5]),
                              sums_weights ? static_cast<const T*>(run.workspace) : nullptr,
                              static_cast<T*>(run.outputs[0]),
                              by_elements};
    if (sums_weights)
      launch(run.stream, 1, 1024, sum_of_weights<T>, o.weight, s.c, static_cast<T*>(run.workspace));
    const bool packs = s.c % kFullPack<T> == 0 && aligned(o.logits, 16) && aligned(b.glogits, 16);
    if (packs) b.packs_a_row = by_packs;
    const unsigned grid =
        stride_blocks(*run.stream->device, s.n * s.c / (packs ? kFullPack<T> : 1));
    launch(run.stream, grid, kBlock,
           packs ? cross_entropy_backward<T, kFullPack<T>> : cross_entropy_backward<T, 1>, s, o, b);
  };
  return make_plan(body, sums_weights ? sizeof(T) : 0);
}

tn_plan* make_cross_entropy(tn_device*, const Request& request) {
  const CrossEntropy s(request);
  return with_float(s.dtype, [&s]<class T>(T) { return plan_forward<T>(s); });
}

tn_plan* make_cross_entropy_backward(tn_device*, const Request& request) {
  const CrossEntropy s(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return with_float(s.dtype, [&s]<class T>(T) { return plan_backward<T>(s); });
}

const sdk::Kernel cross_entropies({"cross_entropy"}, make_cross_entropy);
const sdk::Kernel cross_entropy_gradients({"cross_entropy_backward"}, make_cross_entropy_backward);

}  // namespace
}  // namespace tenon::cuda
