// The loop under every pointwise operator: two kernels for each functor and its types. `flat` is
// for operands that are contiguous or one value throughout; `strided` for all else. Functors see
// the computing type of each operand; all loads of a thread are queued before its first result is
// made, so an output may be in the same memory as an input.
#pragma once

#include <algorithm>
#include <utility>

#include <tenon/plugins/sdk/formulas.h>
#include <tenon/plugins/sdk/requests/pointwise.h>

#include "device/convert.h"
#include "device/launch.h"
#include "device/layout.h"
#include "device/vector.h"
#include "runtime/common.h"

namespace tenon::cuda {

namespace formulas = sdk::formulas;
using sdk::ByDtype, sdk::Type;

// An input of a kernel; where `data` is null, `value` stands for all its elements.
template <class T>
struct Operand {
  const T* data;
  Computed<T> value;
  bool single;   // flat: one element for all
  bool vectors;  // strided: rows may be loaded in packs
};
template <class T>
Operand<T> operand(const void* data) {
  return {static_cast<const T*>(data), {}, false, false};
}
template <class T>
Operand<T> constant(Computed<T> value) {
  return {nullptr, value, true, false};
}

// Elements that a load brings: 16 bytes of the widest type, and fewer where there is no one line of
// memory to follow.
template <class... T>
inline constexpr int kPack = 16 / static_cast<int>(std::max({sizeof(T)...}));
template <class... T>
inline constexpr int kRow = std::min(kPack<T...>, 4);
inline constexpr int kUnroll = 2;  // packs of each operand that a thread of `flat` has in flight

namespace detail {

template <class Op, class Out, int E, class... C>
__device__ inline Pack<Out, E> apply(const Op& op, const Pack<C, E>&... x) {
  Pack<Out, E> y;
#pragma unroll
  for (int e = 0; e < E; ++e) y.at[e] = cast<Out>(op(x.at[e]...));
  return y;
}

// One thread's elements of a tile: `whole` tiles in packs, others one element every kBlock, up to
// `count`.
template <int V, class T>
__device__ inline auto load_flat(const Operand<T>& o, int64_t start, uint32_t count, bool whole) {
  Pack<Computed<T>, V * kUnroll> x;
  if (o.single) {
    Computed<T> value = o.data ? widen(*o.data) : o.value;
#pragma unroll
    for (int e = 0; e < V * kUnroll; ++e) x.at[e] = value;
  } else if (whole) {
    Pack<T, V> raw[kUnroll];
#pragma unroll
    for (int u = 0; u < kUnroll; ++u)
      raw[u] = load_pack<V>(o.data + start + (u * kBlock + threadIdx.x) * V);
#pragma unroll
    for (int e = 0; e < V * kUnroll; ++e) x.at[e] = widen(raw[e / V].at[e % V]);
  } else {
#pragma unroll
    for (int e = 0; e < V * kUnroll; ++e) {
      uint32_t i = e * kBlock + threadIdx.x;
      x.at[e] = i < count ? widen(o.data[start + i]) : Computed<T>{};
    }
  }
  return x;
}
template <int V, class T>
__device__ inline void store_flat(T* y, uint32_t count, bool whole, const Pack<T, V * kUnroll>& x) {
  if (whole) {
#pragma unroll
    for (int u = 0; u < kUnroll; ++u) {
      Pack<T, V> raw;
#pragma unroll
      for (int v = 0; v < V; ++v) raw.at[v] = x.at[u * V + v];
      store_pack<V>(y + (u * kBlock + threadIdx.x) * V, raw);
    }
  } else {
#pragma unroll
    for (int e = 0; e < V * kUnroll; ++e)
      if (uint32_t i = e * kBlock + threadIdx.x; i < count) y[i] = x.at[e];
  }
}

// `packs`: every pointer is aligned to a pack.
template <class Op, class Out, class... In>
__global__ void __launch_bounds__(kBlock)
    flat(Op op, Out* y, int64_t n, bool packs, Operand<In>... in) {
  constexpr int V = kPack<Out, In...>;
  constexpr uint32_t tile = kBlock * V * kUnroll;
  int64_t start = static_cast<int64_t>(blockIdx.x) * tile;
  uint32_t count = static_cast<uint32_t>(min(n - start, static_cast<int64_t>(tile)));
  bool whole = packs && count == tile;
  store_flat<V, Out>(y + start, count, whole,
                     apply<Op, Out, V * kUnroll>(op, load_flat<V>(in, start, count, whole)...));
}

// Operand K at the first `count` of R offsets. Where it has stride 0 in a row, the row's elements
// are one.
template <int R, int K, int N, class T>
__device__ inline auto load_at(const Operand<T>& o, const uint32_t (&offset)[R][N], uint32_t count,
                               bool one) {
  Pack<Computed<T>, R> x;
  if (!o.data || (one && count)) {
    Computed<T> value = o.data ? widen(o.data[offset[0][K]]) : o.value;
#pragma unroll
    for (int r = 0; r < R; ++r) x.at[r] = value;
  } else if (o.vectors && count) {
    Pack<T, R> raw = load_pack<R>(o.data + offset[0][K]);
#pragma unroll
    for (int r = 0; r < R; ++r) x.at[r] = widen(raw.at[r]);
  } else {
#pragma unroll
    for (uint32_t r = 0; r < R; ++r)
      x.at[r] = r < count ? widen(o.data[offset[r][K]]) : Computed<T>{};
  }
  return x;
}

// `rows`: the innermost size is a multiple of R, so a thread takes R elements of a row.
template <class Op, class Out, class... In, size_t... K>
__device__ inline void strided_block(const Op& op, Out* y, bool rows, bool out_vectors,
                                     const Layout<sizeof...(In) + 1>& layout,
                                     std::index_sequence<K...>, const Operand<In>&... in) {
  constexpr int R = kRow<Out, In...>, N = sizeof...(In) + 1;
  uint32_t offset[R][N], count = 0,
                         first = blockIdx.x * kBlock * R + (rows ? threadIdx.x * R : threadIdx.x);
  if (rows) {
    layout.row_offsets(first, offset);
    count = first < layout.numel ? R : 0;
  } else {
    layout.offsets(first, kBlock, offset);
#pragma unroll
    for (int r = 0; r < R; ++r) count += first + r * kBlock < layout.numel;
  }
  Pack<Out, R> x = apply<Op, Out, R>(
      op, load_at<R, K + 1, N>(in, offset, count, rows && layout.strides[K + 1][0] == 0)...);
  if (out_vectors && count) return store_pack<R>(y + offset[0][0], x);
#pragma unroll
  for (uint32_t r = 0; r < R; ++r)
    if (r < count) y[offset[r][0]] = x.at[r];
}

template <class Op, class Out, class... In>
__global__ void __launch_bounds__(kBlock)
    strided(Op op, Out* y, bool rows, bool out_vectors,
            const __grid_constant__ Layout<sizeof...(In) + 1> layout, Operand<In>... in) {
  strided_block<Op, Out, In...>(op, y, rows, out_vectors, layout, std::index_sequence_for<In...>{},
                                in...);
}

}  // namespace detail

// Operand 0 is the output. Prepared once, run with any functor.
template <int N>
class Loop {
 public:
  explicit Loop(Nest nest) : numel_(nest.numel) {
    flat_ = nest.contiguous(0);
    for (int k = 1; k < N; ++k) {
      single_[k] = nest.rank == 1 && nest.strides[k][0] == 0;
      flat_ = flat_ && (single_[k] || nest.contiguous(k));
    }
    if (flat_) return;
    nest.tile();
    for (auto& part : nest.pieces()) {
      Piece piece{part.layout<N>(), {}, {}, part.cols_multiple()};
      for (int k = 0; k < N; ++k) {
        piece.base[k] = part.base[k];
        piece.multiple[k] = part.col_stride(k) == 1 ? part.rows_multiple(k) : 0;
      }
      pieces_.push_back(piece);
    }
  }

