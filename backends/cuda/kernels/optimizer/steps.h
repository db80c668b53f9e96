// Optimizer steps over all parameters in one launch: the kernel's parameter holds a table of the
// tensors, and each block takes a piece of one.
#pragma once

#include <memory>
#include <vector>

#include <tenon/plugins/sdk/optimizer_steps.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

constexpr int kRounds = 4;                 // packs of each tensor that one thread goes through
constexpr size_t kParameterBytes = 32764;  // of one launch, from CUDA 12.1 on
constexpr size_t kFewTensors = 64;         // a table of these is quick to hand over

// Tensor 1 of the `Tensors` of a parameter is the gradient; the others are read and written.
template <int Tensors, size_t Capacity>
struct Table {
  int64_t numel[Capacity];
  void* data[Capacity][Tensors];
  uint32_t first_block[Capacity];
  uint32_t count;
};
template <int Tensors>
constexpr size_t kManyTensors = (kParameterBytes - 256) / (8 + 8 * Tensors + 4);

template <class T>
constexpr uint32_t kPiece = kBlock * kPack<T> * kRounds;

template <int V, class Step, class T, int Tensors>
__device__ inline void update(const Step& step, T* const (&at)[Tensors], uint32_t i) {
  Pack<T, V> x[Tensors] = {};
#pragma unroll
  for (int t = 0; t < Tensors; ++t)
    if (step.reads(t)) x[t] = load_pack<V>(at[t] + i);
#pragma unroll
  for (int v = 0; v < V; ++v) {
    T one[Tensors];
#pragma unroll
    for (int t = 0; t < Tensors; ++t) one[t] = x[t].at[v];
    step(one);
#pragma unroll
    for (int t = 0; t < Tensors; ++t) x[t].at[v] = one[t];
  }
#pragma unroll
  for (int t = 0; t < Tensors; ++t)
    if (t != 1) store_pack<V>(at[t] + i, x[t]);
}

template <class Step, size_t Capacity>
__global__ void __launch_bounds__(kBlock)
    step_all(const __grid_constant__ Table<Step::kTensors, Capacity> table, Step step) {
  using T = typename Step::T;
  constexpr int V = kPack<T>, tensors = Step::kTensors;
  uint32_t which = 0, behind = table.count;
  while (behind - which > 1) {
    uint32_t middle = (which + behind) / 2;
    (table.first_block[middle] <= blockIdx.x ? which : behind) = middle;
  }
  int64_t start = static_cast<int64_t>(blockIdx.x - table.first_block[which]) * kPiece<T>,
          rest = table.numel[which] - start;
  uint32_t count = static_cast<uint32_t>(min(rest, static_cast<int64_t>(kPiece<T>))), packed = 0;
  T* at[tensors];
  uintptr_t bits = 0;
#pragma unroll
  for (int t = 0; t < tensors; ++t) {
    at[t] = static_cast<T*>(table.data[which][t]) + start;
    bits |= reinterpret_cast<uintptr_t>(at[t]);
  }
  if (bits % 16 == 0) packed = count / V * V;
#pragma unroll 1
  for (uint32_t i = threadIdx.x * V; i < packed; i += kBlock * V) update<V>(step, at, i);
#pragma unroll 1
  for (uint32_t i = packed + threadIdx.x; i < count; i += kBlock) update<1>(step, at, i);
}

// The parameters that have elements, in as many launches as the table's capacity asks for.
template <int Tensors>
class Steps {
 public:
  Steps(const Request& request, size_t n, int64_t piece) : n_(n) {
    int64_t blocks = 0;
    for (size_t i = 0; i < n; ++i) {
      int64_t numel = sdk::numel(request.input(i));
      if (numel == 0) continue;
      if (parameters_.size() % kManyTensors<Tensors> == 0) blocks = 0;
      parameters_.push_back({i, numel, static_cast<uint32_t>(blocks)});
      blocks += ceil_div(numel, piece);
      if (blocks > INT32_MAX) sdk::unsupported("more elements than one launch can have");
      parameters_.back().end_block = static_cast<uint32_t>(blocks);
    }
    if (parameters_.size() <= kFewTensors) {
      few_ = std::make_unique<Table<Tensors, kFewTensors>>();
    } else {
      many_ = std::make_unique<Table<Tensors, kManyTensors<Tensors>>>();
    }
  }

  template <class Step>
  void run(const tn_run& run, const Step& step) const {
    if (few_) return run_with(*few_, run, step);
    run_with(*many_, run, step);
  }

 private:
  struct Parameter {
    size_t index;
    int64_t numel;
    uint32_t first_block, end_block = 0;
  };

  template <size_t Capacity, class Step>
  void run_with(Table<Tensors, Capacity>& table, const tn_run& run, const Step& step) const {
    for (size_t begin = 0; begin < parameters_.size(); begin += Capacity) {
      size_t count = std::min(Capacity, parameters_.size() - begin);
      for (size_t k = 0; k < count; ++k) {
        auto& p = parameters_[begin + k];
        table.numel[k] = p.numel;
        table.first_block[k] = p.first_block;
        for (size_t t = 0; t < Tensors; ++t) table.data[k][t] = run.inputs[t * n_ + p.index];
      }
      table.count = static_cast<uint32_t>(count);
      launch(run.stream, dim3(parameters_[begin + count - 1].end_block), kBlock,
             step_all<Step, Capacity>, table, step);
    }
  }

  size_t n_;
  std::vector<Parameter> parameters_;
  // Filled again in each run, since pointers may change; runs of a plan never overlap.
  std::unique_ptr<Table<Tensors, kFewTensors>> few_;
  std::unique_ptr<Table<Tensors, kManyTensors<Tensors>>> many_;
};

// The plan of Step, which is made from the numbers of a run.
template <class Step, class R>
tn_plan* plan_of(const Request& request, const R& r) {
  using T = typename Step::T;
  auto run = [r, steps = Steps<Step::kTensors>(request, r.n, kPiece<T>)](const tn_run& run) {
    steps.run(run, Step{r.template numbers<T>(run.scalars)});
  };
  return make_plan(std::move(run));
}

}  // namespace
}  // namespace tenon::cuda
