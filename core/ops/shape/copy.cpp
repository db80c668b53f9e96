#include <tenon/core/dispatch/detour.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/dispatch/transfer.h>
#include <tenon/core/format.h>
#include <tenon/core/layout.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/shape/writable.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

namespace {

void infer_copy(Infer& infer) {
  infer.output(static_cast<DType>(infer.attrs.get_int("dtype")), shape_of(infer.in(0)));
}
void copy_gradient(const GradContext& c, Grads g) { g[0] = c.grad().to(c.input_dtype(0)); }
// | `copy` | x -> y | | any dtype to any dtype, any strides on both sides: `contiguous`,
//   `to(dtype)`, `copy_`. Float to integer truncates, to bool is `!= 0` |
const Op copy_op{{.name = "copy",
                  .infer = infer_copy,
                  .gradient = copy_gradient,
                  .pointwise = true,
                  .core_attr = "dtype"}};

// Names of devices are interned: their text lives as long as the process.
Device device_of(const Attrs& attrs, const char* type, const char* index) {
  return Device(attrs.get_string(type), static_cast<uint32_t>(attrs.get_int(index)));
}

void to_device_gradient(const GradContext& c, Grads g) {
  g[0] = c.grad().to(device_of(c.attrs, "from_type", "from_index"));
}
void execute_to_device(const Call& call, Outputs& out) {
  NoGrad guard;
  const Device to = device_of(call.attrs, "type", "index");
  const TensorImpl& x = impl_of(call.in(0));
  if (is_dense(x.shape, x.strides)) return out.push_back(copy_to_device(call.in(0), to));
  const Detour detour("to", call.in(0));
  out.push_back(copy_to_device(call.in(0).clone(), to));
}
const Op to_device_op{{
    .name = "to_device",
    .gradient = to_device_gradient,
    .execute = execute_to_device,
}};

Attrs dtype_attrs(DType dtype) { return Attrs().set("dtype", static_cast<int64_t>(dtype)); }

Tensor run_copy(const Tensor& x, DType dtype, MemoryFormat format = preserve_format) {
  const Tensor* input = &x;
  return run_all({copy_op, {&input, 1}, dtype_attrs(dtype), {}, ~0u, nullptr, nullptr, format})[0];
}

}  // namespace

void require_writable(const char* op, const Tensor& target) {
  require_tensor(op, target);
  require_mutable(op, target);
  if (elements_overlap(target.shape(), target.strides()))
    throw ValueError(
        fmt::format("{}: several elements of this tensor of shape {} may share one place in "
                    "memory, as after expand or unfold; change a .contiguous() copy of it",
                    op, target.shape()));
}

Tensor to(const Tensor& x, Device device) {
  require_tensor("to", x);
  Device from = x.device();
  if (from == device) return x;
  Attrs attrs;
  attrs.set("type", device.type().data()).set("index", static_cast<int64_t>(device.index()));
  attrs.set("from_type", from.type().data()).set("from_index", static_cast<int64_t>(from.index()));
  return run(to_device_op, {&x}, attrs);
}

Tensor to(const Tensor& x, DType dtype) {
  require_tensor("to", x);
  if (dtype_of(x) == dtype) return x;
  if (is_floating_point(dtype)) return run_copy(x, dtype);
  NoGrad guard;  // whole numbers have no gradient
  return run_copy(x, dtype);
}

Tensor to(const Tensor& x, MemoryFormat format) {
  require_tensor("to", x);
  require_rank("to", shape_of(x), format);
  if (format == preserve_format || impl_of(x).format == format) return x;
  return run_copy(x, dtype_of(x), format);
}

Tensor contiguous(const Tensor& x, MemoryFormat format) {
  require_tensor("contiguous", x);
  if (format == preserve_format)
    throw ValueError(
        "contiguous: preserve_format is no order of elements; clone() keeps that of x");
  require_rank("contiguous", shape_of(x), format);
  return x.is_contiguous(format) ? x : run_copy(x, dtype_of(x), format);
}

Tensor clone(const Tensor& x, MemoryFormat format) {
  require_tensor("clone", x);
  require_rank("clone", shape_of(x), format);
  return run_copy(x, dtype_of(x), format);
}

Tensor Tensor::to(Device device, std::optional<DType> dtype) const {
  const Tensor moved = tenon::to(*this, device);
  return dtype ? moved.to(*dtype) : moved;
}
Tensor Tensor::to(DType dtype) const { return tenon::to(*this, dtype); }
Tensor Tensor::to(MemoryFormat format) const { return tenon::to(*this, format); }
Tensor Tensor::contiguous(MemoryFormat format) const { return tenon::contiguous(*this, format); }
Tensor Tensor::clone(MemoryFormat format) const { return tenon::clone(*this, format); }

Tensor& Tensor::copy_(const Tensor& source) {
  require_writable("copy_", *this);
  require_tensor("copy_", source, "source");
  if (wants_gradient(source))
    throw AutogradError(
        "copy_: the source requires a gradient, but copying into a tensor is not recorded; use "
        "source.detach(), or tenon::NoGrad");
  if (is_same(source)) return *this;
  if (changes_replica(*this)) {
    replica_to_change(*this).copy_(source);
    return *this;
  }
  Tensor from = source;
  if (!(from.shape() == shape())) {
    Shape common = broadcast_shapes(shape(), from.shape(), "copy_");
    if (!(common == shape()))
      throw ShapeError(
          fmt::format("copy_: a source of shape {} does not fit into a tensor of shape {}",
                      from.shape(), shape()));
    from = from.expand(shape());
  }
  from = from.to(device());
  const Tensor* input = &from;
  run_into(*this, {copy_op, {&input, 1}, dtype_attrs(dtype())});
  return *this;
}

void write_part(const Tensor& part, const Tensor& values) {
  const Tensor* input = &values;
  run_into(part, {copy_op, {&input, 1}, dtype_attrs(dtype_of(part))}, Target::new_result);
}

void prepare_copy(const Tensor& target, const Tensor& source) {
  require_writable("copy_", target);
  const Tensor* input = &source;
  prepare_into(target, {copy_op, {&input, 1}, dtype_attrs(target.dtype())});
}

}  // namespace tenon
