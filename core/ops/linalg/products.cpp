// Products made of matmul and of products of elements (core/ops/linalg.h).
#include <algorithm>
#include <vector>

#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/format.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/decomposition.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/scan.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

size_t rank_of(const Tensor& x) { return shape_of(x).size(); }

void require_ranks(const char* op, const Tensor& a, size_t rank_a, const Tensor& b, size_t rank_b) {
  require_tensor(op, a, "a");
  require_tensor(op, b, "b");
  if (rank_of(a) != rank_a || rank_of(b) != rank_b)
    throw ShapeError(fmt::format("{}: expects tensors of {} and {} dimensions, found {} and {}", op,
                                 rank_a, rank_b, shape_of(a), shape_of(b)));
}

// Adds nothing, so that an input that does not matter gets a gradient of zeros, and its NaN does
// not count.
Tensor with_zero_gradient(const Tensor& y, const Tensor& input) {
  if (!wants_gradient(input)) return y;
  return y + sum(narrow(flatten(input), 0, 0, 0));
}

Tensor scaled(const Tensor& x, Number factor) { return factor.f == 1 ? x : x * factor; }

// beta input + alpha product.
Tensor add_product(const char* op, const Tensor& input, const Tensor& product, Number beta,
                   Number alpha) {
  const Shape& shape = shape_of(product);
  if (!(broadcast_shapes(shape_of(input), shape, op) == shape))
    throw ShapeError(fmt::format("{}: an input of shape {} does not broadcast to the product's {}",
                                 op, shape_of(input), shape));
  const Tensor y = scaled(product, alpha);
  if (beta.f == 0) return with_zero_gradient(y, input);
  return y + scaled(input, beta);
}

}  // namespace

Tensor mv(const Tensor& a, const Tensor& b) try {
  require_ranks("mv", a, 2, b, 1);
  return matmul(a, b);
} catch (const Error&) {
  rethrow_in("mv");
}

Tensor dot(const Tensor& a, const Tensor& b) try {
  if (const Autocasting cast{"dot", {&a, &b}}) return dot(cast(a), cast(b));
  require_ranks("dot", a, 1, b, 1);
  if (!(shape_of(a) == shape_of(b)))
    throw ShapeError(fmt::format("dot: both vectors must have one length, found {} and {}",
                                 shape_of(a), shape_of(b)));
  const DType t = result_type(a, b);
  if (t == DType::boolean)
    throw DTypeError("dot: takes numbers, found bool; " + conversion_to(DType::i64, "them"));
  return is_floating_point(t) ? matmul(a, b) : sum(a * b).to(t);
} catch (const Error&) {
  rethrow_in("dot");
}

Tensor vdot(const Tensor& a, const Tensor& b) try { return dot(a, b); } catch (const Error&) {
  rethrow_in("vdot");
}

Tensor inner(const Tensor& a, const Tensor& b) try {
  require_defined("inner", {{"a", a}, {"b", b}});
  if (rank_of(a) == 0 || rank_of(b) == 0) return a * b;
  if (shape_of(a).back() != shape_of(b).back())
    throw ShapeError(fmt::format("inner: the last dimensions must be equal, found {} and {}",
                                 shape_of(a), shape_of(b)));
  return tensordot(a, b, Shape{-1}, Shape{-1});
} catch (const Error&) {
  rethrow_in("inner");
}

Tensor outer(const Tensor& a, const Tensor& b) try {
  require_ranks("outer", a, 1, b, 1);
  return unsqueeze(a, 1) * b;
} catch (const Error&) {
  rethrow_in("outer");
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, Number beta, Number alpha) try {
  if (const Autocasting cast{"addmm", {&input, &a, &b}})
    return addmm(cast(input), cast(a), cast(b), beta, alpha);
  require_tensor("addmm", input, "input");
  require_ranks("addmm", a, 2, b, 2);
  const bool layer = beta.f == 1 && alpha.f == 1 && shape_of(a)[1] == shape_of(b)[0] &&
                     shape_of(input) == Shape{shape_of(b)[1]} && dtype_of(a) == dtype_of(b) &&
                     dtype_of(a) == dtype_of(input) && is_floating_point(dtype_of(a));
  if (layer) return linear(a, transpose(b, 0, 1), input);
  return add_product("addmm", input, mm(a, b), beta, alpha);
} catch (const Error&) {
  rethrow_in("addmm");
}

