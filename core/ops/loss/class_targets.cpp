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

ClassTargets class_targets(const char* op, const Tensor& scores, const Tensor& labels,
                           const Tensor& weight) {
  require_tensor(op, scores, 0);
  require_tensor(op, labels, 1);
  const Shape& shape = shape_of(scores);
  if (shape.empty())
    throw ShapeError(std::string(op) + ": the input needs a dimension of classes, found shape ()");
  if (!is_floating_point(dtype_of(scores)))
    throw DTypeError(std::string(op) + ": the input must be floating, found " +
                     std::string(name_of(dtype_of(scores))) + "; convert it with .to(tenon::f32)");
  require_index(op, labels, "target");
  size_t classes_at = shape.size() == 1 ? 0 : 1;
  int64_t classes = shape[classes_at];
  Shape expected = shape;
  expected.erase(classes_at);
  if (!(shape_of(labels) == expected))
    throw ShapeError(std::string(op) + ": an input of shape " + shape.str() +
                     " needs a target of shape " + expected.str() + ", found " +
                     shape_of(labels).str());
  if (weight.defined()) {
    if (!(shape_of(weight) == Shape{classes}))
      throw ShapeError(std::string(op) + ": weight must have shape (" + std::to_string(classes) +
                       ",), one for each class, found " + shape_of(weight).str());
    if (dtype_of(weight) != dtype_of(scores))
      throw DTypeError(std::string(op) + ": weight is " + std::string(name_of(dtype_of(weight))) +
                       ", the input " + std::string(name_of(dtype_of(scores))) +
                       "; convert one with .to(dtype)");
  }
  Tensor list = labels.to(DType::i64);
  return {class_rows(scores), expected.size() == 1 ? list : list.reshape({expected.numel()}),
          expected};
}

}  // namespace tenon
