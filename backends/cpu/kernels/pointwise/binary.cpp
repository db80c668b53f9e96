// Arithmetic of two tensors, or of a tensor and a scalar.
#include <cmath>
#include <cstring>

#include <tenon/plugins/sdk/power.h>

#include "kernels/pointwise/pointwise.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

// Integers wrap around: computed unsigned.
template <class T>
auto wide(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(x);
  } else {
    return x;
  }
}
struct Add {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(wide(a) + wide(b));
  }
};
struct Sub {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(wide(a) - wide(b));
  }
};
struct Mul {
  template <class T>
  static T of(T a, T b) {
    return static_cast<T>(wide(a) * wide(b));
  }
};
struct Div {
  template <class T>
  static T of(T a, T b) {
    return a / b;
  }
};
struct Maximum {
  template <class T>
  static T of(T a, T b) {
    T m = a > b ? a : b;  // b where either is NaN
    if constexpr (std::is_floating_point_v<T>) m = a != a ? a : m;
    return m;
  }
};
struct Minimum {
  template <class T>
  static T of(T a, T b) {
    T m = a < b ? a : b;
    if constexpr (std::is_floating_point_v<T>) m = a != a ? a : m;
    return m;
  }
};
// Bools: sums and products are "or" and "and".
struct Or {
  static uint8_t of(uint8_t a, uint8_t b) { return a | b; }
};
struct And {
  static uint8_t of(uint8_t a, uint8_t b) { return a & b; }
};

struct Entry {
  const char* op;
  RowKernel f32, f64, i64, i32, u8, boolean;
};
template <class Op>
constexpr Entry numbers(const char* op, RowKernel boolean) {
  return {op,
          binary_row<Op, float>,
          binary_row<Op, double>,
          binary_row<Op, int64_t>,
          binary_row<Op, int32_t>,
          binary_row<Op, uint8_t>,
          boolean};
}
constexpr Entry kEntries[] = {
    numbers<Add>("add", binary_row<Or, uint8_t>),
    numbers<Sub>("sub", nullptr),
    numbers<Mul>("mul", binary_row<And, uint8_t>),
    numbers<Maximum>("maximum", binary_row<Or, uint8_t>),
    numbers<Minimum>("minimum", binary_row<And, uint8_t>),
    {"div", binary_row<Div, float>, binary_row<Div, double>, nullptr, nullptr, nullptr, nullptr},
};

tn_plan* make_arithmetic(tn_device*, const Request& request) {
  auto dtype = request.input(0).dtype;
  auto& e = *std::find_if(std::begin(kEntries), std::end(kEntries),
                          [&](auto& e) { return request.op() == e.op; });
  const RowKernel by_dtype[] = {e.f32, e.f64, e.f32, e.f32, e.i64, e.i32, e.u8, e.boolean};
  auto kernel = by_dtype[dtype];
  if (!kernel) refuse_dtype(request, dtype);
  return make_binary_plan(request, kernel, sdk::dtype_size(dtype) == 8 ? 0.6 : 0.3);
}

const sdk::Kernel arithmetic({"add", "sub", "mul", "maximum", "minimum", "div"}, make_arithmetic);

// ---- pow

struct Square {
  template <class T>
  static T of(T a, T) {
    return a * a;
  }
};
struct Cube {
  template <class T>
  static T of(T a, T) {
    return a * a * a;
  }
};
struct Root {
  template <class T>
  static T of(T a, T) {
    return std::sqrt(a);
  }
};
struct Inverse {
  template <class T>
  static T of(T a, T) {
    return T(1) / a;
  }
};

void pow_row_f64(const Row& row) {
  auto* y = static_cast<double*>(row.out);
  auto* a = static_cast<const double*>(row.in[0]);
  auto* b = static_cast<const double*>(row.in[1]);
  int64_t step_a = row.single & 1 ? 0 : 1, step_b = row.single & 2 ? 0 : 1;
  for (int64_t i = 0; i < row.n; ++i) y[i] = std::pow(a[i * step_a], b[i * step_b]);
}

