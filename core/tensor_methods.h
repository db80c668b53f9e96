// Methods of Tensor that are functions of core/ops with the tensor as their first argument. Each
// block names the header whose functions say what its methods return and throw. tensor.h has the
// rest.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/core/api.h>
#include <tenon/core/dtype.h>
#include <tenon/core/number.h>
#include <tenon/core/shape.h>

namespace tenon {

class Tensor;
struct QR;
struct SVD;
struct SlogDet;
struct Unique;
struct ValuesIndices;

// The base of Tensor, which no program makes by itself.
class TENON_API TensorMethods {
 public:
  // ---- the same as the functions of core/ops/arithmetic.h ----
  Tensor trunc() const;
  Tensor frac() const;
  Tensor nan_to_num(double nan = 0.0, std::optional<double> posinf = std::nullopt,
                    std::optional<double> neginf = std::nullopt) const;
  Tensor floor_divide(const Tensor& b) const;
  Tensor floor_divide(Number b) const;
  Tensor remainder(const Tensor& b) const;
  Tensor remainder(Number b) const;
  Tensor fmod(const Tensor& b) const;
  Tensor fmod(Number b) const;
  Tensor copysign(const Tensor& b) const;
  Tensor copysign(Number b) const;
  Tensor heaviside(const Tensor& values) const;
  Tensor lerp(const Tensor& end, const Tensor& weight) const;
  Tensor lerp(const Tensor& end, double weight) const;
  Tensor addcmul(const Tensor& a, const Tensor& b, Number value = 1) const;
  Tensor addcdiv(const Tensor& a, const Tensor& b, Number value = 1) const;
  Tensor bitwise_and(const Tensor& b) const;
  Tensor bitwise_and(Number b) const;
  Tensor bitwise_or(const Tensor& b) const;
  Tensor bitwise_or(Number b) const;
  Tensor bitwise_xor(const Tensor& b) const;
  Tensor bitwise_xor(Number b) const;
  Tensor bitwise_not() const;
  Tensor bitwise_left_shift(const Tensor& b) const;
  Tensor bitwise_left_shift(Number b) const;
  Tensor bitwise_right_shift(const Tensor& b) const;
  Tensor bitwise_right_shift(Number b) const;
  Tensor isnan() const;
  Tensor isinf() const;
  Tensor isfinite() const;
  Tensor isclose(const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                 bool equal_nan = false) const;
  bool allclose(const Tensor& b, double rtol = 1e-5, double atol = 1e-8,
                bool equal_nan = false) const;
  bool equal(const Tensor& b) const;
  // ---- the same as the functions of core/ops/special.h ----
  Tensor expm1() const;
  Tensor log1p() const;
  Tensor exp2() const;
  Tensor log2() const;
  Tensor log10() const;
  Tensor logit(std::optional<double> eps = std::nullopt) const;
  Tensor logaddexp(const Tensor& b) const;
  Tensor xlogy(const Tensor& y) const;
  Tensor xlogy(Number y) const;
  Tensor tan() const;
  Tensor asin() const;
  Tensor acos() const;
  Tensor atan() const;
  Tensor atan2(const Tensor& x) const;
  Tensor sinh() const;
  Tensor cosh() const;
  Tensor asinh() const;
  Tensor acosh() const;
  Tensor atanh() const;
  Tensor sinc() const;
  Tensor hypot(const Tensor& b) const;
  Tensor erfc() const;
  Tensor erfinv() const;
  Tensor lgamma() const;
  Tensor digamma() const;
  // ---- the same as the functions of core/ops/pointwise.h ----
  Tensor logical_and(const Tensor& b) const;
  Tensor logical_or(const Tensor& b) const;
  Tensor logical_xor(const Tensor& b) const;
  // Return where(condition, *this, other): this tensor's elements where the condition is true.
  Tensor where(const Tensor& condition, const Tensor& other) const;
  Tensor where(const Tensor& condition, Number other) const;
  // ---- the same as the functions of core/ops/activation.h ----
  Tensor prelu(const Tensor& weight) const;
  Tensor hardshrink(double lambd = 0.5) const;
  // ---- the same as the functions of core/ops/reduction.h ----
  Tensor nansum(const Shape& dims = {}, bool keepdim = false,
                std::optional<DType> dtype = std::nullopt) const;
  Tensor count_nonzero(const Shape& dims = {}) const;
  Tensor nanmean(const Shape& dims = {}, bool keepdim = false) const;
  Tensor dist(const Tensor& b, double p = 2) const;
  Tensor renorm(double p, int64_t dim, double maxnorm) const;
  std::pair<Tensor, Tensor> aminmax(std::optional<int64_t> dim = std::nullopt,
                                    bool keepdim = false) const;
  // ---- the same as the functions of core/ops/scan.h ----
  Tensor logcumsumexp(int64_t dim) const;
  ValuesIndices cummax(int64_t dim) const;
  ValuesIndices cummin(int64_t dim) const;
  Tensor diff(int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) const;
  Tensor diff(int64_t n = 1, int64_t dim = -1) const;
  // ---- the same as the functions of core/ops/sort.h ----
  ValuesIndices kthvalue(int64_t k, int64_t dim = -1, bool keepdim = false) const;
  Tensor median() const;
  ValuesIndices median(int64_t dim, bool keepdim = false) const;
  Tensor nanmedian() const;
  ValuesIndices nanmedian(int64_t dim, bool keepdim = false) const;
  ValuesIndices mode(int64_t dim = -1, bool keepdim = false) const;
  Tensor quantile(const Tensor& q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                  std::string_view interpolation = "linear") const;
  Tensor quantile(double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                  std::string_view interpolation = "linear") const;
  Tensor nanquantile(const Tensor& q, std::optional<int64_t> dim = std::nullopt,
                     bool keepdim = false, std::string_view interpolation = "linear") const;
  Tensor nanquantile(double q, std::optional<int64_t> dim = std::nullopt, bool keepdim = false,
                     std::string_view interpolation = "linear") const;
  Unique unique(bool sorted = true, bool return_inverse = false, bool return_counts = false,
                std::optional<int64_t> dim = std::nullopt) const;
  Unique unique_consecutive(bool return_inverse = false, bool return_counts = false,
                            std::optional<int64_t> dim = std::nullopt) const;
  Tensor bincount(const Tensor& weights, int64_t minlength = 0) const;
  Tensor bincount() const;
  Tensor msort() const;
  Tensor bucketize(const Tensor& boundaries, bool out_int32 = false, bool right = false) const;
  Tensor histc(int64_t bins = 100, double min = 0, double max = 0) const;
  Tensor isin(const Tensor& test_elements, bool assume_unique = false, bool invert = false) const;
  Tensor isin(Number test_element, bool assume_unique = false, bool invert = false) const;
  // ---- the same as the functions of core/ops/linalg.h ----
  Tensor vdot(const Tensor& b) const;
  Tensor inner(const Tensor& b) const;
  Tensor addmm(const Tensor& a, const Tensor& b, Number beta = 1, Number alpha = 1) const;
  Tensor addmv(const Tensor& a, const Tensor& b, Number beta = 1, Number alpha = 1) const;
  Tensor addbmm(const Tensor& a, const Tensor& b, Number beta = 1, Number alpha = 1) const;
  Tensor baddbmm(const Tensor& a, const Tensor& b, Number beta = 1, Number alpha = 1) const;
  Tensor kron(const Tensor& b) const;
  Tensor cross(const Tensor& b, std::optional<int64_t> dim = std::nullopt) const;
  Tensor matrix_power(int64_t n) const;
  Tensor cov(int64_t correction, const Tensor& fweights, const Tensor& aweights) const;
  Tensor cov(int64_t correction = 1) const;
  Tensor corrcoef() const;
  // ---- the same as the functions of core/ops/decomposition.h ----
  Tensor cholesky(bool upper = false) const;
  Tensor inverse() const;
  Tensor det() const;
  SlogDet slogdet() const;
  Tensor logdet() const;
  // Returns the reduced factors, or the complete ones if `some` is false, as PyTorch's method does.
  QR qr(bool some = true) const;
  SVD svd(bool full_matrices = true) const;
  // ---- the same as the functions of core/ops/indexing.h ----
  Tensor take_along_dim(const Tensor& indices) const;
  Tensor take_along_dim(const Tensor& indices, int64_t dim) const;
  Tensor put(const Tensor& index, const Tensor& source, bool accumulate = false) const;
  Tensor scatter_reduce(int64_t dim, const Tensor& index, const Tensor& src,
                        std::string_view reduce, bool include_self = true) const;
  Tensor index_copy(int64_t dim, const Tensor& index, const Tensor& source) const;
  Tensor index_fill(int64_t dim, const Tensor& index, Number value) const;
  Tensor index_fill(int64_t dim, const Tensor& index, const Tensor& value) const;
  Tensor index_put(const std::vector<Tensor>& indices, const Tensor& values,
                   bool accumulate = false) const;
  Tensor masked_scatter(const Tensor& mask, const Tensor& source) const;
  Tensor argwhere() const;
  // ---- the same as the functions of core/ops/shape.h ----
  Tensor fliplr() const;
  Tensor flipud() const;
  // ---- the same as the functions of core/ops/random.h ----
  Tensor bernoulli() const;
  Tensor multinomial(int64_t num_samples, bool replacement = false) const;

