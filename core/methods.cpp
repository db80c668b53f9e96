// Methods of Tensor that are public functions with the tensor as their first argument. Those that a
// family had first are in its files.
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>

namespace tenon {

// ---- core/ops/shape.h ----

Tensor Tensor::squeeze() const { return tenon::squeeze(*this); }
Tensor Tensor::movedim(const Shape& source, const Shape& destination) const {
  return tenon::movedim(*this, source, destination);
}
Tensor Tensor::swapaxes(int64_t axis0, int64_t axis1) const {
  return tenon::swapaxes(*this, axis0, axis1);
}
Tensor Tensor::unflatten(int64_t dim, const Shape& sizes) const {
  return tenon::unflatten(*this, dim, sizes);
}
Tensor Tensor::broadcast_to(const Shape& shape) const { return tenon::broadcast_to(*this, shape); }
Tensor Tensor::expand_as(const Tensor& other) const { return tenon::expand_as(*this, other); }
Tensor Tensor::view_as(const Tensor& other) const { return tenon::view_as(*this, other); }
Tensor Tensor::reshape_as(const Tensor& other) const { return tenon::reshape_as(*this, other); }
Tensor Tensor::type_as(const Tensor& other) const { return to(other.dtype()); }
Tensor Tensor::diagonal(int64_t offset, int64_t dim1, int64_t dim2) const {
  return tenon::diagonal(*this, offset, dim1, dim2);
}
std::vector<Tensor> Tensor::unbind(int64_t dim) const { return tenon::unbind(*this, dim); }
std::vector<Tensor> Tensor::split(int64_t size, int64_t dim) const {
  return tenon::split(*this, size, dim);
}
std::vector<Tensor> Tensor::split(const Shape& sizes, int64_t dim) const {
  return tenon::split(*this, sizes, dim);
}
std::vector<Tensor> Tensor::chunk(int64_t chunks, int64_t dim) const {
  return tenon::chunk(*this, chunks, dim);
}
std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim) const {
  return tenon::tensor_split(*this, sections, dim);
}
Tensor Tensor::flip(const Shape& dims) const { return tenon::flip(*this, dims); }
Tensor Tensor::roll(const Shape& shifts, const Shape& dims) const {
  return tenon::roll(*this, shifts, dims);
}
Tensor Tensor::rot90(int64_t k, const Shape& dims) const { return tenon::rot90(*this, k, dims); }
Tensor Tensor::tril(int64_t diagonal) const { return tenon::tril(*this, diagonal); }
Tensor Tensor::triu(int64_t diagonal) const { return tenon::triu(*this, diagonal); }
Tensor Tensor::diag(int64_t diagonal) const { return tenon::diag(*this, diagonal); }
Tensor Tensor::diag_embed(int64_t offset, int64_t dim1, int64_t dim2) const {
  return tenon::diag_embed(*this, offset, dim1, dim2);
}
Tensor Tensor::trace() const { return tenon::trace(*this); }
Tensor Tensor::repeat(const Shape& repeats) const { return tenon::repeat(*this, repeats); }
Tensor Tensor::tile(const Shape& repeats) const { return tenon::tile(*this, repeats); }
Tensor Tensor::repeat_interleave(int64_t repeats, std::optional<int64_t> dim) const {
  return tenon::repeat_interleave(*this, repeats, dim);
}
Tensor Tensor::repeat_interleave(const Tensor& repeats, std::optional<int64_t> dim) const {
  return tenon::repeat_interleave(*this, repeats, dim);
}

// ---- core/ops/reduction.h, core/ops/scan.h, core/ops/sort.h ----

