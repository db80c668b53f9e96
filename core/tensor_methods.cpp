// Methods of Tensor that are public functions with the tensor as their first argument
// (core/tensor_methods.h).
#include <tenon/core/format.h>
#include <tenon/core/ops/activation.h>
#include <tenon/core/ops/arithmetic.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>
#include <tenon/core/ops/special.h>

namespace tenon {

const Tensor& TensorMethods::self() const { return static_cast<const Tensor&>(*this); }
Tensor& TensorMethods::self() { return static_cast<Tensor&>(*this); }

// ---- core/ops/arithmetic.h ----

Tensor TensorMethods::trunc() const { return tenon::trunc(self()); }
Tensor TensorMethods::frac() const { return tenon::frac(self()); }
Tensor TensorMethods::nan_to_num(double nan, std::optional<double> posinf,
                                 std::optional<double> neginf) const {
  return tenon::nan_to_num(self(), nan, posinf, neginf);
}
Tensor TensorMethods::floor_divide(const Tensor& b) const { return tenon::floor_divide(self(), b); }
Tensor TensorMethods::floor_divide(Number b) const { return tenon::floor_divide(self(), b); }
Tensor TensorMethods::remainder(const Tensor& b) const { return tenon::remainder(self(), b); }
Tensor TensorMethods::remainder(Number b) const { return tenon::remainder(self(), b); }
Tensor TensorMethods::fmod(const Tensor& b) const { return tenon::fmod(self(), b); }
Tensor TensorMethods::fmod(Number b) const { return tenon::fmod(self(), b); }
Tensor TensorMethods::copysign(const Tensor& b) const { return tenon::copysign(self(), b); }
Tensor TensorMethods::copysign(Number b) const { return tenon::copysign(self(), b); }
Tensor TensorMethods::heaviside(const Tensor& values) const {
  return tenon::heaviside(self(), values);
}
Tensor TensorMethods::lerp(const Tensor& end, const Tensor& weight) const {
  return tenon::lerp(self(), end, weight);
}
Tensor TensorMethods::lerp(const Tensor& end, double weight) const {
  return tenon::lerp(self(), end, weight);
}
Tensor TensorMethods::addcmul(const Tensor& a, const Tensor& b, Number value) const {
  return tenon::addcmul(self(), a, b, value);
}
Tensor TensorMethods::addcdiv(const Tensor& a, const Tensor& b, Number value) const {
  return tenon::addcdiv(self(), a, b, value);
}
Tensor TensorMethods::bitwise_and(const Tensor& b) const { return tenon::bitwise_and(self(), b); }
Tensor TensorMethods::bitwise_and(Number b) const { return tenon::bitwise_and(self(), b); }
Tensor TensorMethods::bitwise_or(const Tensor& b) const { return tenon::bitwise_or(self(), b); }
Tensor TensorMethods::bitwise_or(Number b) const { return tenon::bitwise_or(self(), b); }
Tensor TensorMethods::bitwise_xor(const Tensor& b) const { return tenon::bitwise_xor(self(), b); }
Tensor TensorMethods::bitwise_xor(Number b) const { return tenon::bitwise_xor(self(), b); }
Tensor TensorMethods::bitwise_not() const { return tenon::bitwise_not(self()); }
Tensor TensorMethods::bitwise_left_shift(const Tensor& b) const {
  return tenon::bitwise_left_shift(self(), b);
}
Tensor TensorMethods::bitwise_left_shift(Number b) const {
  return tenon::bitwise_left_shift(self(), b);
}
Tensor TensorMethods::bitwise_right_shift(const Tensor& b) const {
  return tenon::bitwise_right_shift(self(), b);
}
Tensor TensorMethods::bitwise_right_shift(Number b) const {
  return tenon::bitwise_right_shift(self(), b);
}
Tensor TensorMethods::isnan() const { return tenon::isnan(self()); }
Tensor TensorMethods::isinf() const { return tenon::isinf(self()); }
Tensor TensorMethods::isfinite() const { return tenon::isfinite(self()); }
Tensor TensorMethods::isclose(const Tensor& b, double rtol, double atol, bool equal_nan) const {
  return tenon::isclose(self(), b, rtol, atol, equal_nan);
}
bool TensorMethods::allclose(const Tensor& b, double rtol, double atol, bool equal_nan) const {
  return tenon::allclose(self(), b, rtol, atol, equal_nan);
}
bool TensorMethods::equal(const Tensor& b) const { return tenon::equal(self(), b); }

// ---- core/ops/special.h ----

Tensor TensorMethods::expm1() const { return tenon::expm1(self()); }
Tensor TensorMethods::log1p() const { return tenon::log1p(self()); }
Tensor TensorMethods::exp2() const { return tenon::exp2(self()); }
Tensor TensorMethods::log2() const { return tenon::log2(self()); }
Tensor TensorMethods::log10() const { return tenon::log10(self()); }
Tensor TensorMethods::logit(std::optional<double> eps) const { return tenon::logit(self(), eps); }
Tensor TensorMethods::logaddexp(const Tensor& b) const { return tenon::logaddexp(self(), b); }
Tensor TensorMethods::xlogy(const Tensor& y) const { return tenon::xlogy(self(), y); }
Tensor TensorMethods::xlogy(Number y) const { return tenon::xlogy(self(), y); }
Tensor TensorMethods::tan() const { return tenon::tan(self()); }
Tensor TensorMethods::asin() const { return tenon::asin(self()); }
Tensor TensorMethods::acos() const { return tenon::acos(self()); }
Tensor TensorMethods::atan() const { return tenon::atan(self()); }
Tensor TensorMethods::atan2(const Tensor& x) const { return tenon::atan2(self(), x); }
Tensor TensorMethods::sinh() const { return tenon::sinh(self()); }
Tensor TensorMethods::cosh() const { return tenon::cosh(self()); }
Tensor TensorMethods::asinh() const { return tenon::asinh(self()); }
Tensor TensorMethods::acosh() const { return tenon::acosh(self()); }
Tensor TensorMethods::atanh() const { return tenon::atanh(self()); }
Tensor TensorMethods::sinc() const { return tenon::sinc(self()); }
Tensor TensorMethods::hypot(const Tensor& b) const { return tenon::hypot(self(), b); }
Tensor TensorMethods::erfc() const { return tenon::erfc(self()); }
Tensor TensorMethods::erfinv() const { return tenon::erfinv(self()); }
Tensor TensorMethods::lgamma() const { return tenon::lgamma(self()); }
Tensor TensorMethods::digamma() const { return tenon::digamma(self()); }

// ---- core/ops/pointwise.h ----

Tensor TensorMethods::logical_and(const Tensor& b) const { return tenon::logical_and(self(), b); }
Tensor TensorMethods::logical_or(const Tensor& b) const { return tenon::logical_or(self(), b); }
Tensor TensorMethods::logical_xor(const Tensor& b) const { return tenon::logical_xor(self(), b); }
Tensor TensorMethods::where(const Tensor& condition, const Tensor& other) const {
  return tenon::where(condition, self(), other);
}
Tensor TensorMethods::where(const Tensor& condition, Number other) const {
  return tenon::where(condition, self(), other);
}

// ---- core/ops/activation.h ----

Tensor TensorMethods::prelu(const Tensor& weight) const { return tenon::prelu(self(), weight); }
Tensor TensorMethods::hardshrink(double lambd) const { return tenon::hardshrink(self(), lambd); }

// ---- core/ops/reduction.h ----

Tensor TensorMethods::nansum(const Shape& dims, bool keepdim, std::optional<DType> dtype) const {
  return tenon::nansum(self(), dims, keepdim, dtype);
}
Tensor TensorMethods::count_nonzero(const Shape& dims) const {
  return tenon::count_nonzero(self(), dims);
}
Tensor TensorMethods::nanmean(const Shape& dims, bool keepdim) const {
  return tenon::nanmean(self(), dims, keepdim);
}
Tensor TensorMethods::dist(const Tensor& b, double p) const { return tenon::dist(self(), b, p); }
Tensor TensorMethods::renorm(double p, int64_t dim, double maxnorm) const {
  return tenon::renorm(self(), p, dim, maxnorm);
}
std::pair<Tensor, Tensor> TensorMethods::aminmax(std::optional<int64_t> dim, bool keepdim) const {
  return tenon::aminmax(self(), dim, keepdim);
}

// ---- core/ops/scan.h ----

Tensor TensorMethods::logcumsumexp(int64_t dim) const { return tenon::logcumsumexp(self(), dim); }
ValuesIndices TensorMethods::cummax(int64_t dim) const { return tenon::cummax(self(), dim); }
ValuesIndices TensorMethods::cummin(int64_t dim) const { return tenon::cummin(self(), dim); }
Tensor TensorMethods::diff(int64_t n, int64_t dim, const Tensor& prepend,
                           const Tensor& append) const {
  return tenon::diff(self(), n, dim, prepend, append);
}
Tensor TensorMethods::diff(int64_t n, int64_t dim) const { return tenon::diff(self(), n, dim); }

// ---- core/ops/sort.h ----

ValuesIndices TensorMethods::kthvalue(int64_t k, int64_t dim, bool keepdim) const {
  return tenon::kthvalue(self(), k, dim, keepdim);
}
Tensor TensorMethods::median() const { return tenon::median(self()); }
ValuesIndices TensorMethods::median(int64_t dim, bool keepdim) const {
  return tenon::median(self(), dim, keepdim);
}
Tensor TensorMethods::nanmedian() const { return tenon::nanmedian(self()); }
ValuesIndices TensorMethods::nanmedian(int64_t dim, bool keepdim) const {
  return tenon::nanmedian(self(), dim, keepdim);
}
ValuesIndices TensorMethods::mode(int64_t dim, bool keepdim) const {
  return tenon::mode(self(), dim, keepdim);
}
Tensor TensorMethods::quantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                               std::string_view interpolation) const {
  return tenon::quantile(self(), q, dim, keepdim, interpolation);
}
Tensor TensorMethods::quantile(double q, std::optional<int64_t> dim, bool keepdim,
                               std::string_view interpolation) const {
  return tenon::quantile(self(), q, dim, keepdim, interpolation);
}
Tensor TensorMethods::nanquantile(const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                                  std::string_view interpolation) const {
  return tenon::nanquantile(self(), q, dim, keepdim, interpolation);
}
Tensor TensorMethods::nanquantile(double q, std::optional<int64_t> dim, bool keepdim,
                                  std::string_view interpolation) const {
  return tenon::nanquantile(self(), q, dim, keepdim, interpolation);
}
Unique TensorMethods::unique(bool sorted, bool return_inverse, bool return_counts,
                             std::optional<int64_t> dim) const {
  return tenon::unique(self(), sorted, return_inverse, return_counts, dim);
}
Unique TensorMethods::unique_consecutive(bool return_inverse, bool return_counts,
                                         std::optional<int64_t> dim) const {
  return tenon::unique_consecutive(self(), return_inverse, return_counts, dim);
}
Tensor TensorMethods::bincount(const Tensor& weights, int64_t minlength) const {
  return tenon::bincount(self(), weights, minlength);
}
Tensor TensorMethods::bincount() const { return tenon::bincount(self()); }
Tensor TensorMethods::msort() const { return tenon::msort(self()); }
Tensor TensorMethods::bucketize(const Tensor& boundaries, bool out_int32, bool right) const {
  return tenon::bucketize(self(), boundaries, out_int32, right);
}
Tensor TensorMethods::histc(int64_t bins, double min, double max) const {
  return tenon::histc(self(), bins, min, max);
}
Tensor TensorMethods::isin(const Tensor& test_elements, bool assume_unique, bool invert) const {
  return tenon::isin(self(), test_elements, assume_unique, invert);
}
Tensor TensorMethods::isin(Number test_element, bool assume_unique, bool invert) const {
  return tenon::isin(self(), test_element, assume_unique, invert);
}

