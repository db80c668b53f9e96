#include <algorithm>
#include <utility>

#include <tenon/core/autograd/fitting.h>
#include <tenon/core/autograd/function.h>
#include <tenon/core/autograd/node.h>
#include <tenon/core/base/error_path.h>
#include <tenon/core/dispatch/autocast.h>
#include <tenon/core/error.h>
#include <tenon/core/factories.h>
#include <tenon/core/format.h>

namespace tenon::autograd {

namespace detail {

struct FunctionState {
  std::string name;
  std::vector<bool> needed;  // of each argument
  std::vector<Tensor> saved, non_differentiable;
  struct Value {
    std::any value;
    SameValue same;
  };
  std::map<std::string, Value, std::less<>> values;
  bool materializes = true;
  AutocastState autocast;  // of forward
};

namespace {

// Adds the function to the first line of an error, unless an inner one is there already.
void add_name(Error& error, const char* part, const std::string& name) {
  if (error.of_earlier_work) return;
  if (std::string_view(error.what()).find(" of autograd function ") == std::string_view::npos)
    add_to_first_line(error, fmt::format(" (in {} of autograd function {})", part, name));
}

bool contains(const std::vector<Tensor>& tensors, const Tensor& wanted) {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const Tensor& t) { return t.is_same(wanted); });
}

}  // namespace

class FunctionRule : public NodeRule {
 public:
  FunctionRule(std::shared_ptr<FunctionState> state, FunctionBackward backward,
               std::span<const Tensor> inputs, std::span<Tensor* const> results)
      : NodeRule(state->name), state_(std::move(state)), backward_(backward) {
    for (auto& t : inputs) inputs_.push_back(t.defined() ? t.shape() : Shape());
    for (auto* t : results)
      results_.push_back(t->defined() ? Made{t->shape(), t->dtype(), t->device()} : Made{});
  }

  // Keeps what save_for_backward was given. Results are known by their number, as they have no
  // history yet, and would be a cycle.
  void keep(Node& node, std::span<Tensor* const> results) {
    for (uint32_t i = 0; i < state_->saved.size(); ++i) {
      const Tensor& t = state_->saved[i];
      const auto result =
          std::find_if(results.begin(), results.end(), [&](Tensor* r) { return r->is_same(t); });
      if (!t.defined()) {
        places_.push_back(kUndefined);
      } else if (result != results.end()) {
        places_.push_back(static_cast<size_t>(result - results.begin()));
        const bool again =
            std::find(places_.begin(), places_.end() - 1, places_.back()) != places_.end() - 1;
        if (!again)
          node.outputs.push_back(save_value(node, t, static_cast<uint32_t>(places_.back()), true));
      } else {
        places_.push_back(kInput);
        node.inputs.push_back(save_value(node, t, i, false));
      }
    }
    num_saved = state_->saved.size();
    state_->saved.clear();
    state_->non_differentiable.clear();
  }

  std::vector<Tensor> backward(std::span<const Tensor> grads, std::span<const Tensor> saved,
                               std::span<const Tensor> outputs,
                               std::span<const bool> needed) const override {
    Context context(state_);
    context.needed_.assign(needed.begin(), needed.end());
    for (size_t i = 0; i < places_.size(); ++i)
      context.saved_.push_back(places_[i] == kInput       ? saved[i]
                               : places_[i] == kUndefined ? Tensor()
                                                          : outputs[places_[i]]);
    std::vector<Tensor> given(grads.begin(), grads.end());
    if (state_->materializes)
      for (size_t i = 0; i < given.size(); ++i)
        if (auto& made = results_[i]; !given[i].defined() && made.there)
          given[i] = zeros(made.shape, {.dtype = made.dtype, .device = made.device});
    try {
      const AutocastState::Guard as_in_forward(state_->autocast);
      auto gradients = backward_(context, given);
      check(gradients, needed);
      return gradients;
    } catch (Error& error) {
      add_name(error, "backward", state_->name);
      throw;
    }
  }

  Difference compare(const NodeRule& later, bool any_size) const override {
    const auto* other = dynamic_cast<const FunctionRule*>(&later);
    if (!other || backward_ != other->backward_ || !same_shapes(*other, any_size) ||
        places_ != other->places_ || state_->needed != other->state_->needed ||
        state_->materializes != other->state_->materializes ||
        state_->autocast != other->state_->autocast)
      return {name + " was called in another way than before"};
    return compare_values(*other->state_);
  }

  std::shared_ptr<NodeRule> with_shapes(const std::function<void(Shape&)>& change) const override {
    auto made = std::make_shared<FunctionRule>(*this);
    for (auto& shape : made->inputs_) change(shape);
    for (auto& result : made->results_) change(result.shape);
    return made;
  }

 private:
  bool same_shapes(const FunctionRule& other, bool any_size) const {
    const auto same = [any_size](const Shape& a, const Shape& b) {
      return same_shape(a, b, any_size);
    };
    return std::equal(inputs_.begin(), inputs_.end(), other.inputs_.begin(), other.inputs_.end(),
                      same) &&
           std::equal(results_.begin(), results_.end(), other.results_.begin(),
                      other.results_.end(), [&](const Made& a, const Made& b) {
                        return same(a.shape, b.shape) && a.dtype == b.dtype &&
                               a.device == b.device && a.there == b.there;
                      });
  }

