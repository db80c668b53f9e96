#include <tenon/core/format.h>
#include <tenon/core/ops/shape.h>
#include <tenon/modules/padding.h>
#include <tenon/modules/repr.h>

namespace tenon::nn {

namespace {

std::string constant_repr(const Shape& padding, Number value) {
  return fmt::format("padding={}, value={}", padding,
                     value.integral ? fmt::format("{}", value.i) : repr(value.f));
}

}  // namespace

PadState::PadState(const char* layer, size_t dims, const Shape& sizes) : padding(sizes) {
  if (sizes.size() == 1) padding = Shape::filled(2 * dims, sizes[0]);
  if (padding.size() != 2 * dims)
    throw ValueError(
        fmt::format("{}: padding is {}; it has to be one number or {}", layer, sizes, 2 * dims));
}

Tensor PadState::padded(const char* layer, const Tensor& x, const char* mode, Number value) const {
  const size_t dims = padding.size() / 2, rank = static_cast<size_t>(x.dim());
  const bool any = std::string_view(mode) == "constant";
  if (any ? rank < dims : rank != dims + 1 && rank != dims + 2)
    throw ShapeError(fmt::format(
        "{}: expected an input of {} dimensions, got one of shape {}", layer,
        any ? fmt::format("at least {}", dims) : fmt::format("{} or {}", dims + 1, dims + 2),
        x.shape()));
  return pad(x, {padding.begin(), padding.end()}, mode, value);
}

std::string ConstantPad1d::extra_repr() const { return constant_repr(padding, value); }
std::string ConstantPad2d::extra_repr() const { return constant_repr(padding, value); }
std::string ConstantPad3d::extra_repr() const { return constant_repr(padding, value); }

}  // namespace tenon::nn
