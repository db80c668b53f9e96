#include <tenon/core/format.h>
#include <tenon/core/ops/optimizer/lists.h>
#include <tenon/core/ops/rules.h>

namespace tenon {

void infer_in_place(Infer& infer) {
  const int64_t count = infer.attrs.get_int("n");
  if (count < 1 || infer.size() % static_cast<size_t>(count) != 0)
    infer.shape_error(fmt::format("{} tensors are no lists of {}", infer.size(), count));
  const auto n = static_cast<size_t>(count), lists = infer.size() / n;
  for (size_t i = 0; i < infer.size(); ++i) {
    const TensorDesc &t = infer.in(i), &parameter = infer.in(i % n);
    infer.require_dtype(
        is_floating_point(dtype_of(t)) && dtype_of(t) == dtype_of(infer.in(0)), i,
        "floating, and of the first parameter's type",
        is_floating_point(dtype_of(infer.in(0))) ? dtype_of(infer.in(0)) : DType::f32);
    if (!(shape_of(t) == shape_of(parameter)))
      infer.shape_error(
          fmt::format("a gradient or state of shape {} does not fit parameter {} of shape {}",
                      shape_of(t), i % n, shape_of(parameter)));
  }
  for (size_t list = 0; list < lists; ++list)
    for (size_t i = 0; list != 1 && i < n; ++i) infer.output_in_place(list * n + i);
}

void ListsInPlace::outputs(std::vector<Tensor>& out) const {
  for (size_t i = 0; i < in.size(); ++i)
    if (i / n != 1) out.push_back(*in[i]);
}

std::vector<const Tensor*> gather_inputs(const char* op, std::initializer_list<TensorList> lists) {
  size_t n = lists.begin()->size();
  std::vector<const Tensor*> inputs;
  inputs.reserve(n * lists.size());
  for (auto list : lists) {
    if (list.empty()) continue;
    if (list.size() != n)
      throw ValueError(
          fmt::format("{}: {} parameters, but {} gradients or states; each parameter needs one", op,
                      n, list.size()));
    for (auto& t : list) {
      if (!t.defined()) throw_undefined(op, fmt::format("argument {}", inputs.size()).c_str());
      inputs.push_back(&t);
    }
  }
  return inputs;
}

void require_list(const char* op, const char* name, bool there, bool wanted) {
  if (there != wanted)
    throw ValueError(fmt::format("{}: {} {}", op, name,
                                 wanted ? "are needed with these settings, but none were given"
                                        : "were given, but these settings have none"));
}

void require_step(const char* op, int64_t step) {
  if (step < 1) throw ValueError(fmt::format("{}: step counts from 1, found {}", op, step));
}

void require_fitting(const char* op, std::initializer_list<TensorList> lists) {
  const TensorList params = *lists.begin();
  const auto inputs = gather_inputs(op, lists);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor &t = *inputs[i], &p = params[i % params.size()];
    if (!is_floating_point(t.dtype()) || t.dtype() != params[0].dtype())
      throw DTypeError(fmt::format(
          "{}: argument {} has dtype {}; it has to be floating, and of the first parameter's type",
          op, i, t.dtype()));
    if (t.shape() != p.shape())
      throw ShapeError(
          fmt::format("{}: a gradient or state of shape {} does not fit parameter {} of shape {}",
                      op, t.shape(), i % params.size(), p.shape()));
  }
}

}  // namespace tenon