  // Returns shape(); the name is LibTorch's.
  const Shape& sizes() const;
  // Return to("cpu") and to("cuda"), the tensor on the first device of that type.
  Tensor cpu() const;
  Tensor cuda() const;
  // Return clamp(min) and clamp(std::nullopt, max): only one bound is given.
  Tensor clamp_min(Number min) const;
  Tensor clamp_max(Number max) const;

  // ---- mutators: they write what the function without the underscore returns ----
  // Each returns this tensor. It is recorded as Tensor::add_ is, and throws what that throws beside
  // the errors of the function.
  Tensor& abs_();
  Tensor& exp_();
  Tensor& log_();
  Tensor& neg_();
  Tensor& sqrt_();
  Tensor& relu_();
  Tensor& sigmoid_();
  Tensor& tanh_();
  Tensor& floor_();
  Tensor& ceil_();
  Tensor& round_();
  Tensor& trunc_();
  Tensor& sign_();
  Tensor& square_();
  Tensor& reciprocal_();
  Tensor& rsqrt_();
  Tensor& sin_();
  Tensor& cos_();
  Tensor& erf_();
  Tensor& expm1_();
  Tensor& log1p_();
  Tensor& tril_(int64_t diagonal = 0);
  Tensor& triu_(int64_t diagonal = 0);
  Tensor& logical_not_();
  Tensor& bitwise_not_();
  Tensor& bitwise_and_(const Tensor& b);
  Tensor& bitwise_or_(const Tensor& b);
  Tensor& bitwise_xor_(const Tensor& b);
  Tensor& remainder_(const Tensor& b);
  Tensor& remainder_(Number b);
  Tensor& fmod_(const Tensor& b);
  Tensor& fmod_(Number b);
  Tensor& nan_to_num_(double nan = 0.0, std::optional<double> posinf = std::nullopt,
                      std::optional<double> neginf = std::nullopt);
  Tensor& clamp_min_(Number min);
  Tensor& clamp_max_(Number max);
  Tensor& pow_(Number exponent);
  Tensor& pow_(const Tensor& exponent);
  Tensor& clamp_(std::optional<Number> min, std::optional<Number> max = std::nullopt);
  Tensor& lerp_(const Tensor& end, double weight);
  Tensor& lerp_(const Tensor& end, const Tensor& weight);
  Tensor& addcmul_(const Tensor& a, const Tensor& b, Number value = 1);
  Tensor& addcdiv_(const Tensor& a, const Tensor& b, Number value = 1);
  Tensor& masked_fill_(const Tensor& mask, Number value);
  Tensor& masked_fill_(const Tensor& mask, const Tensor& value);
  Tensor& masked_scatter_(const Tensor& mask, const Tensor& source);
  Tensor& index_add_(int64_t dim, const Tensor& index, const Tensor& source, Number alpha = 1);
  Tensor& index_fill_(int64_t dim, const Tensor& index, Number value);
  Tensor& index_put_(const std::vector<Tensor>& indices, const Tensor& values,
                     bool accumulate = false);
  Tensor& index_put_(const std::vector<Tensor>& indices, Number value, bool accumulate = false);
  Tensor& index_copy_(int64_t dim, const Tensor& index, const Tensor& source);
  Tensor& scatter_(int64_t dim, const Tensor& index, const Tensor& src);
  Tensor& scatter_(int64_t dim, const Tensor& index, Number value);
  Tensor& scatter_add_(int64_t dim, const Tensor& index, const Tensor& src);

  // Writes `value` along the main diagonal of a matrix. Throws a ShapeError for a tensor of another
  // number of dimensions.
  Tensor& fill_diagonal_(Number value);
  // Writes 1 with probability p, otherwise 0. Throws a ValueError unless p is in [0, 1].
  Tensor& bernoulli_(double p = 0.5);
  // Write random whole numbers, equally likely, from [low, high) or [0, high). Throw as randint
  // does.
  Tensor& random_(int64_t low, int64_t high);
  Tensor& random_(int64_t high);

 private:
  const Tensor& self() const;
  Tensor& self();
};

}  // namespace tenon