Tensor Tensor::prod() const { return tenon::prod(*this); }
Tensor Tensor::prod(const Shape& dims, bool keepdim) const {
  return tenon::prod(*this, dims, keepdim);
}
Tensor Tensor::amax() const { return tenon::amax(*this); }
Tensor Tensor::amax(const Shape& dims, bool keepdim) const {
  return tenon::amax(*this, dims, keepdim);
}
Tensor Tensor::amin() const { return tenon::amin(*this); }
Tensor Tensor::amin(const Shape& dims, bool keepdim) const {
  return tenon::amin(*this, dims, keepdim);
}
Tensor Tensor::any() const { return tenon::any(*this); }
Tensor Tensor::any(const Shape& dims, bool keepdim) const {
  return tenon::any(*this, dims, keepdim);
}
Tensor Tensor::all() const { return tenon::all(*this); }
Tensor Tensor::all(const Shape& dims, bool keepdim) const {
  return tenon::all(*this, dims, keepdim);
}
Tensor Tensor::var(const Shape& dims, int64_t correction, bool keepdim) const {
  return tenon::var(*this, dims, correction, keepdim);
}
Tensor Tensor::std(const Shape& dims, int64_t correction, bool keepdim) const {
  return tenon::std(*this, dims, correction, keepdim);
}
Tensor Tensor::norm(double p) const { return tenon::norm(*this, p); }
Tensor Tensor::norm(double p, const Shape& dims, bool keepdim) const {
  return tenon::norm(*this, p, dims, keepdim);
}
Tensor Tensor::logsumexp(const Shape& dims, bool keepdim) const {
  return tenon::logsumexp(*this, dims, keepdim);
}
Tensor Tensor::argmax() const { return tenon::argmax(*this); }
Tensor Tensor::argmin() const { return tenon::argmin(*this); }
Tensor Tensor::argmin(int64_t dim, bool keepdim) const {
  return tenon::argmin(*this, dim, keepdim);
}

Tensor Tensor::max() const { return tenon::max(*this); }
ValuesIndices Tensor::max(int64_t dim, bool keepdim) const {
  return tenon::max(*this, dim, keepdim);
}
Tensor Tensor::min() const { return tenon::min(*this); }
ValuesIndices Tensor::min(int64_t dim, bool keepdim) const {
  return tenon::min(*this, dim, keepdim);
}
Tensor Tensor::cumsum(int64_t dim, std::optional<DType> dtype) const {
  return tenon::cumsum(*this, dim, dtype);
}
Tensor Tensor::cumprod(int64_t dim, std::optional<DType> dtype) const {
  return tenon::cumprod(*this, dim, dtype);
}
ValuesIndices Tensor::sort(int64_t dim, bool descending, bool stable) const {
  return tenon::sort(*this, dim, descending, stable);
}
Tensor Tensor::argsort(int64_t dim, bool descending, bool stable) const {
  return tenon::argsort(*this, dim, descending, stable);
}
ValuesIndices Tensor::topk(int64_t k, int64_t dim, bool largest, bool sorted) const {
  return tenon::topk(*this, k, dim, largest, sorted);
}

// ---- core/ops/linalg.h, core/ops/indexing.h ----

Tensor Tensor::mm(const Tensor& other) const { return tenon::mm(*this, other); }
Tensor Tensor::bmm(const Tensor& other) const { return tenon::bmm(*this, other); }
Tensor Tensor::mv(const Tensor& vector) const { return tenon::mv(*this, vector); }
Tensor Tensor::dot(const Tensor& other) const { return tenon::dot(*this, other); }
Tensor Tensor::outer(const Tensor& other) const { return tenon::outer(*this, other); }
Tensor Tensor::index_select(int64_t dim, const Tensor& index) const {
  return tenon::index_select(*this, dim, index);
}
Tensor Tensor::gather(int64_t dim, const Tensor& index) const {
  return tenon::gather(*this, dim, index);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, const Tensor& src) const {
  return tenon::scatter(*this, dim, index, src);
}
Tensor Tensor::scatter(int64_t dim, const Tensor& index, Number value) const {
  return tenon::scatter(*this, dim, index, value);
}
Tensor Tensor::scatter_add(int64_t dim, const Tensor& index, const Tensor& src) const {
  return tenon::scatter_add(*this, dim, index, src);
}
Tensor Tensor::index_add(int64_t dim, const Tensor& index, const Tensor& source,
                         Number alpha) const {
  return tenon::index_add(*this, dim, index, source, alpha);
}
Tensor Tensor::masked_fill(const Tensor& mask, Number value) const {
  return tenon::masked_fill(*this, mask, value);
}
Tensor Tensor::masked_select(const Tensor& mask) const { return tenon::masked_select(*this, mask); }
Tensor Tensor::take(const Tensor& index) const { return tenon::take(*this, index); }
Tensor Tensor::nonzero() const { return tenon::nonzero(*this); }