Tensor addmv(const Tensor& input, const Tensor& a, const Tensor& b, Number beta, Number alpha) try {
  if (const Autocasting cast{"addmv", {&input, &a, &b}})
    return addmv(cast(input), cast(a), cast(b), beta, alpha);
  require_tensor("addmv", input, "input");
  require_ranks("addmv", a, 2, b, 1);
  return add_product("addmv", input, mv(a, b), beta, alpha);
} catch (const Error&) {
  rethrow_in("addmv");
}

Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, Number beta,
              Number alpha) try {
  if (const Autocasting cast{"addbmm", {&input, &a, &b}})
    return addbmm(cast(input), cast(a), cast(b), beta, alpha);
  require_tensor("addbmm", input, "input");
  require_ranks("addbmm", a, 3, b, 3);
  const Shape &sa = shape_of(a), &sb = shape_of(b);
  if (sa[0] != sb[0] || sa[2] != sb[1])
    throw ShapeError(fmt::format(
        "addbmm: cannot multiply {} by {}: expects (batch, m, k) and (batch, k, n)", sa, sb));
  // The matrices side by side and one below the other have the sum as their product.
  const Tensor wide = reshape(transpose(a, 0, 1), {sa[1], sa[0] * sa[2]}),
               tall = reshape(b, {sb[0] * sb[1], sb[2]});
  return add_product("addbmm", input, mm(wide, tall), beta, alpha);
} catch (const Error&) {
  rethrow_in("addbmm");
}

Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, Number beta,
               Number alpha) try {
  if (const Autocasting cast{"baddbmm", {&input, &a, &b}})
    return baddbmm(cast(input), cast(a), cast(b), beta, alpha);
  require_tensor("baddbmm", input, "input");
  require_ranks("baddbmm", a, 3, b, 3);
  return add_product("baddbmm", input, bmm(a, b), beta, alpha);
} catch (const Error&) {
  rethrow_in("baddbmm");
}

Tensor kron(const Tensor& a, const Tensor& b) try {
  require_defined("kron", {{"a", a}, {"b", b}});
  const size_t rank = std::max(rank_of(a), rank_of(b));
  Shape left = shape_of(a), right = shape_of(b);
  while (left.size() < rank) left.insert(0, 1);
  while (right.size() < rank) right.insert(0, 1);
  if (2 * rank > Shape::max_rank)
    throw ShapeError(fmt::format("kron: takes at most {} dimensions, found {} and {}",
                                 Shape::max_rank / 2, shape_of(a), shape_of(b)));
  Shape between_left, between_right, result;
  for (size_t d = 0; d < rank; ++d) {
    between_left.push_back(left[d]);
    between_left.push_back(1);
    between_right.push_back(1);
    between_right.push_back(right[d]);
    result.push_back(left[d] * right[d]);
  }
  return reshape(reshape(a, between_left) * reshape(b, between_right), result);
} catch (const Error&) {
  rethrow_in("kron");
}

Tensor cross(const Tensor& a, const Tensor& b, std::optional<int64_t> dim) try {
  if (const Autocasting cast{"cross", {&a, &b}}) return cross(cast(a), cast(b), dim);
  require_defined("cross", {{"a", a}, {"b", b}});
  const Shape shape = broadcast_shapes(shape_of(a), shape_of(b), "cross");
  const auto rank = static_cast<int64_t>(shape.size());
  int64_t d = 0;
  if (dim)
    d = wrap_dim(*dim, rank, "cross");
  else
    while (d < rank && shape[d] != 3) ++d;
  const int64_t behind = d - rank;  // the same dimension in both
  const auto has_three = [&](const Tensor& x) {
    const auto own = static_cast<int64_t>(rank_of(x)) + behind;
    return own >= 0 && shape_of(x)[own] == 3;
  };
  if (d == rank || !has_three(a) || !has_three(b))
    throw ShapeError(
        fmt::format("cross: needs a dimension of size 3 in both tensors{}, found {} and {}",
                    dim ? fmt::format(" at dim {}", *dim) : "", shape_of(a), shape_of(b)));
  if (result_type(a, b) == DType::boolean)
    throw DTypeError("cross: takes numbers, found bool; " + conversion_to(DType::i64, "them"));
  const auto turned = [&](const Tensor& x, int64_t by) { return roll(x, by, behind); };
  return turned(a, -1) * turned(b, -2) - turned(a, -2) * turned(b, -1);
} catch (const Error&) {
  rethrow_in("cross");
}

Tensor matrix_power(const Tensor& x, int64_t n) try {
  require_tensor("matrix_power", x);
  const Shape& shape = shape_of(x);
  if (shape.size() < 2 || shape[-1] != shape[-2])
    throw ShapeError(
        fmt::format("matrix_power: expects square matrices (…, m, m), found shape {}", shape));
  if (n == 0) {
    const TensorOptions options{.dtype = dtype_of(x), .device = device_read_on(x)};
    return with_zero_gradient(eye(shape[-1], options).expand(shape).clone(), x);
  }
  if (!is_floating_point(dtype_of(x)))
    throw DTypeError(fmt::format("matrix_power: x must be floating unless n is 0, found {}; {}",
                                 dtype_of(x), conversion_to(f32)));
  auto left = n < 0 ? 0 - static_cast<uint64_t>(n) : static_cast<uint64_t>(n);
  Tensor result, square = n < 0 ? inv(x) : x;  // x^(2^i)
  for (;; square = matmul(square, square)) {
    if (left % 2) result = result.defined() ? matmul(result, square) : square;
    left /= 2;
    if (left == 0) break;
  }
  return result.is_same(x) ? clone(x) : result;
} catch (const Error&) {
  rethrow_in("matrix_power");
}

