// Tensors of numbers in nested braces (core/factories.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

NestedNumbers::NestedNumbers(std::initializer_list<NestedNumbers> rows)
    : is_list_(true), rows_(rows) {}
NestedNumbers::NestedNumbers(const NestedNumbers&) = default;
NestedNumbers::~NestedNumbers() = default;

namespace {

std::string length_of(const NestedNumbers& row) {
  if (!row.is_list()) return "is a number";
  return fmt::format("has {} element{}", row.rows().size(), row.rows().size() == 1 ? "" : "s");
}

// The numbers of a list in row-major order; `place` names a row as "[1][0]".
class Gathered {
 public:
  explicit Gathered(const NestedNumbers& values) {
    for (auto* first = &values; first->is_list(); first = &first->rows().front()) {
      shape.push_back(static_cast<int64_t>(first->rows().size()));
      if (first->rows().empty()) break;
    }
    gather(values, 0, "");
  }

  Shape shape;
  std::vector<Number> numbers;

 private:
  void gather(const NestedNumbers& values, size_t depth, const std::string& place) {
    const bool fits =
        values.is_list()
            ? depth < shape.size() && static_cast<int64_t>(values.rows().size()) == shape[depth]
            : depth == shape.size();
    if (!fits) refuse(values, depth, place);
    if (!values.is_list()) return numbers.push_back(values.number());
    size_t i = 0;
    for (auto& row : values.rows()) gather(row, depth + 1, fmt::format("{}[{}]", place, i++));
  }

  [[noreturn]] void refuse(const NestedNumbers& row, size_t depth, const std::string& place) {
    std::string first, expected = "is a number";
    for (size_t d = 0; d < depth; ++d) first += "[0]";
    if (depth < shape.size())
      expected = fmt::format("has {} element{}", shape[depth], shape[depth] == 1 ? "" : "s");
    throw ShapeError(fmt::format(
        "tensor: row {} {}, but row {} {}; the rows of a tensor have equally many elements", place,
        length_of(row), first, expected));
  }
};

Tensor tensor_of(const Gathered& values, const Shape& shape, TensorOptions options) {
  const auto& numbers = values.numbers;
  const bool truths = !numbers.empty() && std::all_of(numbers.begin(), numbers.end(),
                                                      [](Number n) { return n.boolean; });
  if (!options.dtype) options.dtype = truths ? DType::boolean : DType::f32;
  for (Number number : numbers) require_held("tensor", *options.dtype, number);
  if (is_integer(*options.dtype)) {
    std::vector<int64_t> whole(numbers.size());
    std::transform(numbers.begin(), numbers.end(), whole.begin(),
                   [](Number n) { return n.integral ? n.i : static_cast<int64_t>(n.f); });
    return from_host(whole.data(), DType::i64, shape, options);
  }
  std::vector<double> floating(numbers.size());
  std::transform(numbers.begin(), numbers.end(), floating.begin(), [](Number n) { return n.f; });
  return from_host(floating.data(), DType::f64, shape, options);
}

}  // namespace

Tensor detail::tensor_of_numbers(const NestedNumbers& values, const TensorOptions& options) {
  const Gathered gathered(values);
  return tensor_of(gathered, gathered.shape, options);
}

Tensor tensor(const NestedNumbers& values) { return detail::tensor_of_numbers(values, {}); }

Tensor tensor(const NestedNumbers& values, const Shape& shape, const TensorOptions& options) {
  const Gathered gathered(values);
  detail::require_values(gathered.numbers.size(), shape);
  return tensor_of(gathered, shape, options);
}

}  // namespace tenon
