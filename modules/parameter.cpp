#include <tenon/modules/parameter.h>

namespace tenon::nn {

namespace {

// A new leaf over the same values.
Tensor leaf(const Tensor& values, bool requires_grad) {
  if (!values.defined()) return values;
  Tensor t = values.detach();
  if (requires_grad) t.requires_grad_();
  return t;
}

}  // namespace

Parameter::Parameter(const Tensor& values, bool requires_grad) : Tensor(leaf(values, requires_grad)) {}

Buffer::Buffer(const Tensor& values, BufferOptions options) : Tensor(leaf(values, false)), persistent_(options.persistent) {}

Buffer& Buffer::operator=(const Tensor& values) {
  Tensor::operator=(leaf(values, false));
  return *this;
}

}  // namespace tenon::nn
