// Sequences, unit matrices, indices, and tensors like others (core/ops/creation.h).
#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include <tenon/core/base/module_path.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/extent.h>
#include <tenon/core/format.h>
#include <tenon/core/host_tensor.h>
#include <tenon/core/ops/creation.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

TensorOptions like_options(const char* op, const Tensor& like, TensorOptions options) {
  require_tensor(op, like, "like");
  if (!options.dtype) options.dtype = dtype_of(like);
  if (!options.device) options.device = device_read_on(like);
  return options;
}

Tensor with_options(Tensor x, const TensorOptions& options) {
  x = options.dtype ? x.to(*options.dtype) : x;
  if (options.memory_format) x = x.to(*options.memory_format);
  if (options.requires_grad) x.requires_grad_();
  return x;
}

// Returns values that were made in row-major order in that of `like`, unless the options name one.
Tensor ordered_like(const Tensor& like, Tensor values, const TensorOptions& options) {
  if (like.is_contiguous() || options.memory_format.value_or(preserve_format) != preserve_format)
    return values;
  const NoGrad guard;
  Tensor x = empty_like(
      like,
      {.dtype = values.dtype(), .device = values.device(), .requires_grad = options.requires_grad});
  x.copy_(values);
  return x;
}

TensorOptions plain(const TensorOptions& options, DType dtype) {
  return {.dtype = dtype, .device = options.device};
}

void check_sequence(const char* op, Number start, Number end, int64_t steps, DType dtype) {
  if (steps < 0)
    throw ValueError(
        fmt::format("{}: the number of steps must not be negative, found {}", op, steps));
  if (!std::isfinite(start.f) || !std::isfinite(end.f))
    throw ValueError(fmt::format("{}: start and end must be finite, found {} and {}", op,
                                 number_text(start.f), number_text(end.f)));
  if (dtype == DType::boolean)
    throw DTypeError(fmt::format("{}: the dtype must be one of numbers, found bool", op));
  require_addressable(op, steps);
}

// From both ends towards the middle, so that the last number is exactly `end`, as in PyTorch. In
// f64, or in f32 if that is the result's dtype.
Tensor evenly_spaced(double start, double end, int64_t steps, const TensorOptions& options) {
  if (steps <= 1) return full(steps, start, options);
  const double step = end / static_cast<double>(steps - 1) - start / static_cast<double>(steps - 1);
  const int64_t half = steps / 2;
  if (step == 0) return full(steps, start, options);
  const Tensor count = arange(0, steps - half, 1, options);
  return cat({count.narrow(0, 0, half) * step + start, end - flip(count, 0) * step});
}

// The part of a matrix below the diagonal `shift` and on it, or above it and on it: the columns
// [first, behind) of each row in [top, bottom), and no others.
struct Triangle {
  int64_t rows, cols, shift;
  bool lower;

  int64_t top() const { return lower ? std::clamp<int64_t>(-shift, 0, rows) : 0; }
  int64_t bottom() const { return lower ? rows : std::clamp<int64_t>(cols - shift, 0, rows); }
  int64_t first(int64_t row) const { return lower ? 0 : std::clamp<int64_t>(row + shift, 0, cols); }
  int64_t behind(int64_t row) const {
    return lower ? std::clamp<int64_t>(row + shift + 1, 0, cols) : cols;
  }
  // Counted without a walk over the rows, of which there may be more than memory holds.
  int64_t count() const { return lower ? before(shift + 1) : rows * cols - before(shift); }

 private:
  // The sum over all rows of row + a, moved into [0, cols].
  int64_t before(int64_t a) const {
    const int64_t partial = std::clamp<int64_t>(-a, 0, rows),
                  whole = std::clamp<int64_t>(cols - a, partial, rows);
    return (whole - partial) * (partial + whole - 1 + 2 * a) / 2 + (rows - whole) * cols;
  }
};

// The elements (row, column) of a triangle.
Tensor indices_of(const char* op, Triangle triangle, const TensorOptions& options) {
  const int64_t rows = triangle.rows, cols = triangle.cols;
  if (rows < 0 || cols < 0)
    throw ValueError(
        fmt::format("{}: row and col must not be negative, found {} and {}", op, rows, cols));
  require_addressable(op, {rows, cols});
  // Beyond these bounds nothing changes.
  triangle.shift = std::clamp(triangle.shift, -rows - 1, cols + 1);
  const int64_t count = triangle.count();
  require_addressable(op, {2, count});
  Tensor indices = empty({2, count}, {.dtype = i64, .device = Device("cpu")});
  indices.write_<int64_t>([&](std::span<int64_t> values) {
    size_t i = 0;
    for (int64_t row = triangle.top(); row < triangle.bottom(); ++row)
      for (int64_t col = triangle.first(row); col < triangle.behind(row); ++col, ++i) {
        values[i] = row;
        values[static_cast<size_t>(count) + i] = col;
      }
  });
  return with_options(indices.to(options.device.value_or(default_device())), options);
}

}  // namespace

Tensor linspace(Number start, Number end, int64_t steps, const TensorOptions& options) try {
  const DType dtype = options.dtype.value_or(f32);
  check_sequence("linspace", start, end, steps, dtype);
  if (steps > 0) {
    require_held("linspace", dtype, start);
    if (steps > 1) require_held("linspace", dtype, end);
  }
  return with_options(evenly_spaced(start.f, end.f, steps, plain(options, f64)).to(dtype), options);
} catch (const Error&) {
  rethrow_in("linspace");
}

