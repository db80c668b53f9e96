// Arithmetic of two tensors, or of a tensor and a scalar.
#include <cmath>

#include <tenon/plugins/sdk/power.h>

#include "kernels/pointwise/pointwise.h"

namespace tenon::cuda {
namespace {

// Integers wrap around: computed unsigned.
template <class T>
__device__ auto wide(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(x);
  } else {
    return x;
  }
}
struct Add {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(wide(a) + wide(b));
  }
};
struct Sub {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(wide(a) - wide(b));
  }
};
struct Mul {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return static_cast<T>(wide(a) * wide(b));
  }
};
struct Div {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a / b;
  }
};
struct Maximum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    T m = a > b ? a : b;  // b where either is NaN
    if constexpr (std::is_floating_point_v<T>) m = a != a ? a : m;
    return m;
  }
};
struct Minimum {
  template <class T>
  __device__ T operator()(T a, T b) const {
    T m = a < b ? a : b;
    if constexpr (std::is_floating_point_v<T>) m = a != a ? a : m;
    return m;
  }
};
// Bools: sums and products are "or" and "and".
struct Or {
  __device__ uint8_t operator()(uint8_t a, uint8_t b) const { return a | b; }
};
struct And {
  __device__ uint8_t operator()(uint8_t a, uint8_t b) const { return a & b; }
};

struct Entry {
  const char* op;
  ByDtype<BinaryStart> start;
};
template <class Op>
constexpr Entry floats(const char* op) {
  return {op,
          {.f32 = start_binary<Op, float, float>,
           .f64 = start_binary<Op, double, double>,
           .f16 = start_binary<Op, Half, Half>,
           .bf16 = start_binary<Op, BFloat, BFloat>,
           .i64 = nullptr,
           .i32 = nullptr,
           .u8 = nullptr,
           .boolean = nullptr}};
}
template <class Op>
constexpr Entry numbers(const char* op, BinaryStart boolean) {
  Entry e = floats<Op>(op);
  e.start.i64 = start_binary<Op, int64_t, int64_t>;
  e.start.i32 = start_binary<Op, int32_t, int32_t>;
  e.start.u8 = start_binary<Op, uint8_t, uint8_t>;
  e.start.boolean = boolean;
  return e;
}
constexpr BinaryStart kOr = start_binary<Or, uint8_t, uint8_t>,
                      kAnd = start_binary<And, uint8_t, uint8_t>;
constexpr Entry kEntries[] = {numbers<Add>("add", kOr),          numbers<Sub>("sub", nullptr),
                              numbers<Mul>("mul", kAnd),         numbers<Maximum>("maximum", kOr),
                              numbers<Minimum>("minimum", kAnd), floats<Div>("div")};

tn_plan* make_arithmetic(tn_device*, const Request& request) {
  auto* entry = std::find_if(std::begin(kEntries), std::end(kEntries),
                             [&](auto& e) { return request.op() == e.op; });
  return make_binary_plan(request, entry->start.pick(request, request.input(0).dtype));
}
const sdk::Kernel arithmetic({"add", "sub", "mul", "maximum", "minimum", "div"}, make_arithmetic);

// ---- pow

enum class Exponent : int32_t { any, two, three, half, minus_one };

struct Pow {
  Exponent exponent = Exponent::any;  // of the whole launch
  template <class T>
  __device__ T operator()(T a, T b) const {
    switch (exponent) {
      case Exponent::two:
        return a * a;
      case Exponent::three:
        return a * a * a;
      case Exponent::half:
        return std::sqrt(a);
      case Exponent::minus_one:
        return T(1) / a;
      default:
        return std::pow(a, b);
    }
  }
};

Exponent kind_of(double exponent) {
  return exponent == 2     ? Exponent::two
         : exponent == 3   ? Exponent::three
         : exponent == 0.5 ? Exponent::half
         : exponent == -1  ? Exponent::minus_one
                           : Exponent::any;
}

template <class T>
void start_pow(const Loop<3>& loop, const tn_run& run, Second second, tn_dtype dtype) {
  Pow op{second == Second::scalar ? kind_of(run.scalars[0].f) : Exponent::any};
  start_binary_as<Pow, T, T>(op, loop, run, second, dtype);
}
struct WholePower {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return sdk::whole_power(a, b);
  }
};

constexpr ByDtype<BinaryStart> kPow = {.f32 = start_pow<float>,
                                       .f64 = start_pow<double>,
                                       .f16 = start_pow<Half>,
                                       .bf16 = start_pow<BFloat>,
                                       .i64 = start_binary<WholePower, int64_t, int64_t>,
                                       .i32 = start_binary<WholePower, int32_t, int32_t>,
                                       .u8 = start_binary<WholePower, uint8_t, uint8_t>,
                                       .boolean = nullptr};

const sdk::Kernel power({"pow"}, [](tn_device*, const Request& request) {
  return make_binary_plan(request, kPow.pick(request, request.input(0).dtype));
});

}  // namespace
}  // namespace tenon::cuda
