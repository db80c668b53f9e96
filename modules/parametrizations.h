// Layers whose weight is computed from other parameters at each call, as by PyTorch's
// torch.nn.utils.parametrizations:
//
//   struct Net : nn::Module<Net> {
//     nn::WeightNorm<nn::Conv2d> conv{nn::Conv2d(3, 8, 3)};
//     nn::SpectralNorm<nn::Linear> out{nn::Linear(8, 1)};
//     …
//   };
//   auto layer = nn::utils::parametrizations::weight_norm(nn::Linear(20, 40));
//
// Any layer with a parameter `weight` can be the inner one. It keeps its other parameters under
// their names; in place of "weight" the state has PyTorch's names, which are said below. The layer
// takes the values of the inner one; `module` is that without its weight. A copy with a weight of
// its own computes each call, so changes that forward makes in the inner layer to anything but
// tensors are lost. A call takes the arguments of the inner layer and returns its result.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <tenon/modules/conv.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

namespace detail {

// The children "parametrizations" and "weight" of PyTorch, and what is below them.
struct TENON_API WeightAndLength final : Module<WeightAndLength> {
  void fields(FieldVisitor& v) { v("original0", original0)("original1", original1); }
  Parameter original0, original1;
};
struct TENON_API SpectralVectors final : Module<SpectralVectors> {
  void fields(FieldVisitor& v) { v("_u", left)("_v", right)("training", training); }
  Buffer left, right;  // singular vectors
  bool training = true;
};
struct TENON_API WeightAndVectors final : Module<WeightAndVectors> {
  void fields(FieldVisitor& v) { v("original", original)("0", vectors); }
  Parameter original;
  SpectralVectors vectors;
};
template <class List>
struct Parametrizations final : Module<Parametrizations<List>> {
  void fields(FieldVisitor& v) { v("weight", weight); }
  List weight;
};

TENON_API WeightAndLength split_length(const Tensor& weight, std::optional<int64_t> dim);
TENON_API Tensor weight_of(const WeightAndLength& parts, std::optional<int64_t> dim);
TENON_API WeightAndVectors with_vectors(const Tensor& weight, int64_t dim, double eps);
TENON_API Tensor weight_of(WeightAndVectors& parts, int64_t n_power_iterations, double eps,
                           int64_t dim);
TENON_API void require_weight(const char* layer, const Tensor& weight);
TENON_API void require_spectral(const Tensor& weight, int64_t n_power_iterations, double eps,
                                int64_t dim);

template <class M>
concept Weighted = IsModule<M> && requires(M& m) {
  { m.weight } -> std::same_as<Parameter&>;
};

// Passes the fields of a module that has no weight at present.
template <class M>
void visit_inner(M& module, FieldVisitor& v) {
  const ModuleRef inner(module);
  inner.type->visit(inner.self, v);
}

// Calls a copy of the module that has this weight.
template <class M, class... A>
auto call_with_weight(const M& module, const Tensor& weight, A&&... arguments) {
  M layer(module);
  static_cast<Tensor&>(layer.weight) = weight;  // with its history
  return layer.forward(std::forward<A>(arguments)...);
}
template <class M>
std::string inner_repr(const M& module) {
  if constexpr (requires { std::string(module.extra_repr()); }) return module.extra_repr();
  return "";
}

}  // namespace detail

// The weight is g v / |v|: its lengths g, "parametrizations.weight.original0", and its directions
// v, "parametrizations.weight.original1", are learned apart (Salimans and Kingma,
// arXiv:1602.07868). There is a length for each index of dimension `dim`, which the norm leaves;
// nullopt takes one for all of the weight, and so does -1, as in PyTorch. The constructor throws a
// ValueError for a layer without a weight, and an IndexError if the weight has no such dimension.
template <detail::Weighted M>
struct WeightNorm final : Module<WeightNorm<M>> {
  explicit WeightNorm(M inner, std::optional<int64_t> dim = 0)
      : module(std::move(inner)), dim(dim) {
    detail::require_weight("weight_norm", module.weight);
    parametrizations.weight = detail::split_length(module.weight, dim);
    module.weight = Parameter();
  }
  // Returns the weight as it is now, of the shape and dtype of the inner layer's.
  Tensor weight() const { return detail::weight_of(parametrizations.weight, dim); }
  // Returns the result of the inner layer with weight().
  template <class... A>
  auto forward(A&&... arguments) {
    return detail::call_with_weight(module, weight(), std::forward<A>(arguments)...);
  }
  void fields(FieldVisitor& v) {
    detail::visit_inner(module, v);
    v("parametrizations", parametrizations);
  }
  std::string extra_repr() const { return detail::inner_repr(module); }