  Difference compare_values(const FunctionState& later) const {
    for (auto& [key, kept] : state_->values) {
      const auto other = later.values.find(key);
      if (other == later.values.end() || kept.same != other->second.same)
        return {fmt::format("{} saved other values than before", name)};
      if (!kept.same)
        return {
            fmt::format("{} saves \"{}\", which cannot be compared from call to call", name, key)};
      if (!kept.same(kept.value, other->second.value))
        return {
            fmt::format("\"{}\", which {} saves for its backward, had another value than before",
                        key, name),
            true};
    }
    if (state_->values.size() != later.values.size())
      return {fmt::format("{} saved other values than before", name)};
    return {};
  }

  void check(std::vector<Tensor>& gradients, std::span<const bool> needed) const {
    if (gradients.size() != inputs_.size())
      throw AutogradError(fmt::format(
          "backward returned {} gradients, but forward has {} arguments besides the context; "
          "return an undefined tensor for those that have none",
          gradients.size(), inputs_.size()));
    for (size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      if (!needed[i]) {
        gradients[i] = Tensor();
      } else if (gradients[i].shape() != inputs_[i]) {
        throw ShapeError(
            fmt::format("the gradient of argument {} has shape {}, but the argument has shape {}",
                        i, gradients[i].shape(), inputs_[i]));
      }
    }
  }

  static constexpr size_t kInput = ~size_t{0}, kUndefined = ~size_t{1};
  struct Made {
    Shape shape;
    DType dtype = DType::f32;
    Device device;
    bool there = false;
    Made() = default;
    Made(const Shape& shape, DType dtype, Device device)
        : shape(shape), dtype(dtype), device(device), there(true) {}
  };
  std::shared_ptr<FunctionState> state_;
  FunctionBackward backward_;
  std::vector<Shape> inputs_;
  std::vector<Made> results_;
  std::vector<size_t> places_;  // of each saved tensor: a result, or one of these
};

FunctionCall::FunctionCall(std::string_view name, std::vector<Tensor> inputs)
    : inputs_(std::move(inputs)), context_(std::make_shared<FunctionState>()) {
  auto& state = *context_.state_;
  state.name = name;
  for (auto& t : inputs_) {
    versions_.push_back(t.defined() ? t.version() : 0);
    state.needed.push_back(t.defined() && grad_enabled() && t.requires_grad());
  }
  context_.needed_ = state.needed;
}

FunctionCall::~FunctionCall() = default;

void FunctionCall::explain(Error& error) const {
  add_name(error, "forward", context_.state_->name);
}

void FunctionCall::record(std::span<Tensor* const> results, FunctionBackward backward) {
  auto& state = *context_.state_;
  if (std::find(state.needed.begin(), state.needed.end(), true) == state.needed.end()) return;
  for (size_t i = 0; i < inputs_.size(); ++i)
    if (state.needed[i] && inputs_[i].version() != versions_[i])
      throw AutogradError(fmt::format(
          "argument {} of shape {} requires a gradient, and was changed in place, which "
          "is not recorded; change a clone() of it",
          i, inputs_[i].shape()));
  auto made = std::make_unique<FunctionRule>(context_.state_, backward, inputs_, results);
  FunctionRule& rule = *made;
  const auto node = new_node(std::move(made), inputs_, results);
  std::vector<bool> differentiable;
  for (Tensor* t : results)
    differentiable.push_back(t->defined() && is_floating_point(t->dtype()) &&
                             !contains(state.non_differentiable, *t));
  rule.keep(*node, results);
  node->saves = !node->inputs.empty() || !node->outputs.empty();
  // The handles get tensors of their own: what forward returns may be an argument, or somebody
  // else's.
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (!results[i]->defined()) continue;
    Tensor own = results[i]->detach();
    if (differentiable[i]) record_output(node, own, i);
    *results[i] = std::move(own);
  }
}

}  // namespace detail

void Context::save_for_backward(std::vector<Tensor> tensors) { state_->saved = std::move(tensors); }

void Context::mark_non_differentiable(std::vector<Tensor> results) {
  state_->non_differentiable = std::move(results);
}

void Context::set_materialize_grads(bool value) { state_->materializes = value; }

bool Context::needs_input_grad(size_t argument) const {
  if (argument >= needed_.size())
    throw IndexError(fmt::format("needs_input_grad: there is no argument {}; forward has {}",
                                 argument, needed_.size()));
  return needed_[argument];
}

const std::vector<Tensor>& Context::saved_tensors() const { return saved_; }

void Context::set(std::string name, std::any value, detail::SameValue same) {
  state_->values[std::move(name)] = {std::move(value), same};
}

const std::any& Context::find(std::string_view name) const {
  const auto it = state_->values.find(name);
  if (it == state_->values.end())
    throw ValueError(fmt::format("get: nothing was saved under the name \"{}\"", name));
  return it->second.value;
}

void Context::refuse_type(std::string_view name) const {
  throw ValueError(fmt::format("get: what was saved under the name \"{}\" has another type", name));
}

}  // namespace tenon::autograd
