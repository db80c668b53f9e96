// Pointwise operators of one tensor.
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/pointwise/pointwise.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

struct Neg {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));  // wraps
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else {
      return x < T(0) ? Neg::of(x) : x;
    }
  }
};
struct Sign {
  template <class T>
  static T of(T x) {
    return static_cast<T>(static_cast<T>(x > T(0)) -
                          static_cast<T>(x < T(0)));  // 0 for NaN, as PyTorch's
  }
};
struct Square {
  template <class T>
  static T of(T x) {
    if constexpr (std::is_integral_v<T>) {
      auto u = static_cast<std::make_unsigned_t<T>>(x);
      return static_cast<T>(u * u);
    } else {
      return x * x;
    }
  }
};
struct Relu {
  template <class T>
  static T of(T x) {
    return x < T(0) ? T(0) : x;  // keeps NaN
  }
};
// What has a formula of one line.
#define TN_UNARY(Name, formula) \
  struct Name {                 \
    template <class T>          \
    static T of(T x) {          \
      return formula;           \
    }                           \
  }
TN_UNARY(Reciprocal, T(1) / x);
TN_UNARY(Sqrt, std::sqrt(x));
TN_UNARY(Rsqrt, T(1) / std::sqrt(x));
TN_UNARY(Floor, std::floor(x));
TN_UNARY(Ceil, std::ceil(x));
TN_UNARY(Round, std::nearbyint(x));
#undef TN_UNARY

template <class Op, class T>
void unary_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) y[i] = Op::of(x[i]);
}

// Functions of whole packets.
#define TN_PACKETS(Name, formula) \
  struct Name {                   \
    template <class T>            \
    static Vec<T> of(Vec<T> x) {  \
      return formula;             \
    }                             \
  }
TN_PACKETS(Exp, math::exp<T>(x));
TN_PACKETS(Log, math::log<T>(x));
TN_PACKETS(Sin, math::sin<T>(x));
TN_PACKETS(Cos, math::cos<T>(x));
TN_PACKETS(Erf, math::erf<T>(x));
TN_PACKETS(Tanh, math::tanh<T>(x));
TN_PACKETS(Sigmoid, math::sigmoid<T>(x));
TN_PACKETS(Silu, x / (splat(T(1)) + math::exp<T>(-x)));
TN_PACKETS(Gelu,
           x* splat(T(0.5)) * (splat(T(1)) + math::erf<T>(x * splat(T(0.70710678118654752440)))));
#undef TN_PACKETS

template <class Op, class T>
void packet_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  for_lanes<T>(row.n, [&](int64_t i, auto part) {
    store<T>(y + i, Op::template of<T>(load(x + i, part)), part);
  });
}

struct Entry {
  const char* op;
  double ns_f32, ns_f64;  // on one core of 2023
  RowKernel f32, f64, i64 = nullptr, i32 = nullptr, u8 = nullptr;
};

template <class Op>
constexpr Entry floats(const char* op, double ns_f32, double ns_f64) {
  return {op, ns_f32, ns_f64, unary_row<Op, float>, unary_row<Op, double>};
}
template <class Op>
constexpr Entry packets(const char* op, double ns_f32, double ns_f64) {
  return {op, ns_f32, ns_f64, packet_row<Op, float>, packet_row<Op, double>};
}
template <class Op>
constexpr Entry numbers(const char* op) {
  return {op,
          0.2,
          0.4,
          unary_row<Op, float>,
          unary_row<Op, double>,
          unary_row<Op, int64_t>,
          unary_row<Op, int32_t>,
          unary_row<Op, uint8_t>};
}

constexpr Entry kEntries[] = {
    numbers<Neg>("neg"),
    numbers<Abs>("abs"),
    numbers<Sign>("sign"),
    numbers<Square>("square"),
    numbers<Relu>("relu"),
    floats<Reciprocal>("reciprocal", 0.2, 0.5),
    packets<Exp>("exp", 0.3, 0.9),
    packets<Log>("log", 0.4, 1.8),
    floats<Sqrt>("sqrt", 0.3, 0.8),
    floats<Rsqrt>("rsqrt", 0.5, 1.3),
    packets<Sin>("sin", 0.5, 12),
    packets<Cos>("cos", 0.5, 12),
    packets<Erf>("erf", 0.3, 12),
    packets<Tanh>("tanh", 0.3, 1.6),
    packets<Sigmoid>("sigmoid", 0.4, 1.3),
    packets<Silu>("silu", 0.4, 1.3),
    packets<Gelu>("gelu", 0.4, 12),
    floats<Floor>("floor", 0.2, 0.4),
    floats<Ceil>("ceil", 0.2, 0.4),
    floats<Round>("round", 0.2, 0.4),
};

RowKernel pick(const Entry& e, tn_dtype dtype) {
  switch (compute_dtype(dtype)) {
    case TN_F32:
      return e.f32;
    case TN_F64:
      return e.f64;
    case TN_I64:
      return e.i64;
    case TN_I32:
      return e.i32;
    case TN_U8:
      return e.u8;
    default:
      return nullptr;
  }
}

tn_plan* make_unary(tn_device*, const Request& request) {
  auto& x = request.input(0);
  auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                             [&](auto& e) { return request.op() == e.op; });
  auto kernel = pick(*entry, x.dtype);
  if (!kernel) refuse_dtype(request, x.dtype);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&x}, 0, x.dtype == TN_F64 ? entry->ns_f64 : entry->ns_f32);
  return sdk::make_plan(
      [loop, kernel](const tn_run& run) { loop.run(kernel, run.outputs[0], run.inputs); },
      {0, loop.cost_ns()});
}

const sdk::Kernel unary({"neg",     "abs",  "sign",  "square", "relu", "reciprocal", "exp",
                         "log",     "sqrt", "rsqrt", "sin",    "cos",  "erf",        "tanh",
                         "sigmoid", "silu", "gelu",  "floor",  "ceil", "round"},
                        make_unary);

// Limits outside an integer dtype stand for "none" there.
template <class T>
T limit(const tn_scalar& s) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(s.f);
  } else {
    return static_cast<T>(
        std::clamp<int64_t>(s.i, std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  }
}

template <class T>
void clamp_row(const Row& row) {
  auto* y = static_cast<T*>(row.out);
  auto* x = static_cast<const T*>(row.in[0]);
  auto* limits = static_cast<const T*>(row.in[1]);
  T low = limits[0], high = limits[1];
  TN_INDEPENDENT
  for (int64_t i = 0; i < row.n; ++i) {
    T v = x[i] < low ? low : x[i];  // NaN stays
    y[i] = v > high ? high : v;
  }
}

tn_plan* make_clamp(tn_device*, const Request& request) {
  auto& x = request.input(0);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&x, nullptr}, 0, 0.2);
  auto plan = [&]<class T>(T) {
    auto run = [loop](const tn_run& run) {
      T limits[2] = {limit<T>(run.scalars[0]), limit<T>(run.scalars[1])};
      const void* in[] = {run.inputs[0], limits};
      loop.run(clamp_row<T>, run.outputs[0], in);
    };
    return sdk::make_plan(run, {0, loop.cost_ns()});
  };
  switch (compute_dtype(x.dtype)) {
    case TN_F32:
      return plan(float{});
    case TN_F64:
      return plan(double{});
    case TN_I64:
      return plan(int64_t{});
    case TN_I32:
      return plan(int32_t{});
    case TN_U8:
      return plan(uint8_t{});
    default:
      refuse_dtype(request, x.dtype);
  }
}

const sdk::Kernel clamp({"clamp"}, make_clamp);

}  // namespace
}  // namespace tenon::cpu