// ---- core/ops/linalg.h ----

Tensor TensorMethods::vdot(const Tensor& b) const { return tenon::vdot(self(), b); }
Tensor TensorMethods::inner(const Tensor& b) const { return tenon::inner(self(), b); }
Tensor TensorMethods::addmm(const Tensor& a, const Tensor& b, Number beta, Number alpha) const {
  return tenon::addmm(self(), a, b, beta, alpha);
}
Tensor TensorMethods::addmv(const Tensor& a, const Tensor& b, Number beta, Number alpha) const {
  return tenon::addmv(self(), a, b, beta, alpha);
}
Tensor TensorMethods::addbmm(const Tensor& a, const Tensor& b, Number beta, Number alpha) const {
  return tenon::addbmm(self(), a, b, beta, alpha);
}
Tensor TensorMethods::baddbmm(const Tensor& a, const Tensor& b, Number beta, Number alpha) const {
  return tenon::baddbmm(self(), a, b, beta, alpha);
}
Tensor TensorMethods::kron(const Tensor& b) const { return tenon::kron(self(), b); }
Tensor TensorMethods::cross(const Tensor& b, std::optional<int64_t> dim) const {
  return tenon::cross(self(), b, dim);
}
Tensor TensorMethods::matrix_power(int64_t n) const { return tenon::matrix_power(self(), n); }
Tensor TensorMethods::cov(int64_t correction, const Tensor& fweights,
                          const Tensor& aweights) const {
  return tenon::cov(self(), correction, fweights, aweights);
}
Tensor TensorMethods::cov(int64_t correction) const { return tenon::cov(self(), correction); }
Tensor TensorMethods::corrcoef() const { return tenon::corrcoef(self()); }

