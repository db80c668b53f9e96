#include <tenon/core/autograd/fitting.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>

namespace tenon {

void require_fitting(const char* what, const char* name, const Tensor& gradient,
                     const Tensor& tensor, const char* other) {
  auto &g = impl_of(gradient), &t = impl_of(tensor);
  if (g.shape != t.shape)
    throw ShapeError(
        fmt::format("{}: {} has shape {}, {} {}", what, name, g.shape, other, t.shape));
  if (g.dtype != t.dtype)
    throw DTypeError(fmt::format("{}: {} is {}, {} {}", what, name, g.dtype, other, t.dtype));
  if (g.device != t.device)
    throw DeviceError(
        fmt::format("{}: {} is on {}, {} on {}", what, name, g.device, other, t.device));
}

}  // namespace tenon
