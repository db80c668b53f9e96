// Gives Tensors as Eigen's matrices, and Eigen's matrices as tensors. This header is optional and
// needs Eigen 3.4 (find_package(Eigen3 3.4), link Eigen3::Eigen); nothing that tenon/tenon.h
// includes does.
//
//   tenon::Tensor w = …;                                  // f32, (3, 4)
//   Eigen::JacobiSVD<Eigen::MatrixXf> svd(tenon::as_matrix<float>(w));
//   tenon::Tensor s = tenon::to_tensor(svd.singularValues());  // f32, (3)
#pragma once

#include <string>
#include <type_traits>

#include <Eigen/Core>

#include <tenon/core/error.h>
#include <tenon/core/tensor.h>

namespace tenon {

// Eigen::half holds the bits of f16.
template <>
struct DTypeOf<Eigen::half> {
  static constexpr DType value = DType::f16;
};
// Eigen::bfloat16 holds the bits of bf16.
template <>
struct DTypeOf<Eigen::bfloat16> {
  static constexpr DType value = DType::bf16;
};

// A view of a tensor's values where they are in memory, as an Eigen::Map. The strides are the
// tensor's own, so views such as x.t() or x.select(1, 0) are read in place as well; values cannot
// be written through a map. It keeps the tensor, so that the memory lives as long as the map; an
// Eigen expression of it does not.
template <class Plain, class Strides>
class TensorMap : public Eigen::Map<const Plain, Eigen::Unaligned, Strides> {
 public:
  // Makes a map of `sizes` values of the tensor that begin at `values`; as_matrix, as_array and
  // as_vector call it.
  template <class... Sizes>
  TensorMap(const Tensor& tensor, const typename Plain::Scalar* values, Strides strides,
            Sizes... sizes)
      : Eigen::Map<const Plain, Eigen::Unaligned, Strides>(values, sizes..., strides),
        tensor_(tensor) {}

 private:
  Tensor tensor_;
};
// The strides of a matrix, in elements: the outer of its rows and the inner of its columns.
using MapStrides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
// What as_matrix returns.
template <class T>
using MatrixMap =
    TensorMap<Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, MapStrides>;
// What as_array returns.
template <class T>
using ArrayMap =
    TensorMap<Eigen::Array<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, MapStrides>;
// What as_vector returns.
template <class T>
using VectorMap =
    TensorMap<Eigen::Matrix<T, Eigen::Dynamic, 1>, Eigen::InnerStride<Eigen::Dynamic>>;

namespace detail {
// The first element, from where strides() lead on; waits. Errors are about `caller`.
TENON_API const void* strided_data(const Tensor& x, const char* caller, DType expected);

template <class T>
const T* mapped(const char* caller, const Tensor& x, int64_t rank) {
  const auto* values = static_cast<const T*>(strided_data(x, caller, DTypeOf<T>::value));
  if (x.dim() != rank)
    throw ShapeError(std::string(caller) + ": needs a tensor of " + std::to_string(rank) +
                     (rank == 1 ? " dimension" : " dimensions") + ", found shape " +
                     x.shape().str() + "; select, flatten or reshape it first");
  return values;
}
}  // namespace detail

// Returns a tensor (rows, columns) of type T as a matrix, without a copy. Waits until the values
// are there. Changes of the tensor are seen through the map, at any time while they are computed.
// Throws the error of the queued operator that should have made the values, a ValueError for an
// undefined tensor, a DTypeError if T is not its type, a DeviceError if the host cannot read it,
// and a ShapeError unless it has two dimensions.
template <class T>
MatrixMap<T> as_matrix(const Tensor& x) {
  const T* values = detail::mapped<T>("as_matrix", x, 2);
  return {x, values, MapStrides(x.strides()[0], x.strides()[1]), x.size(0), x.size(1)};
}
// Returns the same as an Eigen::Array, whose arithmetic is element by element. Throws as as_matrix.
template <class T>
ArrayMap<T> as_array(const Tensor& x) {
  const T* values = detail::mapped<T>("as_array", x, 2);
  return {x, values, MapStrides(x.strides()[0], x.strides()[1]), x.size(0), x.size(1)};
}
// Returns a tensor (n) of type T as a column, without a copy, and waits as as_matrix does. Throws
// as that does, but a ShapeError unless the tensor has one dimension.
template <class T>
VectorMap<T> as_vector(const Tensor& x) {
  const T* values = detail::mapped<T>("as_vector", x, 1);
  return {x, values, Eigen::InnerStride<Eigen::Dynamic>(x.strides()[0]), x.size(0)};
}
// These refuse a temporary tensor, which would be gone before an expression of its map is computed:
// give it a name first.
template <class T>
MatrixMap<T> as_matrix(const Tensor&&) = delete;
template <class T>
ArrayMap<T> as_array(const Tensor&&) = delete;
template <class T>
VectorMap<T> as_vector(const Tensor&&) = delete;

// Returns the values of an Eigen matrix, array or expression as a tensor: (n) for what is a vector
// at compile time, (rows, columns) otherwise, of the dtype of its scalars unless options.dtype asks
// for another. Throws as the factories of core/factories.h. Values are copied, because the memory
// of a tensor belongs to its device, in the order in which Eigen keeps them: a column-major matrix
// becomes the transposed view of a contiguous tensor. Anything but a plain matrix or array (an
// expression, a Map, Ref, block or transpose) is first evaluated to one, which is a second copy.
// Afterwards the two share nothing.
template <class Derived>
Tensor to_tensor(const Eigen::DenseBase<Derived>& values, TensorOptions options = {}) {
  using Plain = typename Derived::PlainObject;
  if constexpr (!std::is_same_v<Derived, Plain>) {
    const Plain plain(values.derived());
    return to_tensor(plain, options);
  } else {
    using T = typename Derived::Scalar;
    const T* data = values.derived().data();
    const int64_t rows = values.rows(), columns = values.cols();
    if constexpr (Derived::IsVectorAtCompileTime) {
      return from_host(data, DTypeOf<T>::value, {rows * columns}, options);
    } else if constexpr (Derived::IsRowMajor) {
      return from_host(data, DTypeOf<T>::value, {rows, columns}, options);
    } else {
      const bool wanted = options.requires_grad;
      options.requires_grad = false;
      Tensor x = from_host(data, DTypeOf<T>::value, {columns, rows}, options).t();
      return wanted ? x.requires_grad_() : x;
    }
  }
}

}  // namespace tenon