// ---- core/ops/decomposition.h ----

Tensor TensorMethods::cholesky(bool upper) const { return tenon::cholesky(self(), upper); }
Tensor TensorMethods::inverse() const { return tenon::inverse(self()); }
Tensor TensorMethods::det() const { return tenon::det(self()); }
SlogDet TensorMethods::slogdet() const { return tenon::slogdet(self()); }
Tensor TensorMethods::logdet() const { return tenon::logdet(self()); }
QR TensorMethods::qr(bool some) const { return tenon::qr(self(), some ? "reduced" : "complete"); }
SVD TensorMethods::svd(bool full_matrices) const { return tenon::svd(self(), full_matrices); }

// ---- core/ops/indexing.h ----

Tensor TensorMethods::take_along_dim(const Tensor& indices) const {
  return tenon::take_along_dim(self(), indices);
}
Tensor TensorMethods::take_along_dim(const Tensor& indices, int64_t dim) const {
  return tenon::take_along_dim(self(), indices, dim);
}
Tensor TensorMethods::put(const Tensor& index, const Tensor& source, bool accumulate) const {
  return tenon::put(self(), index, source, accumulate);
}
Tensor TensorMethods::scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                                     std::string_view reduce, bool include_self) const {
  return tenon::scatter_reduce(self(), dim, index, src, reduce, include_self);
}
Tensor TensorMethods::index_copy(int64_t dim, const Tensor& index, const Tensor& source) const {
  return tenon::index_copy(self(), dim, index, source);
}
Tensor TensorMethods::index_fill(int64_t dim, const Tensor& index, Number value) const {
  return tenon::index_fill(self(), dim, index, value);
}
Tensor TensorMethods::index_fill(int64_t dim, const Tensor& index, const Tensor& value) const {
  return tenon::index_fill(self(), dim, index, value);
}
Tensor TensorMethods::index_put(const std::vector<Tensor>& indices, const Tensor& values,
                                bool accumulate) const {
  return tenon::index_put(self(), indices, values, accumulate);
}
Tensor TensorMethods::masked_scatter(const Tensor& mask, const Tensor& source) const {
  return tenon::masked_scatter(self(), mask, source);
}
Tensor TensorMethods::argwhere() const { return tenon::argwhere(self()); }

// ---- core/ops/shape.h ----

Tensor TensorMethods::fliplr() const { return tenon::fliplr(self()); }
Tensor TensorMethods::flipud() const { return tenon::flipud(self()); }

// ---- core/ops/random.h ----

Tensor TensorMethods::bernoulli() const { return tenon::bernoulli(self()); }
Tensor TensorMethods::multinomial(int64_t num_samples, bool replacement) const {
  return tenon::multinomial(self(), num_samples, replacement);
}

// ---- beside functions ----

const Shape& TensorMethods::sizes() const { return self().shape(); }
Tensor TensorMethods::cpu() const { return self().to(Device("cpu")); }
Tensor TensorMethods::cuda() const { return self().to(Device("cuda")); }
Tensor TensorMethods::clamp_min(Number min) const { return tenon::clamp(self(), min); }
Tensor TensorMethods::clamp_max(Number max) const {
  return tenon::clamp(self(), std::nullopt, max);
}

}  // namespace tenon
