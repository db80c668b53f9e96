#include <functional>
#include <mutex>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/recording.h>
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

namespace detail {

namespace {
ForkMutex& list_mutex =
    *new ForkMutex(ForkOrder::tables);  // never destroyed: models may be static objects
constinit Placed* first = nullptr;
}  // namespace

void Placed::enlist() noexcept {
  std::lock_guard lock(list_mutex);
  after_ = first;
  if (first) first->before_ = this;
  first = this;
}

void Placed::replaced() noexcept { recording::changed(); }

Placed::~Placed() {
  std::lock_guard lock(list_mutex);
  (before_ ? before_->after_ : first) = after_;
  if (after_) after_->before_ = before_;
}

std::vector<PlacedTensor> placed_within(const void* begin, size_t bytes) {
  std::vector<PlacedTensor> found;
  std::lock_guard lock(list_mutex);
  for (const Placed* p = first; p; p = p->after_)
    if (!std::less<const void*>()(p, begin) &&
        std::less<const void*>()(p, static_cast<const char*>(begin) + bytes))
      found.push_back({p, *p});
  return found;
}

}  // namespace detail

Parameter::Parameter(const Tensor& values, bool requires_grad)
    : Placed(leaf(values, requires_grad)) {}

Buffer::Buffer(const Tensor& values, BufferOptions options)
    : Placed(leaf(values, false)), persistent_(options.persistent) {}

Buffer& Buffer::operator=(const Tensor& values) {
  Tensor::operator=(leaf(values, false));
  replaced();
  return *this;
}

}  // namespace tenon::nn