namespace {

// The cheapest order of a chain of matrices: where the last product of each part splits it.
class ChainOrder {
 public:
  explicit ChainOrder(const std::vector<Tensor>& matrices)
      : count_(matrices.size()), cost_(count_ * count_, 0), split_(count_ * count_, 0) {
    std::vector<double> sizes{static_cast<double>(shape_of(matrices[0])[0])};
    for (auto& m : matrices) sizes.push_back(static_cast<double>(shape_of(m)[1]));
    for (size_t length = 1; length < count_; ++length)
      for (size_t first = 0; first + length < count_; ++first) {
        const size_t last = first + length;
        double best = -1;
        for (size_t at = first; at < last; ++at) {
          const double cost = cost_[first * count_ + at] + cost_[(at + 1) * count_ + last] +
                              sizes[first] * sizes[at + 1] * sizes[last + 1];
          if (best >= 0 && cost >= best) continue;
          best = cost;
          split_[first * count_ + last] = at;
        }
        cost_[first * count_ + last] = best;
      }
  }
  Tensor multiply(const std::vector<Tensor>& matrices, size_t first, size_t last) const {
    if (first == last) return matrices[first];
    const size_t at = split_[first * count_ + last];
    return matmul(multiply(matrices, first, at), multiply(matrices, at + 1, last));
  }

 private:
  size_t count_;
  std::vector<double> cost_;
  std::vector<size_t> split_;
};

Tensor chain(const char* op, std::vector<Tensor> matrices) {
  for (size_t i = 0; i < matrices.size(); ++i) {
    if (rank_of(matrices[i]) != 2)
      throw ShapeError(fmt::format("{}: tensor {} has shape {}, but must be a matrix", op, i,
                                   shape_of(matrices[i])));
    if (i > 0 && shape_of(matrices[i])[0] != shape_of(matrices[i - 1])[1])
      throw ShapeError(fmt::format("{}: cannot multiply {} by {}, tensors {} and {}", op,
                                   shape_of(matrices[i - 1]), shape_of(matrices[i]), i - 1, i));
  }
  return ChainOrder(matrices).multiply(matrices, 0, matrices.size() - 1);
}

}  // namespace

Tensor multi_dot(const std::vector<Tensor>& tensors) try {
  if (const Autocasting cast{"multi_dot", tensors}) return multi_dot(cast(tensors));
  if (tensors.size() < 2)
    throw ValueError(
        fmt::format("multi_dot: needs at least two tensors, found {}", tensors.size()));
  for (size_t i = 0; i < tensors.size(); ++i) require_tensor("multi_dot", tensors[i], "tensors", i);
  std::vector<Tensor> matrices = tensors;
  const bool row = rank_of(tensors.front()) == 1, column = rank_of(tensors.back()) == 1;
  if (row) matrices.front() = unsqueeze(matrices.front(), 0);
  if (column) matrices.back() = unsqueeze(matrices.back(), 1);
  Tensor y = chain("multi_dot", std::move(matrices));
  if (column) y = squeeze(y, -1);
  return row ? squeeze(y, 0) : y;
} catch (const Error&) {
  rethrow_in("multi_dot");
}

Tensor chain_matmul(const std::vector<Tensor>& matrices) try {
  if (const Autocasting cast{"chain_matmul", matrices}) return chain_matmul(cast(matrices));
  if (matrices.empty()) throw ValueError("chain_matmul: needs at least one matrix");
  for (size_t i = 0; i < matrices.size(); ++i)
    require_tensor("chain_matmul", matrices[i], "matrices", i);
  return chain("chain_matmul", matrices);
} catch (const Error&) {
  rethrow_in("chain_matmul");
}

Tensor vander(const Tensor& x, std::optional<int64_t> n, bool increasing) try {
  require_tensor("vander", x);
  if (rank_of(x) != 1)
    throw ShapeError(fmt::format("vander: expects a vector, found shape {}", shape_of(x)));
  const int64_t count = n.value_or(shape_of(x)[0]);
  if (count < 0) throw ValueError(fmt::format("vander: n must not be negative, found {}", count));
  const Tensor base = is_floating_point(dtype_of(x)) ? x : x.to(DType::i64);
  const int64_t rows = shape_of(base)[0];
  if (count == 0) return narrow(unsqueeze(base, 1), 1, 0, 0);
  const Tensor one = ones({rows, 1}, {.dtype = dtype_of(base), .device = base.device()});
  const Tensor powers =
      count == 1 ? one : cat({one, cumprod(unsqueeze(base, 1).expand({rows, count - 1}), 1)}, 1);
  return increasing ? powers : flip(powers, {1});
} catch (const Error&) {
  rethrow_in("vander");
}

}  // namespace tenon
