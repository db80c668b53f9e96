#include <fmt/core.h>

#include <tenon/core/dispatch/misplaced.h>
#include <tenon/core/dispatch/replica.h>
#include <tenon/core/format.h>

namespace tenon {

namespace {
std::string name_argument(const std::string& input, const Tensor& tensor) {
  return fmt::format("{}, {} of shape {},", input, tensor.dtype(), tensor.shape());
}
// What the user can do about it.
const char* remedy() {
  return ReplicaScope::active() ? "a tensor that a module reads on several devices has to be an "
                                  "nn::Parameter or an nn::Buffer of the module"
                                : "move one with .to(device)";
}
}  // namespace

MisplacedError::MisplacedError(const char* op, const std::string& input, const Tensor& tensor,
                               Device wanted, const std::string& where)
    : DeviceError(fmt::format("{}: {} is on {}, but the operator runs on {}; {}{}", op,
                              name_argument(input, tensor), tensor.device(), wanted, remedy(),
                              where)),
      op(op),
      argument(name_argument(input, tensor)),
      tensor(tensor),
      wanted(wanted),
      explained(ReplicaScope::active()) {}

MisplacedError::MisplacedError(const char* function, const MisplacedError& inside)
    : DeviceError(fmt::format("{}: {}", function, inside.what())),
      op(fmt::format("{}: {}", function, inside.op)),
      argument(inside.argument),
      tensor(inside.tensor),
      wanted(inside.wanted),
      explained(inside.explained) {}

}  // namespace tenon
