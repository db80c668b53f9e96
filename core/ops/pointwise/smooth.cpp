// Activations that are one operator with a backward operator (core/ops/activation.h). Of each of
// them three formulas are given: its value, its slope and its curvature. The backward operator is
// g slope(x), and its own gradient g and gg curvature(x).
#include <limits>
#include <numbers>

#include <tenon/core/base/number_text.h>
#include <tenon/core/dispatch/widening.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/unary.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/special.h>

namespace tenon {

namespace {

using Scalars = std::span<const Scalar>;

template <class A>
Tensor run_backward(const Tensor& g, const Tensor& x, Scalars scalars) {
  const Tensor* inputs[] = {&g, &x};
  return run_all({A::backward(), inputs, no_attrs, scalars})[0];
}

template <class A>
void smooth_gradient(const GradContext& c, Grads g) {
  g[0] = run_backward<A>(c.grad(), c.input(0), c.scalars);
}

template <class A>
void decompose_smooth(const Call& call, Outputs& out) {
  out.push_back(A::value(call.in(0), call.scalars));
}

template <class A>
OpSpec forward_spec(const char* name, uint8_t scalars = 0) {
  return {
      .name = name,
      .infer = infer_floating,
      .gradient = smooth_gradient<A>,
      .saves_inputs = 1,
      .pointwise = true,
      .promotion = Promotion::floating,
      .decompose = decompose_smooth<A>,
      .scalars = scalars,
  };
}

template <class A>
void smooth_backward_gradient(const GradContext& c, Grads g) {
  const Tensor& x = c.input(1);
  if (c.needs(0)) g[0] = run_backward<A>(c.grad(), x, c.scalars);
  if (c.needs(1)) g[1] = c.grad() * c.input(0) * A::curvature(x, c.scalars);
}

template <class A>
void decompose_smooth_backward(const Call& call, Outputs& out) {
  out.push_back(call.in(0) * A::slope(call.in(1), call.scalars));
}

template <class A>
OpSpec backward_spec(const char* name, uint8_t scalars = 0) {
  return {
      .name = name,
      .infer = infer_slope,
      .gradient = smooth_backward_gradient<A>,
      .saves_inputs = 3,
      .pointwise = true,
      .decompose = decompose_smooth_backward<A>,
      .scalars = scalars,
  };
}

// ---- elu: scalars alpha, scale, input_scale

struct Elu {
  static const Op& backward();
  static double negative(Scalars s) { return s[0].value.f * s[1].value.f; }
  static Tensor value(const Tensor& x, Scalars s) {
    return where(le(x, 0.0), expm1(x * s[2].value.f) * negative(s), x * s[1].value.f);
  }
  // Above 0, where exp may overflow, it is not looked at.
  static Tensor below(const Tensor& x, Scalars s, double factor) {
    const Tensor low = where(gt(x, 0.0), 0.0, x);
    return exp(low * s[2].value.f) * (negative(s) * factor);
  }
  static Tensor slope(const Tensor& x, Scalars s) {
    return where(gt(x, 0.0), s[1].value.f, below(x, s, s[2].value.f));
  }
  static Tensor curvature(const Tensor& x, Scalars s) {
    return where(gt(x, 0.0), 0.0, below(x, s, s[2].value.f * s[2].value.f));
  }
};
// | `elu` | x -> y | ; alpha, scale, input_scale | floats; scale x above 0, alpha scale
//   (exp(input_scale x) - 1) elsewhere: `selu` and `celu` too |
const Op elu_op{forward_spec<Elu>("elu", 3)};
// | `elu_backward leaky_relu_backward softplus_backward logsigmoid_backward gelu_tanh_backward
//   mish_backward hardsigmoid_backward hardswish_backward` | g, x -> gx | the same scalars | g
//   times the slope at x. At the corners: `leaky_relu` that below, `hardsigmoid` 0, `hardswish` 0
//   at -3 and 1 at 3 |
const Op elu_backward_op{backward_spec<Elu>("elu_backward", 3)};
const Op& Elu::backward() { return elu_backward_op; }

Tensor run_elu(const char* name, const Tensor& x, double alpha, double scale, double input_scale) {
  require_tensor(name, x);
  return run(elu_op, {&x}, {}, {Scalar(alpha), Scalar(scale), Scalar(input_scale)});
}

// ---- leaky_relu: scalar negative_slope

struct LeakyRelu {
  static const Op& backward();
  static Tensor value(const Tensor& x, Scalars s) { return where(le(x, 0.0), x * s[0].value.f, x); }
  static Tensor slope(const Tensor& x, Scalars s) {
    const double low = s[0].value.f;  // of 0 and NaN too
    return where(le(neg(x), 0.0), where(eq(x, 0.0), low, ones_like(x)), low);
  }
  static Tensor curvature(const Tensor& x, Scalars) { return zeros_like(x); }
};
// | `leaky_relu` | x -> y | ; negative_slope | floats |
const Op leaky_relu_op{forward_spec<LeakyRelu>("leaky_relu", 1)};
const Op leaky_relu_backward_op{backward_spec<LeakyRelu>("leaky_relu_backward", 1)};
const Op& LeakyRelu::backward() { return leaky_relu_backward_op; }

// ---- softplus: scalars beta, threshold

struct Softplus {
  static const Op& backward();
  static Tensor value(const Tensor& x, Scalars s) {
    const double beta = s[0].value.f;
    const Tensor z = x * beta;
    const Tensor soft = (maximum(z, 0.0) + log1p(exp(neg(abs(z))))) / beta;
    return where(le(z, s[1].value.f), soft, x);
  }
  static Tensor slope(const Tensor& x, Scalars s) {
    const Tensor z = x * s[0].value.f;
    return where(le(z, s[1].value.f), sigmoid(z), where(eq(z, z), 1.0, z));
  }
  static Tensor curvature(const Tensor& x, Scalars s) {
    const Tensor z = x * s[0].value.f, y = sigmoid(z);
    return where(le(z, s[1].value.f), y * (1.0 - y) * s[0].value.f, 0.0);
  }
};
// | `softplus` | x -> y | ; beta, threshold | floats; log(1 + exp(beta x)) / beta, and x where beta
//   x is above the threshold; exact for every x |
const Op softplus_op{wide_under_autocast(forward_spec<Softplus>("softplus", 2))};
const Op softplus_backward_op{backward_spec<Softplus>("softplus_backward", 2)};
const Op& Softplus::backward() { return softplus_backward_op; }

// ---- logsigmoid

struct LogSigmoid {
  static const Op& backward();
  static Tensor value(const Tensor& x, Scalars) {
    return neg(maximum(neg(x), 0.0) + log1p(exp(neg(abs(x)))));
  }
  static Tensor slope(const Tensor& x, Scalars) { return sigmoid(neg(x)); }
  static Tensor curvature(const Tensor& x, Scalars) {
    const Tensor y = sigmoid(x);
    return y * (y - 1.0);
  }
};
// | `logsigmoid mish hardsigmoid hardswish` | x -> y | | floats |
const Op logsigmoid_op{forward_spec<LogSigmoid>("logsigmoid")};
const Op logsigmoid_backward_op{backward_spec<LogSigmoid>("logsigmoid_backward")};
const Op& LogSigmoid::backward() { return logsigmoid_backward_op; }

// ---- mish: x w with w = tanh(softplus(x)), w' = s (1 - w^2) and s = sigmoid(x). With e = exp(x)
// and n = e (e + 2), w = n / (n + 2) and 1 - w^2 = 4 (n + 1) / (n + 2)^2. Above 20, w is 1.

struct Mish {
  static const Op& backward();
  static Tensor flat(const Tensor& x) { return le(neg(x), -20.0); }
  struct Parts {
    Tensor w, bent, s;  // bent = w'
    explicit Parts(const Tensor& x) {
      const Tensor e = exp(where(flat(x), 0.0, x)), d = e * (e + 2.0) + 2.0;
      w = e * (e + 2.0) / d;
      s = sigmoid(x);
      bent = e / d * ((e + 1.0) / d) * 4.0;
    }
  };
  static Tensor value(const Tensor& x, Scalars) { return where(flat(x), x, x * Parts(x).w); }
  static Tensor slope(const Tensor& x, Scalars) {
    const Parts p(x);
    return where(flat(x), 1.0, p.w + x * p.bent);
  }
  // 2 w' + x w'', w'' = w' (1 - s - 2 w s)
  static Tensor curvature(const Tensor& x, Scalars) {
    const Parts p(x);
    return where(flat(x), 0.0, p.bent * (x * (1.0 - p.s - p.w * p.s * 2.0) + 2.0));
  }
};
const Op mish_op{forward_spec<Mish>("mish")};
const Op mish_backward_op{backward_spec<Mish>("mish_backward")};
const Op& Mish::backward() { return mish_backward_op; }

// ---- gelu_tanh: x s(v) with v = a (x + b x^3), s(v) = sigmoid(v) = (1 + tanh(v / 2)) / 2, as Phi
// in gelu. Far from 0 the slope is 0 or 1, and 0 times infinity would be NaN.

struct GeluTanh {
  static const Op& backward();
  static constexpr double kA = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, kB = 0.044715;
  static Tensor near(const Tensor& x) { return neg(maximum(neg(maximum(x, -100.0)), -100.0)); }
  struct Parts {
    Tensor s, ds, dv;  // s(v), s'(v) and v'
    explicit Parts(const Tensor& x) {
      const Tensor squared = square(x);
      s = sigmoid(x * (squared * (kA * kB) + kA));
      ds = s * (1.0 - s);
      dv = squared * (3 * kA * kB) + kA;
    }
  };
  static Tensor value(const Tensor& x, Scalars s) {
    if (const Widening wide{&x}) return wide.rounded(value(wide(x), s));
    return x * Parts(near(x)).s;
  }
  static Tensor slope(const Tensor& x, Scalars s) {
    if (const Widening wide{&x}) return wide.rounded(slope(wide(x), s));
    const Tensor close = near(x);
    const Parts p(close);
    return p.s + close * p.ds * p.dv;
  }
  // 2 s' v' + x (s'' v'^2 + s' v''), s'' = s' (1 - 2 s)
  static Tensor curvature(const Tensor& x, Scalars s) {
    if (const Widening wide{&x}) return wide.rounded(curvature(wide(x), s));
    const Tensor close = near(x);
    const Parts p(close);
    const Tensor bend = square(p.dv) * (1.0 - p.s * 2.0) + close * (6 * kA * kB);
    return p.ds * (p.dv * 2.0 + close * bend);
  }
};
// | `gelu_tanh` | x -> y | | floats; x s(v) with v = 2 sqrt(2 / pi) (x + 0.044715 x³) and s =
//   `sigmoid`, which is `gelu` by tanh, but keeps its digits where tanh is near to -1 |
const Op gelu_tanh_op{forward_spec<GeluTanh>("gelu_tanh")};
const Op gelu_tanh_backward_op{backward_spec<GeluTanh>("gelu_tanh_backward")};
const Op& GeluTanh::backward() { return gelu_tanh_backward_op; }

// ---- hardsigmoid and hardswish

// Whether x lies strictly between -3 and 3; `le` alone, which every backend has.
Tensor inside(const Tensor& x) { return eq(le(x, -3.0), le(neg(x), -3.0)); }

struct HardSigmoid {
  static const Op& backward();
  static Tensor value(const Tensor& x, Scalars) {
    return neg(maximum(neg(maximum(x + 3.0, 0.0)), -6.0)) / 6.0;
  }
  static Tensor slope(const Tensor& x, Scalars) {
    // PyTorch's constant, which is an f32 for every dtype.
    return where(inside(x), ones_like(x) * static_cast<double>(1.0f / 6.0f), 0.0);
  }
  static Tensor curvature(const Tensor& x, Scalars) { return zeros_like(x); }
};
const Op hardsigmoid_op{forward_spec<HardSigmoid>("hardsigmoid")};
const Op hardsigmoid_backward_op{backward_spec<HardSigmoid>("hardsigmoid_backward")};
const Op& HardSigmoid::backward() { return hardsigmoid_backward_op; }

struct HardSwish {
  static const Op& backward();
  static Tensor value(const Tensor& x, Scalars s) { return x * HardSigmoid::value(x, s); }
  static Tensor slope(const Tensor& x, Scalars) {
    const Tensor flat = where(le(x, -3.0), 0.0, ones_like(x));
    return where(inside(x), x / 3.0 + 0.5, flat);
  }
  static Tensor curvature(const Tensor& x, Scalars) {
    return where(inside(x), ones_like(x) / 3.0, 0.0);
  }
};
const Op hardswish_op{forward_spec<HardSwish>("hardswish")};
const Op hardswish_backward_op{backward_spec<HardSwish>("hardswish_backward")};
const Op& HardSwish::backward() { return hardswish_backward_op; }

Tensor plain(const Op& op, const Tensor& x) {
  require_tensor(op.name, x);
  return run(op, {&x});
}

}  // namespace

Tensor elu(const Tensor& x, double alpha) { return run_elu("elu", x, alpha, 1, 1); }

Tensor selu(const Tensor& x) {
  constexpr double alpha = 1.6732632423543772848170429916717;
  constexpr double scale = 1.0507009873554804934193349852946;
  return run_elu("selu", x, alpha, scale, 1);
}

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw ValueError("celu: alpha must not be 0");
  return run_elu("celu", x, alpha, 1, 1 / alpha);
}

Tensor leaky_relu(const Tensor& x, double negative_slope) {
  require_tensor("leaky_relu", x);
  return run(leaky_relu_op, {&x}, {}, {Scalar(negative_slope)});
}

Tensor softplus(const Tensor& x, double beta, double threshold) {
  require_tensor("softplus", x);
  return run(softplus_op, {&x}, {}, {Scalar(beta), Scalar(threshold)});
}

Tensor gelu_by_tanh(const Tensor& x) {
  require_tensor("gelu", x);
  return run(gelu_tanh_op, {&x});
}
Tensor logsigmoid(const Tensor& x) { return plain(logsigmoid_op, x); }
Tensor mish(const Tensor& x) { return plain(mish_op, x); }
Tensor hardsigmoid(const Tensor& x) { return plain(hardsigmoid_op, x); }
Tensor hardswish(const Tensor& x) { return plain(hardswish_op, x); }

}  // namespace tenon
