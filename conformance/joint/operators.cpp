// The operators with which plans are tried.
#include <tenon/conformance/joint/bench.h>
#include <tenon/core/error.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/shape.h>

namespace tenon::conformance::joint {

namespace {

constexpr int64_t kSide = 8;  // of the matrix by which a product multiplies

tn_tensor_desc contiguous(std::initializer_list<int64_t> shape, tn_dtype dtype) {
  tn_tensor_desc desc{};
  desc.struct_size = sizeof desc;
  desc.dtype = dtype;
  desc.rank = static_cast<uint32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), desc.shape);
  int64_t stride = 1;
  for (uint32_t d = desc.rank; d-- > 0; stride *= desc.shape[d]) desc.strides[d] = stride;
  return desc;
}

tn_tensor_desc shaped(Operator::Form form, int64_t count, tn_dtype dtype) {
  switch (form) {
    case Operator::pointwise:
      break;
    case Operator::pooling:
      return contiguous({1, count, 1, 1}, dtype);
    case Operator::product:
      return contiguous({count / kSide, kSide}, dtype);
  }
  return contiguous({count}, dtype);
}

tn_attr ints(const char* name, const int64_t (&values)[2]) {
  return {sizeof(tn_attr), name, TN_ATTR_INTS, 0, 0, nullptr, 2, values};
}
tn_attr flag(const char* name, bool value) {
  return {sizeof(tn_attr), name, TN_ATTR_BOOL, value, 0, nullptr, 0, nullptr};
}

Tensor pooled(const Tensor& x) { return avg_pool2d(x.reshape({1, -1, 1, 1}), 1).reshape({-1}); }
Tensor multiplied(const Tensor& x) {
  const Tensor factor = tensor(unit_matrix(), {kSide, kSide}, {.device = x.device()});
  return matmul(x.reshape({-1, kSide}), factor).reshape({-1});
}

}  // namespace

std::vector<float> unit_matrix() {
  std::vector<float> values(kSide * kSide, 0);
  for (size_t i = 0; i < values.size(); i += kSide + 1) values[i] = 1;
  return values;
}

int64_t Operator::at_least(int64_t elements) const {
  return form == product ? (elements + kSide - 1) / kSide * kSide : elements;
}

Operator known_operator(Bench& bench) {
  if (!bench.subject.tried.empty()) return tried_operator(bench);
  const Operator known[] = {{"abs", 2, tenon::abs},
                            {"relu", 0, tenon::relu},
                            {"neg", 2, tenon::neg},
                            {"square", 4, tenon::square},
                            {"sign", -1, tenon::sign},
                            {"avg_pool2d", -2, pooled, Operator::pooling},
                            {"matmul", -2, multiplied, Operator::product}};
  // An overlay may leave what is small to the plugin below.
  for (int64_t count : {1031, 70001})
    for (Operator op : known) {
      op.count = op.at_least(count);
      Request request(op, op.count);
      tn_error* no = bench.planner.supports(bench.planner_device, request.get());
      if (!no) return op;
      no->destroy(no);
    }
  throw UnsupportedError(
      "none of the operators abs, relu, neg, square, sign, avg_pool2d (of one element) and matmul "
      "(by an 8 x 8 matrix) of f32 is offered, with which plans are tried; --try names an operator "
      "of the plugin's own library");
}

Request::Request(const Operator& op, int64_t count, tn_dtype dtype)
    : in(shaped(op.form, count, dtype)),
      factor(contiguous({kSide, kSide}, dtype)),
      out(in),
      inputs{&in, &factor},
      outputs{&out},
      raw{} {
  raw.struct_size = sizeof raw;
  raw.op = op.name;
  raw.num_inputs = op.form == Operator::product ? 2 : 1;
  raw.num_outputs = 1;
  raw.inputs = inputs;
  raw.outputs = outputs;
  for (auto& attr : op.attrs) attrs.push_back(&attr);
  if (op.form != Operator::pooling) return;
  static constexpr int64_t one[] = {1, 1}, zero[] = {0, 0};
  static const tn_attr all[] = {ints("kernel_size", one), ints("stride", one),
                                ints("padding", zero), flag("ceil_mode", false),
                                flag("count_include_pad", true)};
  for (auto& attr : all) attrs.push_back(&attr);
}
Request::Request(const char* op, int64_t count, tn_dtype dtype)
    : Request(Operator{op, 0, nullptr}, count, dtype) {}

const tn_op_request* Request::get() {
  raw.num_attrs = attrs.size();
  raw.attrs = attrs.empty() ? nullptr : attrs.data();
  return &raw;
}

}  // namespace tenon::conformance::joint
