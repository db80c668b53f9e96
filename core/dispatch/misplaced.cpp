#include <fmt/core.h>

#include <tenon/core/dispatch/misplaced.h>
#include <tenon/core/format.h>

namespace tenon {

namespace {
std::string name_argument(size_t argument, const Tensor& tensor) {
  return fmt::format("argument {}, {} of shape {},", argument, tensor.dtype(), tensor.shape());
}
}  // namespace

MisplacedError::MisplacedError(const char* op, size_t argument, const Tensor& tensor, Device wanted,
                               const std::string& where)
    : DeviceError(
          fmt::format("{}: {} is on {}, but the operator runs on {}; move one with .to(device){}",
                      op, name_argument(argument, tensor), tensor.device(), wanted, where)),
      op(op),
      argument(name_argument(argument, tensor)),
      tensor(tensor),
      wanted(wanted) {}

}  // namespace tenon
