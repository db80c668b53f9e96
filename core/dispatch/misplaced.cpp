#include <tenon/core/dispatch/misplaced.h>

namespace tenon {

namespace {
std::string name_argument(size_t argument, const Tensor& tensor) {
  return "argument " + std::to_string(argument) + ", " + std::string(name_of(tensor.dtype())) +
         " of shape " + tensor.shape().str() + ",";
}
}  // namespace

MisplacedError::MisplacedError(const char* op, size_t argument, const Tensor& tensor, Device wanted,
                               const std::string& where)
    : DeviceError(std::string(op) + ": " + name_argument(argument, tensor) + " is on " +
                  tensor.device().str() + ", but the operator runs on " + wanted.str() +
                  "; move one with .to(device)" + where),
      op(op),
      argument(name_argument(argument, tensor)),
      tensor(tensor),
      wanted(wanted) {}

}  // namespace tenon
