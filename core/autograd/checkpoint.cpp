#include <tenon/core/autograd/checkpoint.h>
#include <tenon/core/autograd/recomputation.h>

namespace tenon::detail {

struct CheckpointCall::Inside {
  explicit Inside(Recomputation& of) : scope(of, Recomputation::Scope::first) {}
  Recomputation::Scope scope;
};

CheckpointCall::CheckpointCall(std::vector<Tensor> inputs, std::function<void()> again)
    : recomputation_(std::make_shared<Recomputation>(std::move(inputs), std::move(again))),
      inside_(std::make_unique<Inside>(*recomputation_)) {}

CheckpointCall::~CheckpointCall() = default;

}  // namespace tenon::detail