  M module;
  std::optional<int64_t> dim;
  detail::Parametrizations<detail::WeightAndLength> parametrizations;
};

struct SpectralNormOptions {
  int64_t n_power_iterations = 1;  // the steps at each call in training; at least 1
  double eps = 1e-12;              // the least length that is divided by; above 0 and finite
  // The dimension of the outputs: the weight is taken as a matrix whose rows it numbers. By default
  // it is 1 for transposed convolutions and 0 for all other layers.
  std::optional<int64_t> dim = std::nullopt;
};

// The weight is "parametrizations.weight.original" divided by its largest singular value, which the
// power method follows (Miyato et al., arXiv:1802.05957) in the buffers
// "parametrizations.weight.0._u" and "parametrizations.weight.0._v". Each call in training mode
// makes n_power_iterations steps. A weight of one dimension is divided by its length. The
// constructor makes 15 steps. It throws a ValueError for a layer without a weight and for an option
// outside its range, and an IndexError if the weight has no dimension `dim`.
template <detail::Weighted M>
struct SpectralNorm final : Module<SpectralNorm<M>> {
  explicit SpectralNorm(M inner, const SpectralNormOptions& o = {})
      : module(std::move(inner)), options(o) {
    constexpr bool transposed = std::is_same_v<M, ConvTranspose1d> ||
                                std::is_same_v<M, ConvTranspose2d> ||
                                std::is_same_v<M, ConvTranspose3d>;
    if (!options.dim) options.dim = transposed ? 1 : 0;
    detail::require_weight("spectral_norm", module.weight);
    detail::require_spectral(module.weight, o.n_power_iterations, o.eps, *options.dim);
    parametrizations.weight = detail::with_vectors(module.weight, *options.dim, o.eps);
    module.weight = Parameter();
  }
  // Returns the weight with which a call computes, of the shape and dtype of the inner layer's; in
  // training mode that changes the buffers.
  Tensor weight() {
    return detail::weight_of(parametrizations.weight, options.n_power_iterations, options.eps,
                             *options.dim);
  }
  // Returns the result of the inner layer with weight().
  template <class... A>
  auto forward(A&&... arguments) {
    return detail::call_with_weight(module, weight(), std::forward<A>(arguments)...);
  }
  void fields(FieldVisitor& v) {
    detail::visit_inner(module, v);
    v("parametrizations", parametrizations);
  }
  std::string extra_repr() const { return detail::inner_repr(module); }

  M module;
  SpectralNormOptions options;
  detail::Parametrizations<detail::WeightAndVectors> parametrizations;
};

namespace utils::parametrizations {

// Returns WeightNorm(module, dim), with its errors. Unlike PyTorch's function it does not change
// the module that it is given.
template <class M>
WeightNorm<M> weight_norm(M module, std::optional<int64_t> dim = 0) {
  return WeightNorm<M>(std::move(module), dim);
}
// Returns SpectralNorm(module, options), with its errors. Unlike PyTorch's function it does not
// change the module that it is given.
template <class M>
SpectralNorm<M> spectral_norm(M module, const SpectralNormOptions& options = {}) {
  return SpectralNorm<M>(std::move(module), options);
}

}  // namespace utils::parametrizations

namespace utils::parametrize {

// Returns the inner layer, with the weight that the parametrized one has in its present mode. The
// weight requires a gradient if one of the parameters of which it was computed does.
template <class P>
auto remove_parametrizations(P parametrized) {
  auto module = parametrized.module;
  bool learns = false;
  for (auto& part : nn::parameters(parametrized.parametrizations))
    learns = learns || part.requires_grad();
  module.weight = Parameter(no_grad([&] { return parametrized.weight().clone(); }), learns);
  return module;
}

}  // namespace utils::parametrize

}  // namespace tenon::nn
