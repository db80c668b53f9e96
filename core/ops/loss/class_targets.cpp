#include <tenon/core/format.h>
#include <tenon/core/ops/loss/class_targets.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

Tensor class_rows(const Tensor& scores) {
  const Shape& shape = shape_of(scores);
  if (shape.size() == 1) return unsqueeze(scores, 0);
  if (shape.size() == 2) return scores;
  Shape order = {0};
  for (size_t d = 2; d < shape.size(); ++d) order.push_back(static_cast<int64_t>(d));
  order.push_back(1);
  int64_t rows = shape[0];
  for (size_t d = 2; d < shape.size(); ++d) rows *= shape[d];
  return permute(scores, order).reshape({rows, shape[1]});
}

void require_class_weight(const char* op, const Tensor& weight, int64_t classes) {
  if (weight.defined() && !(shape_of(weight) == Shape{classes}))
    throw ShapeError(fmt::format("{}: weight must have shape ({},), one for each class, found {}",
                                 op, classes, shape_of(weight)));
}

ClassTargets class_targets(const char* op, const Tensor& scores, const Tensor& labels,
                           const Tensor& weight) {
  require_tensor(op, scores, "scores");
  require_tensor(op, labels, "target");
  const Shape& shape = shape_of(scores);
  if (shape.empty())
    throw ShapeError(fmt::format("{}: the input needs a dimension of classes, found shape ()", op));
  if (!is_floating_point(dtype_of(scores)))
    throw DTypeError(
        fmt::format("{}: the input must be floating, found {}; convert it with .to(tenon::f32)", op,
                    dtype_of(scores)));
  require_index(op, labels, "target");
  size_t classes_at = shape.size() == 1 ? 0 : 1;
  int64_t classes = shape[classes_at];
  Shape expected = shape;
  expected.erase(classes_at);
  if (!(shape_of(labels) == expected))
    throw ShapeError(fmt::format("{}: an input of shape {} needs a target of shape {}, found {}",
                                 op, shape, expected, shape_of(labels)));
  require_class_weight(op, weight, classes);
  if (weight.defined() && dtype_of(weight) != dtype_of(scores))
    throw DTypeError(fmt::format("{}: weight is {}, the input {}; {}", op, dtype_of(weight),
                                 dtype_of(scores), conversion_to(dtype_of(scores), "the weight")));
  Tensor list = labels.to(DType::i64);
  return {class_rows(scores), expected.size() == 1 ? list : list.reshape({expected.numel()}),
          expected};
}

}  // namespace tenon
