// Pointwise operators of one tensor.
#include <cmath>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

struct Neg {
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(x));  // wraps
    } else {
      return -x;
    }
  }
};
struct Abs {
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_floating_point_v<T>) {
      return std::fabs(x);
    } else if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? Neg()(x) : x;
    }
  }
};
struct Sign {
  template <class T>
  __device__ T operator()(T x) const {
    T positive = static_cast<T>(x > T(0));
    if constexpr (std::is_unsigned_v<T>) {
      return positive;
    } else {
      return static_cast<T>(positive - static_cast<T>(x < T(0)));  // 0 for NaN, as PyTorch's
    }
  }
};
struct Square {
  template <class T>
  __device__ T operator()(T x) const {
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
  __device__ T operator()(T x) const {
    if constexpr (std::is_unsigned_v<T>) {
      return x;
    } else {
      return x < T(0) ? T(0) : x;  // keeps NaN
    }
  }
};

// What has a formula of one line.
#define TN_UNARY(Name, formula)          \
  struct Name {                          \
    template <class T>                   \
    __device__ T operator()(T x) const { \
      return formula;                    \
    }                                    \
  }
TN_UNARY(Reciprocal, T(1) / x);
TN_UNARY(Exp, std::exp(x));
TN_UNARY(Log, std::log(x));
TN_UNARY(Sqrt, std::sqrt(x));
TN_UNARY(Rsqrt, T(1) / std::sqrt(x));
TN_UNARY(Sin, std::sin(x));
TN_UNARY(Cos, std::cos(x));
TN_UNARY(Erf, std::erf(x));
TN_UNARY(Tanh, std::tanh(x));
TN_UNARY(Sigmoid, T(1) / (T(1) + std::exp(-x)));
TN_UNARY(Silu, x / (T(1) + std::exp(-x)));
TN_UNARY(Gelu, T(0.5) * x * (T(1) + std::erf(x * T(0.70710678118654752440))));
TN_UNARY(Floor, std::floor(x));
TN_UNARY(Ceil, std::ceil(x));
TN_UNARY(Round, std::nearbyint(x));
#undef TN_UNARY

struct Entry {
  const char* op;
  ByDtype<UnaryStart> start;
};
template <class Op>
constexpr Entry floats(const char* op) {
  return {op,
          {.f32 = start_unary<Op, float, float>,
           .f64 = start_unary<Op, double, double>,
           .f16 = start_unary<Op, Half, Half>,
           .bf16 = start_unary<Op, BFloat, BFloat>,
           .i64 = nullptr,
           .i32 = nullptr,
           .u8 = nullptr,
           .boolean = nullptr}};
}
template <class Op>
constexpr Entry numbers(const char* op) {
  Entry e = floats<Op>(op);
  e.start.i64 = start_unary<Op, int64_t, int64_t>;
  e.start.i32 = start_unary<Op, int32_t, int32_t>;
  e.start.u8 = start_unary<Op, uint8_t, uint8_t>;
  return e;
}

constexpr Entry kEntries[] = {
    numbers<Neg>("neg"),        numbers<Abs>("abs"),
    numbers<Sign>("sign"),      numbers<Square>("square"),
    numbers<Relu>("relu"),      floats<Exp>("exp"),
    floats<Log>("log"),         floats<Reciprocal>("reciprocal"),
    floats<Sqrt>("sqrt"),       floats<Sin>("sin"),
    floats<Cos>("cos"),         floats<Rsqrt>("rsqrt"),
    floats<Erf>("erf"),         floats<Tanh>("tanh"),
    floats<Sigmoid>("sigmoid"), floats<Silu>("silu"),
    floats<Gelu>("gelu"),       floats<Floor>("floor"),
    floats<Ceil>("ceil"),       floats<Round>("round"),
};

tn_plan* make_unary(tn_device*, const Request& request) {
  auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                             [&](auto& e) { return request.op() == e.op; });
  return make_unary_plan(request, entry->start.pick(request, request.input(0).dtype));
}

const sdk::Kernel unary({"neg",     "abs",  "sign",  "square", "relu", "reciprocal", "exp",
                         "log",     "sqrt", "rsqrt", "sin",    "cos",  "erf",        "tanh",
                         "sigmoid", "silu", "gelu",  "floor",  "ceil", "round"},
                        make_unary);

}  // namespace
}  // namespace tenon::cuda