  template <class Op, class Out, class... In>
  void run(tn_stream* stream, const Op& op, void* out, Operand<In>... in) const {
    static_assert(sizeof...(In) + 1 == N);
    run_parts<Op, Out, In...>(stream, op, static_cast<Out*>(out), std::index_sequence_for<In...>{},
                              in...);
  }

 private:
  struct Piece {
    Layout<N> layout;
    int64_t base[N];
    int64_t
        multiple[N];  // of the strides that lead from row to row; 0 where a row is not contiguous
    int64_t cols_multiple;
  };

  template <class Op, class Out, class... In, size_t... K>
  void run_parts(tn_stream* stream, const Op& op, Out* y, std::index_sequence<K...>,
                 Operand<In>... in) const {
    constexpr int V = kPack<Out, In...>;
    if (flat_) {
      ((in.single = in.single || single_[K + 1]), ...);
      bool packs =
          aligned(y, V * sizeof(Out)) && ((in.single || aligned(in.data, V * sizeof(In))) && ...);
      dim3 grid(static_cast<unsigned>(ceil_div(numel_, int64_t{kBlock} * V * kUnroll)));
      return launch(stream, grid, kBlock, detail::flat<Op, Out, In...>, op, y, numel_, packs,
                    in...);
    }
    constexpr int R = kRow<Out, In...>;
    for (auto& piece : pieces_) {
      bool rows = piece.cols_multiple >= R;
      auto vectors = [&](auto* p, size_t k) {
        return rows && p && piece.multiple[k] >= R && aligned(p + piece.base[k], R * sizeof(*p));
      };
      [[maybe_unused]] auto moved = [&](auto o, size_t k) {
        o.vectors = vectors(o.data, k);
        if (o.data) o.data += piece.base[k];
        return o;
      };
      dim3 grid(static_cast<unsigned>(ceil_div(piece.layout.numel, int64_t{kBlock} * R)));
      launch(stream, grid, kBlock, detail::strided<Op, Out, In...>, op, y + piece.base[0], rows,
             vectors(y, 0), piece.layout, moved(in, K + 1)...);
    }
  }