Tensor logspace(Number start, Number end, int64_t steps, double base,
                const TensorOptions& options) try {
  const DType dtype = options.dtype.value_or(f32);
  check_sequence("logspace", start, end, steps, dtype);
  if (steps > 0) require_held("logspace", dtype, std::pow(base, start.f));
  if (steps > 1) require_held("logspace", dtype, std::pow(base, end.f));
  const Tensor exponents = evenly_spaced(start.f, end.f, steps, plain(options, f64));
  return with_options(pow(base, exponents).to(dtype), options);
} catch (const Error&) {
  rethrow_in("logspace");
}

Tensor eye(int64_t n, const TensorOptions& options) { return eye(n, n, options); }

Tensor eye(int64_t n, int64_t m, const TensorOptions& options) try {
  TensorOptions inner = options;
  inner.requires_grad = false;
  if (n < 0 || m < 0)
    throw ShapeError(fmt::format("eye: n and m must not be negative, found {} and {}", n, m));
  Tensor x = zeros({n, m}, inner);
  diagonal(x).fill_(1);
  return with_options(x, options);
} catch (const Error&) {
  rethrow_in("eye");
}

Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) try {
  return indices_of("tril_indices", {row, col, offset, true}, options);
} catch (const Error&) {
  rethrow_in("tril_indices");
}

Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const TensorOptions& options) try {
  return indices_of("triu_indices", {row, col, offset, false}, options);
} catch (const Error&) {
  rethrow_in("triu_indices");
}

Tensor full_like(const Tensor& like, Number value, const TensorOptions& options) {
  const TensorOptions inner = like_options("full_like", like, options);
  return ordered_like(like, full(like.shape(), value, inner), options);
}
Tensor rand_like(const Tensor& like, const TensorOptions& options) try {
  const TensorOptions inner = like_options("rand_like", like, options);
  return ordered_like(like, rand(like.shape(), inner), options);
} catch (const Error&) {
  rethrow_in("rand_like");
}
Tensor randn_like(const Tensor& like, const TensorOptions& options) try {
  const TensorOptions inner = like_options("randn_like", like, options);
  return ordered_like(like, randn(like.shape(), inner), options);
} catch (const Error&) {
  rethrow_in("randn_like");
}
Tensor randint_like(const Tensor& like, int64_t low, int64_t high,
                    const TensorOptions& options) try {
  const TensorOptions inner = like_options("randint_like", like, options);
  return ordered_like(like, randint(low, high, like.shape(), inner), options);
} catch (const Error&) {
  rethrow_in("randint_like");
}

Tensor randperm(int64_t n, const TensorOptions& options) try {
  const DType dtype = options.dtype.value_or(i64);
  if (n < 0) throw ValueError(fmt::format("randperm: n must not be negative, found {}", n));
  if (n > 0) require_held("randperm", dtype, n - 1);
  require_addressable("randperm", n);
  recording::reads("what randperm draws");
  // Fisher and Yates: each place is exchanged with one of those from it on. Drawn numbers are that
  // much larger than n that their remainders are evenly distributed.
  const auto draws =
      randint(0, std::numeric_limits<int64_t>::max(), n, {.device = Device()}).to_vector<int64_t>();
  std::vector<int64_t> order(draws.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  for (size_t i = 0; i < order.size(); ++i)
    std::swap(order[i], order[i + static_cast<size_t>(draws[i]) % (order.size() - i)]);
  return with_options(tensor(order, n, plain(options, i64)).to(dtype), options);
} catch (const Error&) {
  rethrow_in("randperm");
}

Tensor one_hot(const Tensor& x, int64_t num_classes) try {
  require_tensor("one_hot", x);
  require_index("one_hot", x, "x");
  const bool some = impl_of(x).numel > 0;
  if (num_classes < -1 || (num_classes == 0 && some))
    throw ValueError(fmt::format(
        "one_hot: num_classes must be positive, or -1 to be found, found {}", num_classes));
  if (num_classes == -1) {
    if (!some)
      throw ValueError(
          "one_hot: a tensor without elements does not tell the number of classes; "
          "give num_classes");
    const auto largest = amax(x).item<int64_t>();
    num_classes = largest < std::numeric_limits<int64_t>::max() ? largest + 1 : largest;
    if (num_classes < 1)
      throw ValueError(fmt::format("one_hot: classes must not be negative, found {}", largest));
  }
  const Tensor classes = arange(0, num_classes, 1, {.dtype = i64, .device = device_read_on(x)});
  Shape shape = shape_of(x);
  shape.push_back(num_classes);
  require_addressable("one_hot", shape);
  if (!some) return zeros(shape, {.dtype = i64, .device = classes.device()});
  // The selection looks whether there are these classes.
  const PartPath part("one_hot");
  const Tensor checked = reshape(index_select(classes, 0, flatten(x)), shape_of(x));
  return eq(unsqueeze(checked, -1), classes).to(i64);
} catch (const Error&) {
  rethrow_in("one_hot");
}

}  // namespace tenon