// ---- core/ops/pointwise.h, core/ops/normalization.h ----

Tensor Tensor::add(const Tensor& other, Number alpha) const {
  return tenon::add(*this, alpha.f == 1 ? other : tenon::mul(other, alpha));
}
Tensor Tensor::add(Number other) const { return tenon::add(*this, other); }
Tensor Tensor::sub(const Tensor& other, Number alpha) const {
  return tenon::sub(*this, alpha.f == 1 ? other : tenon::mul(other, alpha));
}
Tensor Tensor::sub(Number other) const { return tenon::sub(*this, other); }
Tensor Tensor::mul(const Tensor& other) const { return tenon::mul(*this, other); }
Tensor Tensor::mul(Number other) const { return tenon::mul(*this, other); }
Tensor Tensor::div(const Tensor& other) const { return tenon::div(*this, other); }
Tensor Tensor::div(Number other) const { return tenon::div(*this, other); }
Tensor Tensor::maximum(const Tensor& other) const { return tenon::maximum(*this, other); }
Tensor Tensor::minimum(const Tensor& other) const { return tenon::minimum(*this, other); }
Tensor Tensor::eq(const Tensor& other) const { return tenon::eq(*this, other); }
Tensor Tensor::eq(Number other) const { return tenon::eq(*this, other); }
Tensor Tensor::ne(const Tensor& other) const { return tenon::ne(*this, other); }
Tensor Tensor::ne(Number other) const { return tenon::ne(*this, other); }
Tensor Tensor::lt(const Tensor& other) const { return tenon::lt(*this, other); }
Tensor Tensor::lt(Number other) const { return tenon::lt(*this, other); }
Tensor Tensor::le(const Tensor& other) const { return tenon::le(*this, other); }
Tensor Tensor::le(Number other) const { return tenon::le(*this, other); }
Tensor Tensor::gt(const Tensor& other) const { return tenon::gt(*this, other); }
Tensor Tensor::gt(Number other) const { return tenon::gt(*this, other); }
Tensor Tensor::ge(const Tensor& other) const { return tenon::ge(*this, other); }
Tensor Tensor::ge(Number other) const { return tenon::ge(*this, other); }
Tensor Tensor::logical_not() const { return tenon::logical_not(*this); }
Tensor Tensor::clamp(std::optional<Number> min, std::optional<Number> max) const {
  return tenon::clamp(*this, min, max);
}
Tensor Tensor::neg() const { return tenon::neg(*this); }
Tensor Tensor::sign() const { return tenon::sign(*this); }
Tensor Tensor::floor() const { return tenon::floor(*this); }
Tensor Tensor::ceil() const { return tenon::ceil(*this); }
Tensor Tensor::round() const { return tenon::round(*this); }
Tensor Tensor::reciprocal() const { return tenon::reciprocal(*this); }
Tensor Tensor::rsqrt() const { return tenon::rsqrt(*this); }
Tensor Tensor::sin() const { return tenon::sin(*this); }
Tensor Tensor::cos() const { return tenon::cos(*this); }
Tensor Tensor::erf() const { return tenon::erf(*this); }
Tensor Tensor::pow(const Tensor& exponent) const { return tenon::pow(*this, exponent); }
Tensor Tensor::log_softmax(int64_t dim) const { return tenon::log_softmax(*this, dim); }

}  // namespace tenon
