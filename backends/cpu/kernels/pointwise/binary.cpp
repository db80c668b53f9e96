// Arithmetic of two tensors, or of a tensor and a scalar.
#include <cmath>
#include <cstring>

#include "kernels/pointwise/pointwise.h"
#include "simd/math.h"

namespace tenon::cpu {
namespace {

// `boolean`: of bools, sums and products are "or" and "and".
template <class Op>
constexpr NamedRows numbers(const char* op, RowKernel boolean = nullptr) {
  auto rows = number_rows([]<class T>(Type<T>) { return binary_row<Op, T>; });
  rows.boolean = boolean;
  return {op, 0.3, 0.6, rows, bf16_row<Op>};
}
constexpr RowKernel kOr = binary_row<formulas::Or, uint8_t>,
                    kAnd = binary_row<formulas::And, uint8_t>;
constexpr NamedRows kArithmetic[] = {
    numbers<formulas::Add>("add", kOr),
    numbers<formulas::Sub>("sub"),
    numbers<formulas::Mul>("mul", kAnd),
    numbers<formulas::Maximum>("maximum", kOr),
    numbers<formulas::Minimum>("minimum", kAnd),
    {"div", 0.3, 0.6, float_rows([]<class T>(Type<T>) { return binary_row<formulas::Div, T>; }),
     bf16_row<formulas::Div>}};

const sdk::Kernel arithmetic(kArithmetic, make_binary<kArithmetic>);

// ---- pow

// A formula of the base, for exponents that have one.
template <class Op>
struct OfBase {
  template <class T>
  T operator()(T a, T) const {
    return Op()(a);
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
// library does the rest, element by element, so that a result never depends on its neighbours.
// Eigen's power of packets is off by up to 45 units where the compiler contracts its products, and
// takes twice the time.
void pow_row_f32(const Row& row) {
  constexpr int64_t kBlock = 256;
  auto *a = static_cast<const float*>(row.in[0]), *b = static_cast<const float*>(row.in[1]);
  int64_t step_a = row.single & 1 ? 0 : 1, step_b = row.single & 2 ? 0 : 1;
  auto is_easy = [](float x, float e) {
    return (x > 0) & (x < INFINITY) & (std::fabs(e) < INFINITY);
  };
  double bases[kBlock], exponents[kBlock];
  for (int64_t begin = 0; begin < row.n; begin += kBlock) {
    int64_t n = std::min(kBlock, row.n - begin);
    auto* y = static_cast<float*>(row.out) + begin;
    int32_t hard = 0;
    for (int64_t i = 0; i < n; ++i) {
      float x = a[(begin + i) * step_a], e = b[(begin + i) * step_b];
      bases[i] = x;
      exponents[i] = e;
      hard |= is_easy(x, e) ? 0 : 1;
    }
    for_lanes<double>(n, [&](int64_t i, auto part) {
      auto log = math::log<double>(load(bases + i, part));
      store<double>(bases + i, math::exp<double>(load(exponents + i, part) * log), part);
    });
    for (int64_t i = 0; i < n && hard; ++i) {
      const float x = a[(begin + i) * step_a], e = static_cast<float>(exponents[i]);
      if (!is_easy(x, e)) bases[i] = std::pow(x, e);
    }
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(bases[i]);
  }
}

template <class T>
RowKernel power_kernel(double exponent) {
  if (exponent == 2) return binary_row<OfBase<formulas::Square>, T>;
  if (exponent == 3) return binary_row<OfBase<formulas::Cube>, T>;
  if (exponent == 0.5) return binary_row<OfBase<formulas::Sqrt>, T>;
  if (exponent == -1) return binary_row<OfBase<formulas::Reciprocal>, T>;
  return nullptr;
}

constexpr sdk::ByDtype<RowKernel> kPow = {.f32 = pow_row_f32,
                                          .f64 = pow_row_f64,
                                          .f16 = pow_row_f32,
                                          .bf16 = pow_row_f32,
                                          .i64 = binary_row<formulas::WholePower, int64_t>,
                                          .i32 = binary_row<formulas::WholePower, int32_t>,
                                          .u8 = binary_row<formulas::WholePower, uint8_t>};

tn_plan* make_pow(tn_device*, const Request& request) {
  const auto r = sdk::BinaryRequest::from(request);
  const RowKernel general = kPow.pick(r.dtype);
  const double ns = !is_float(r.dtype) ? 4 : r.dtype == TN_F64 ? 20 : 3;
  if (!is_float(r.dtype) || !r.scalar_second()) return make_binary_plan(request, general, ns);
  if (sdk::numel(request.output(0)) == 0) return empty_plan();
  Pointwise loop(request, {r.a, nullptr}, 3, ns), quick(request, {r.a, nullptr}, 3, 0.3);
  auto run = [loop, quick, general, dtype = r.dtype](const tn_run& args) {
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
