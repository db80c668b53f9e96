// Methods of Tensor that write what a public function returns (core/tensor_methods.h).
#include <cmath>

#include <tenon/core/dispatch/replica.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pointwise/in_place.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/special.h>

namespace tenon {

namespace {

// Records, if one of the tensors wants a gradient, that the target became compute(target before).
// What the gradient rules read of it is copied, unless they read nothing of it.
template <class Compute>
Tensor& mutate(const char* op, Tensor& target, std::initializer_list<const Tensor*> operands,
               const Compute& compute) {
  return change_in_place({op, true}, target, operands, compute);
}
// The same for one operator, which may write over the target.
template <class Compute>
Tensor& mutate_by_one(const char* op, Tensor& target, std::initializer_list<const Tensor*> operands,
                      const Compute& compute) {
  return change_in_place({op, true, true}, target, operands, compute);
}
// Of addcmul and addcdiv, whose first operator multiplies `a`, which may be the target, by a value
// other than 1.
Tensor& mutate_scaled(const char* op, Tensor& target, const Tensor& a, const Tensor& b,
                      Number value,
                      Tensor (*compute)(const Tensor&, const Tensor&, const Tensor&, Number)) {
  return change_in_place({op, true, value.f == 1}, target, {&a, &b},
                         [&](auto& x) { return compute(x, a, b, value); });
}
// Of clamp, which is made of two operators if a bound is NaN.
Tensor& mutate_clamped(const char* op, Tensor& target, std::optional<Number> min,
                       std::optional<Number> max) {
  const bool by_one = !(min && std::isnan(min->f)) && !(max && std::isnan(max->f));
  return change_in_place({op, true, by_one}, target, {},
                         [&](auto& x) { return tenon::clamp(x, min, max); });
}

}  // namespace

Tensor& TensorMethods::abs_() {
  return mutate_by_one("abs_", self(), {}, [](auto& x) { return tenon::abs(x); });
}
Tensor& TensorMethods::exp_() {
  return mutate_by_one("exp_", self(), {}, [](auto& x) { return tenon::exp(x); });
}
Tensor& TensorMethods::log_() {
  return mutate_by_one("log_", self(), {}, [](auto& x) { return tenon::log(x); });
}
Tensor& TensorMethods::neg_() {
  return mutate_by_one("neg_", self(), {}, [](auto& x) { return tenon::neg(x); });
}
Tensor& TensorMethods::sqrt_() {
  return mutate_by_one("sqrt_", self(), {}, [](auto& x) { return tenon::sqrt(x); });
}
Tensor& TensorMethods::relu_() {
  return mutate_by_one("relu_", self(), {}, [](auto& x) { return tenon::relu(x); });
}
Tensor& TensorMethods::sigmoid_() {
  return mutate_by_one("sigmoid_", self(), {}, [](auto& x) { return tenon::sigmoid(x); });
}
Tensor& TensorMethods::tanh_() {
  return mutate_by_one("tanh_", self(), {}, [](auto& x) { return tenon::tanh(x); });
}
Tensor& TensorMethods::floor_() {
  return mutate_by_one("floor_", self(), {}, [](auto& x) { return tenon::floor(x); });
}
Tensor& TensorMethods::ceil_() {
  return mutate_by_one("ceil_", self(), {}, [](auto& x) { return tenon::ceil(x); });
}
Tensor& TensorMethods::round_() {
  return mutate_by_one("round_", self(), {}, [](auto& x) { return tenon::round(x); });
}
Tensor& TensorMethods::trunc_() {
  return mutate_by_one("trunc_", self(), {}, [](auto& x) { return tenon::trunc(x); });
}
Tensor& TensorMethods::sign_() {
  return mutate_by_one("sign_", self(), {}, [](auto& x) { return tenon::sign(x); });
}
Tensor& TensorMethods::square_() {
  return mutate_by_one("square_", self(), {}, [](auto& x) { return tenon::square(x); });
}
Tensor& TensorMethods::reciprocal_() {
  return mutate_by_one("reciprocal_", self(), {}, [](auto& x) { return tenon::reciprocal(x); });
}
Tensor& TensorMethods::rsqrt_() {
  return mutate_by_one("rsqrt_", self(), {}, [](auto& x) { return tenon::rsqrt(x); });
}
Tensor& TensorMethods::sin_() {
  return mutate_by_one("sin_", self(), {}, [](auto& x) { return tenon::sin(x); });
}
Tensor& TensorMethods::cos_() {
  return mutate_by_one("cos_", self(), {}, [](auto& x) { return tenon::cos(x); });
}
Tensor& TensorMethods::erf_() {
  return mutate_by_one("erf_", self(), {}, [](auto& x) { return tenon::erf(x); });
}
Tensor& TensorMethods::expm1_() {
  return mutate_by_one("expm1_", self(), {}, [](auto& x) { return tenon::expm1(x); });
}
Tensor& TensorMethods::log1p_() {
  return mutate_by_one("log1p_", self(), {}, [](auto& x) { return tenon::log1p(x); });
}
Tensor& TensorMethods::logical_not_() {
  return mutate_by_one("logical_not_", self(), {}, [](auto& x) { return tenon::logical_not(x); });
}
Tensor& TensorMethods::bitwise_not_() {
  return mutate_by_one("bitwise_not_", self(), {}, [](auto& x) { return tenon::bitwise_not(x); });
}
Tensor& TensorMethods::tril_(int64_t diagonal) {
  return mutate("tril_", self(), {}, [&](auto& x) { return tenon::tril(x, diagonal); });
}
Tensor& TensorMethods::triu_(int64_t diagonal) {
  return mutate("triu_", self(), {}, [&](auto& x) { return tenon::triu(x, diagonal); });
}
Tensor& TensorMethods::bitwise_and_(const Tensor& b) {
  return mutate_by_one("bitwise_and_", self(), {&b},
                       [&](auto& x) { return tenon::bitwise_and(x, b); });
}
Tensor& TensorMethods::bitwise_or_(const Tensor& b) {
  return mutate_by_one("bitwise_or_", self(), {&b},
                       [&](auto& x) { return tenon::bitwise_or(x, b); });
}
Tensor& TensorMethods::bitwise_xor_(const Tensor& b) {
  return mutate_by_one("bitwise_xor_", self(), {&b},
                       [&](auto& x) { return tenon::bitwise_xor(x, b); });
}
Tensor& TensorMethods::remainder_(const Tensor& b) {
  return mutate_by_one("remainder_", self(), {&b}, [&](auto& x) { return tenon::remainder(x, b); });
}
Tensor& TensorMethods::remainder_(Number b) {
  return mutate_by_one("remainder_", self(), {}, [&](auto& x) { return tenon::remainder(x, b); });
}
Tensor& TensorMethods::fmod_(const Tensor& b) {
  return mutate_by_one("fmod_", self(), {&b}, [&](auto& x) { return tenon::fmod(x, b); });
}
Tensor& TensorMethods::fmod_(Number b) {
  return mutate_by_one("fmod_", self(), {}, [&](auto& x) { return tenon::fmod(x, b); });
}
Tensor& TensorMethods::nan_to_num_(double nan, std::optional<double> posinf,
                                   std::optional<double> neginf) {
  return mutate_by_one("nan_to_num_", self(), {},
                       [&](auto& x) { return tenon::nan_to_num(x, nan, posinf, neginf); });
}
Tensor& TensorMethods::clamp_(std::optional<Number> min, std::optional<Number> max) {
  return mutate_clamped("clamp_", self(), min, max);
}
Tensor& TensorMethods::clamp_min_(Number min) {
  return mutate_clamped("clamp_min_", self(), min, std::nullopt);
}
Tensor& TensorMethods::clamp_max_(Number max) {
  return mutate_clamped("clamp_max_", self(), std::nullopt, max);
}
Tensor& TensorMethods::pow_(Number exponent) {
  // Of other types it may be made of several operators.
  const bool by_one = self().defined() && is_floating_point(self().dtype());
  return change_in_place({"pow_", true, by_one}, self(), {},
                         [&](auto& x) { return tenon::pow(x, exponent); });
}
Tensor& TensorMethods::pow_(const Tensor& exponent) {
  return mutate_by_one("pow_", self(), {&exponent},
                       [&](auto& x) { return tenon::pow(x, exponent); });
}
Tensor& TensorMethods::lerp_(const Tensor& end, double weight) {
  return mutate_by_one("lerp_", self(), {&end},
                       [&](auto& x) { return tenon::lerp(x, end, weight); });
}
Tensor& TensorMethods::lerp_(const Tensor& end, const Tensor& weight) {
  return mutate_by_one("lerp_", self(), {&end, &weight},
                       [&](auto& x) { return tenon::lerp(x, end, weight); });
}
Tensor& TensorMethods::addcmul_(const Tensor& a, const Tensor& b, Number value) {
  return mutate_scaled("addcmul_", self(), a, b, value, tenon::addcmul);
}
Tensor& TensorMethods::addcdiv_(const Tensor& a, const Tensor& b, Number value) {
  return mutate_scaled("addcdiv_", self(), a, b, value, tenon::addcdiv);
}
Tensor& TensorMethods::masked_fill_(const Tensor& mask, Number value) {
  require_tensor("masked_fill_", self());
  require_held("masked_fill_", self().dtype(), value);
  return masked_fill_(mask, constant(value, self().dtype(), device_read_on(self())));
}
Tensor& TensorMethods::masked_fill_(const Tensor& mask, const Tensor& value) {
  return mutate_by_one("masked_fill_", self(), {&mask, &value},
                       [&](auto& x) { return tenon::masked_fill(x, mask, value); });
}
Tensor& TensorMethods::masked_scatter_(const Tensor& mask, const Tensor& source) {
  return mutate("masked_scatter_", self(), {&mask, &source},
                [&](auto& x) { return tenon::masked_scatter(x, mask, source); });
}
Tensor& TensorMethods::index_add_(int64_t dim, const Tensor& index, const Tensor& source,
                                  Number alpha) {
  return mutate("index_add_", self(), {&index, &source},
                [&](auto& x) { return tenon::index_add(x, dim, index, source, alpha); });
}
Tensor& TensorMethods::index_fill_(int64_t dim, const Tensor& index, Number value) {
  return mutate("index_fill_", self(), {&index},
                [&](auto& x) { return tenon::index_fill(x, dim, index, value); });
}
Tensor& TensorMethods::index_copy_(int64_t dim, const Tensor& index, const Tensor& source) {
  return mutate("index_copy_", self(), {&index, &source},
                [&](auto& x) { return tenon::index_copy(x, dim, index, source); });
}
Tensor& TensorMethods::scatter_(int64_t dim, const Tensor& index, const Tensor& src) {
  return mutate("scatter_", self(), {&index, &src},
                [&](auto& x) { return tenon::scatter(x, dim, index, src); });
}
Tensor& TensorMethods::scatter_(int64_t dim, const Tensor& index, Number value) {
  return mutate("scatter_", self(), {&index},
                [&](auto& x) { return tenon::scatter(x, dim, index, value); });
}
Tensor& TensorMethods::scatter_add_(int64_t dim, const Tensor& index, const Tensor& src) {
  return mutate("scatter_add_", self(), {&index, &src},
                [&](auto& x) { return tenon::scatter_add(x, dim, index, src); });
}

Tensor& TensorMethods::index_put_(const std::vector<Tensor>& indices, const Tensor& values,
                                  bool accumulate) {
  require_tensor("index_put_", self());
  require_tensor("index_put_", values, "values");
  if (!wants_gradient(self()) && !wants_gradient(values)) {
    tenon::index_put_(self(), indices, values, accumulate);
    return self();
  }
  return mutate("index_put_", self(), {&values},
                [&](auto& x) { return tenon::index_put(x, indices, values, accumulate); });
}
Tensor& TensorMethods::index_put_(const std::vector<Tensor>& indices, Number value,
                                  bool accumulate) {
  require_tensor("index_put_", self());
  require_held("index_put_", self().dtype(), value);
  return index_put_(indices, constant(value, self().dtype(), device_read_on(self())), accumulate);
}

// ---- not recorded ----

Tensor& TensorMethods::fill_diagonal_(Number value) {
  if (self().dim() != 2)
    throw ShapeError(fmt::format("fill_diagonal_: needs a matrix, found shape {}", self().shape()));
  require_mutable("fill_diagonal_", self());
  no_grad([&] { self().diagonal().fill_(value); });
  return self();
}
Tensor& TensorMethods::bernoulli_(double p) {
  require_tensor("bernoulli_", self());
  require_mutable("bernoulli_", self());
  if (!(p >= 0 && p <= 1))
    throw ValueError(fmt::format("bernoulli_: p must be in [0, 1], found {}", p));
  return self().copy_(tenon::lt(rand_like(self(), {.dtype = DType::f32}), p));
}
Tensor& TensorMethods::random_(int64_t low, int64_t high) {
  require_tensor("random_", self());
  require_mutable("random_", self());
  return self().copy_(randint_like(self(), low, high));
}
Tensor& TensorMethods::random_(int64_t high) { return random_(0, high); }

}  // namespace tenon