// exp(b log a) in f64 is exact enough for f32 where a is positive and both are finite; the C
// library does the rest. Eigen's power of packets is off by up to 45 units where the compiler
// contracts its products, and takes twice the time.
void pow_row_f32(const Row& row) {
  constexpr int64_t kBlock = 256;
  auto *a = static_cast<const float*>(row.in[0]), *b = static_cast<const float*>(row.in[1]);
  int64_t step_a = row.single & 1 ? 0 : 1, step_b = row.single & 2 ? 0 : 1;
  double bases[kBlock], exponents[kBlock];
  for (int64_t begin = 0; begin < row.n; begin += kBlock) {
    int64_t n = std::min(kBlock, row.n - begin);
    auto* y = static_cast<float*>(row.out) + begin;
    int32_t hard = 0;
    for (int64_t i = 0; i < n; ++i) {
      float x = a[(begin + i) * step_a], e = b[(begin + i) * step_b];
      bases[i] = x;
      exponents[i] = e;
      hard |= (x > 0) & (x < INFINITY) & (std::fabs(e) < INFINITY) ? 0 : 1;
    }
    if (!hard) {
      for_lanes<double>(n, [&](int64_t i, auto part) {
        auto log = math::log<double>(load(bases + i, part));
        store<double>(bases + i, math::exp<double>(load(exponents + i, part) * log), part);
      });
      for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(bases[i]);
    } else {
      for (int64_t i = 0; i < n; ++i)
        y[i] = std::pow(static_cast<float>(bases[i]), static_cast<float>(exponents[i]));
    }
  }
}

template <class T>
RowKernel power_kernel(double exponent) {
  if (exponent == 2) return binary_row<Square, T>;
  if (exponent == 3) return binary_row<Cube, T>;
  if (exponent == 0.5) return binary_row<Root, T>;
  if (exponent == -1) return binary_row<Inverse, T>;
  return nullptr;
}

struct WholePower {
  template <class T>
  static T of(T a, T b) {
    return sdk::whole_power(a, b);
  }
};

RowKernel whole_power(tn_dtype dtype) {
  return dtype == TN_I64   ? binary_row<WholePower, int64_t>
         : dtype == TN_I32 ? binary_row<WholePower, int32_t>
         : dtype == TN_U8  ? binary_row<WholePower, uint8_t>
                           : nullptr;
}

tn_plan* make_pow(tn_device*, const Request& request) {
  auto& a = request.input(0);
  auto dtype = compute_dtype(a.dtype);
  if (auto kernel = whole_power(dtype)) return make_binary_plan(request, kernel, 4);
  if (dtype != TN_F32 && dtype != TN_F64) refuse_dtype(request, a.dtype);
  RowKernel general = dtype == TN_F64 ? pow_row_f64 : pow_row_f32;
  double ns = dtype == TN_F64 ? 20 : 3;
  bool exponent_is_scalar = !request.has_input(1) && !request.get_bool("reverse", false);
  if (!exponent_is_scalar) return make_binary_plan(request, general, ns);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {&a, nullptr}, 3, ns), quick(request, {&a, nullptr}, 3, 0.3);
  auto run = [loop, quick, general, dtype](const tn_run& args) {
    double exponent = args.scalars[0].f;
    Value value = value_of(dtype, args.scalars[0]);
    const void* in[] = {args.inputs[0], &value};
    if (auto kernel =
            dtype == TN_F64 ? power_kernel<double>(exponent) : power_kernel<float>(exponent))
      return quick.run(kernel, args.outputs[0], in);
    loop.run(general, args.outputs[0], in);
  };
  return sdk::make_plan(run, {0, loop.cost_ns()});
}

const sdk::Kernel power({"pow"}, make_pow);

}  // namespace
}  // namespace tenon::cpu