  int64_t numel_;
  bool flat_;
  bool single_[N] = {};
  std::vector<Piece> pieces_;
};

// The loop of an operator whose output is contiguous; a NULL input is a single value.
template <class... Inputs>
Loop<sizeof...(Inputs) + 1> loop_over(const Request& request, const Inputs*... inputs) {
  require_contiguous(request.output(0));
  return Loop<sizeof...(Inputs) + 1>(Nest({&request.output(0), inputs...}));
}

// An operand that arrives as a scalar, in the computing type of the tensors beside it.
template <class C>
C value_of(tn_dtype dtype, const tn_scalar& s) {
  if constexpr (std::is_floating_point_v<C>) {
    return static_cast<C>(s.f);
  } else {
    return dtype == TN_BOOL ? static_cast<C>(s.i != 0) : static_cast<C>(s.i);
  }
}

// Where the second operand of a, b? -> y comes from.
enum class Second { tensor, scalar, scalar_comes_first };

using BinaryStart = void (*)(const Loop<3>& loop, const tn_run& run, Second second, tn_dtype dtype);

template <class Op, class Out, class T>
void start_binary_as(const Op& op, const Loop<3>& loop, const tn_run& run, Second second,
                     tn_dtype dtype) {
  auto a = operand<T>(run.inputs[0]);
  auto b = second == Second::tensor ? operand<T>(run.inputs[1])
                                    : constant<T>(value_of<Computed<T>>(dtype, run.scalars[0]));
  if (second == Second::scalar_comes_first) std::swap(a, b);
  loop.run<Op, Out, T, T>(run.stream, op, run.outputs[0], a, b);
}
template <class Op, class Out, class T>
void start_binary(const Loop<3>& loop, const tn_run& run, Second second, tn_dtype dtype) {
  start_binary_as<Op, Out, T>(Op{}, loop, run, second, dtype);
}

inline tn_plan* make_binary_plan(const Request& request, BinaryStart start) {
  const auto r = sdk::BinaryRequest::from(request);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  const Second second = r.scalar_first()    ? Second::scalar_comes_first
                        : r.scalar_second() ? Second::scalar
                                            : Second::tensor;
  return make_plan([loop = loop_over(request, r.a, r.b), start, second,
                    dtype = r.dtype](const tn_run& run) { start(loop, run, second, dtype); });
}

using UnaryStart = void (*)(const Loop<2>& loop, const tn_run& run);

template <class Op, class Out, class T>
void start_unary(const Loop<2>& loop, const tn_run& run) {
  loop.run<Op, Out, T>(run.stream, Op{}, run.outputs[0], operand<T>(run.inputs[0]));
}

inline tn_plan* make_unary_plan(const Request& request, UnaryStart start) {
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  return make_plan([loop = loop_over(request, &request.input(0)), start](const tn_run& run) {
    start(loop, run);
  });
}

// A start for each dtype: `make(Type<T>())` for T the type of the elements.
template <class Make>
constexpr auto float_starts(Make make) {
  return sdk::for_floats<Half, BFloat>(make);
}
template <class Make>
constexpr auto number_starts(Make make) {
  return sdk::for_numbers<Half, BFloat>(make);
}

}  // namespace tenon::cuda
