// Layers that only change the shape, take windows apart and put them together, or do nothing. The
// result has the dtype of the input.
#pragma once

#include <string>

#include <tenon/core/ops/shape.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// Returns x with the dimensions from `start_dim` to `end_dim`, both included, joined into one: by
// default (N, C, H, W) becomes (N, C H W). Negative numbers count from the end. A call throws an
// IndexError for a dimension that x does not have.
struct TENON_API Flatten final : Module<Flatten> {
  Flatten(int64_t start_dim = 1, int64_t end_dim = -1) : start_dim(start_dim), end_dim(end_dim) {}
  Tensor forward(const Tensor& x) const { return x.flatten(start_dim, end_dim); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t start_dim, end_dim;
};

// Returns x with the dimension `dim` split into `unflattened_size`, of which one may be -1 and is
// inferred: with 1 and {C, H, W}, (N, C H W) becomes (N, C, H, W). A call throws a ShapeError for a
// size that does not fit and an IndexError for a dimension that x does not have.
struct TENON_API Unflatten final : Module<Unflatten> {
  Unflatten(int64_t dim, const Shape& unflattened_size)
      : dim(dim), unflattened_size(unflattened_size) {}
  Tensor forward(const Tensor& x) const { return unflatten(x, dim, unflattened_size); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  int64_t dim;
  Shape unflattened_size;
};

// Returns the windows of images (N, C, H, W) or (C, H, W) as columns of shape (N, C kernel
// elements, windows), or without N, as tenon::unfold does. The constructor throws a ValueError for
// an option outside its range, and a call a ShapeError for images into which the kernel does not
// fit.
struct TENON_API Unfold final : Module<Unfold> {
  Unfold(Pair kernel_size, const UnfoldOptions& options = {});
  Tensor forward(const Tensor& x) const { return unfold(x, kernel_size, options); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair kernel_size;
  UnfoldOptions options;
};

// Returns images (N, C, output_size) or (C, output_size) in which the columns of Unfold are added
// up at their places, as tenon::fold does. The constructor throws a ValueError as that of Unfold,
// and a call a ShapeError for columns that do not fit.
struct TENON_API Fold final : Module<Fold> {
  Fold(Pair output_size, Pair kernel_size, const UnfoldOptions& options = {});
  Tensor forward(const Tensor& x) const { return fold(x, output_size, kernel_size, options); }
  void fields(FieldVisitor&) {}
  std::string extra_repr() const;

  Pair output_size, kernel_size;
  UnfoldOptions options;
};

// Returns x unchanged, a tensor of any shape and dtype.
struct TENON_API Identity final : Module<Identity> {
  Tensor forward(const Tensor& x) const { return x; }
};

}  // namespace tenon::nn
