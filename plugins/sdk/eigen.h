// The tensors of a plan as Eigen's maps, for plugins that compute with Eigen 3.4. No other header
// of the SDK includes it.
//
//   auto x = sdk::as_matrix<float>(request.input(0), run.inputs[0]);
//   sdk::as_matrix<float>(request.output(0), run.outputs[0]).noalias() = x * x.transpose();
//
// A plan keeps the descriptors that it needs (a request is gone when plan_create returns), and
// makes maps when it runs. Maps own nothing. They take the descriptor's strides, so nothing has to
// be contiguous.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include <Eigen/Core>

#include <tenon/plugins/sdk/sdk.h>

namespace tenon::sdk {

// The dtype whose elements are a T in memory; -1 for other types.
template <class T>
inline constexpr tn_dtype dtype_of = tn_dtype(-1);
template <>
inline constexpr tn_dtype dtype_of<float> = TN_F32;
template <>
inline constexpr tn_dtype dtype_of<double> = TN_F64;
template <>
inline constexpr tn_dtype dtype_of<Eigen::half> = TN_F16;
template <>
inline constexpr tn_dtype dtype_of<Eigen::bfloat16> = TN_BF16;
template <>
inline constexpr tn_dtype dtype_of<int64_t> = TN_I64;
template <>
inline constexpr tn_dtype dtype_of<int32_t> = TN_I32;
template <>
inline constexpr tn_dtype dtype_of<uint8_t> = TN_U8;
template <>
inline constexpr tn_dtype dtype_of<bool> = TN_BOOL;

// A map of Eigen with any strides; T is const for what is only read.
template <class T, class Plain>
using MapOf = Eigen::Map<std::conditional_t<std::is_const_v<T>, const Plain, Plain>,
                         Eigen::Unaligned, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>>;
// A tensor as a matrix.
template <class T>
using MatrixMap =
    MapOf<T,
          Eigen::Matrix<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;
// A tensor as an array, for arithmetic element by element.
template <class T>
using ArrayMap =
    MapOf<T, Eigen::Array<std::remove_const_t<T>, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>;

namespace detail {
// Returns the map of a descriptor of one or two dimensions: one dimension is a column.
template <class Map, class T>
Map mapped(const char* caller, const tn_tensor_desc& d, T* values) {
  const std::string at(caller);
  if (d.dtype != dtype_of<std::remove_const_t<T>>)
    throw Error(TN_CODE_INVALID_ARGUMENT, at + ": the tensor holds " + dtype_name(d.dtype) +
                                              ", but was to be read as " +
                                              dtype_name(dtype_of<std::remove_const_t<T>>));
  if (d.rank < 1 || d.rank > 2)
    throw Error(TN_CODE_INVALID_ARGUMENT,
                text("{}: needs a tensor of 1 or 2 dimensions, found {}", at, d.rank));
  const bool matrix = d.rank == 2;
  return {values, d.shape[0], matrix ? d.shape[1] : 1,
          Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>(d.strides[0], matrix ? d.strides[1] : 1)};
}
}  // namespace detail

// Return the tensor that `d` describes and that begins at `values`, (rows, columns) or (n), as a
// matrix or a column. Throw TN_CODE_INVALID_ARGUMENT if T is not its dtype, or if it has another
// number of dimensions.
template <class T>
MatrixMap<const T> as_matrix(const tn_tensor_desc& d, const void* values) {
  return detail::mapped<MatrixMap<const T>>("as_matrix", d, static_cast<const T*>(values));
}
template <class T>
MatrixMap<T> as_matrix(const tn_tensor_desc& d, void* values) {
  return detail::mapped<MatrixMap<T>>("as_matrix", d, static_cast<T*>(values));
}
// Return the same for arithmetic element by element.
template <class T>
ArrayMap<const T> as_array(const tn_tensor_desc& d, const void* values) {
  return detail::mapped<ArrayMap<const T>>("as_array", d, static_cast<const T*>(values));
}
template <class T>
ArrayMap<T> as_array(const tn_tensor_desc& d, void* values) {
  return detail::mapped<ArrayMap<T>>("as_array", d, static_cast<T*>(values));
}

}  // namespace tenon::sdk
