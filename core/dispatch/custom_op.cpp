#include <algorithm>
#include <mutex>
#include <set>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/module_path.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/dispatch/custom_op.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/tensor_impl.h>

namespace tenon::custom {

// ---- attributes ----

Attributes& Attributes::set_value(std::string_view name, Value value) {
  values_.insert_or_assign(std::string(name), std::move(value));
  if (values_.size() > 8)
    throw ValueError(
        fmt::format("the attribute \"{}\" is one more than the eight that a call of an "
                    "operator may have; pass numbers in a list, or in a tensor",
                    name));
  return *this;
}

namespace {

template <class T>
const T& attribute(const Attributes& attributes, std::string_view name, const char* type) {
  const auto it = attributes.all().find(name);
  const T* value = it == attributes.all().end() ? nullptr : std::get_if<T>(&it->second);
  if (!value)
    throw ValueError(fmt::format("the call has no attribute \"{}\" that is {}", name, type));
  return *value;
}

// Names and texts live as long as the plans that mention them, which is for ever.
const char* interned(const std::string& text) {
  struct Texts {
    ForkMutex mutex{ForkOrder::tables};
    std::set<std::string, std::less<>> all;
  };
  static constinit NeverDestroyed<Texts> kept;
  Texts& texts = kept.get();
  std::lock_guard lock(texts.mutex);
  return texts.all.insert(text).first->c_str();
}

// As plugins get them.
Attrs abi_attributes(const Attributes& attributes) {
  Attrs attrs;
  for (auto& [name, value] : attributes.all()) {
    const char* key = interned(name);
    if (auto* text = std::get_if<std::string>(&value))
      attrs.set(key, interned(*text));
    else if (auto* truth = std::get_if<bool>(&value))
      attrs.set(key, *truth);
    else if (auto* whole = std::get_if<int64_t>(&value))
      attrs.set(key, *whole);
    else if (auto* number = std::get_if<double>(&value))
      attrs.set(key, *number);
    else
      attrs.set(key, std::get<Shape>(value));
  }
  return attrs;
}

Attributes from_abi(const Attrs& attrs) {
  Attributes attributes;
  for (auto& a : attrs.all()) {
    if (a.kind == TN_ATTR_STRING)
      attributes.set(a.name, a.s);
    else if (a.kind == TN_ATTR_BOOL)
      attributes.set(a.name, a.i != 0);
    else if (a.kind == TN_ATTR_INT)
      attributes.set(a.name, a.i);
    else if (a.kind == TN_ATTR_FLOAT)
      attributes.set(a.name, a.f);
    else
      attributes.set(a.name, a.list());
  }
  return attributes;
}

template <class Items>
const auto& item_at(const Items& items, size_t i, const char* name) {
  if (i >= items.size())
    throw ValueError(fmt::format("{}: argument {} is missing; the call has {} tensors{}", name, i,
                                 items.size(), path_suffix()));
  return items[i];
}

}  // namespace

int64_t Attributes::get_int(std::string_view name) const {
  return attribute<int64_t>(*this, name, "an integer");
}
double Attributes::get_float(std::string_view name) const {
  return attribute<double>(*this, name, "a floating number");
}
bool Attributes::get_bool(std::string_view name) const {
  return attribute<bool>(*this, name, "a bool");
}
std::string Attributes::get_string(std::string_view name) const {
  return attribute<std::string>(*this, name, "a text");
}
Shape Attributes::get_list(std::string_view name) const {
  return attribute<Shape>(*this, name, "a list of integers");
}

// ---- what rules see ----

const TensorMeta& InferContext::input(size_t i) const { return item_at(inputs, i, name); }
const Tensor& CallContext::input(size_t i) const { return item_at(inputs, i, name); }
void InferContext::shape_error(const std::string& message) const {
  throw ShapeError(fmt::format("{}: {}{}", name, message, path_suffix()));
}
void InferContext::dtype_error(const std::string& message) const {
  throw DTypeError(fmt::format("{}: {}{}", name, message, path_suffix()));
}

// ---- the operator ----

struct Op::Registered : tenon::Op {
  Registered(const OpSpec& spec, Definition&& d)
      : tenon::Op(spec, Unlisted()), definition(std::move(d)) {}

  static AutocastRule rule_of(CastInputs inputs) {
    static_assert(static_cast<uint8_t>(CastInputs::widest) ==
                  static_cast<uint8_t>(AutocastRule::widest));
    return static_cast<AutocastRule>(inputs);
  }

  static const Definition& of(const tenon::Op& op) {
    return static_cast<const Registered&>(op).definition;
  }

  static std::vector<TensorMeta> outputs_of(const Definition& d, std::span<const TensorMeta> inputs,
                                            const Attributes& attributes) {
    auto outputs = d.infer({inputs, attributes, d.name.c_str()});
    if (outputs.empty() || outputs.size() > 32 || (d.pointwise && outputs.size() != 1))
      throw ValueError(fmt::format(
          "{}: the shape rule returned {} outputs, but there have to be {}", d.name, outputs.size(),
          d.pointwise ? "exactly 1, because it is pointwise" : "1 to 32"));
    return outputs;
  }

  // Throws what the shape rule says of these inputs.
  static void require_fitting(const Definition& d, const std::vector<Tensor>& inputs,
                              const Attributes& attributes) {
    outputs_of(d, metas_of(inputs), attributes);
  }

  static std::vector<TensorMeta> metas_of(const std::vector<Tensor>& inputs) {
    std::vector<TensorMeta> metas;
    for (auto& t : inputs) metas.push_back({t.dtype(), t.shape()});
    return metas;
  }

  static void run_infer(Infer& infer) {
    std::vector<TensorMeta> inputs;
    for (size_t i = 0; i < infer.size(); ++i)
      inputs.push_back({infer.in(i).dtype, infer.in(i).shape});
    for (auto& made : outputs_of(of(infer.op), inputs, from_abi(infer.attrs)))
      infer.output(made.dtype, made.shape);
  }

  static void run_decompose(const Call& call, Outputs& outputs) {
    const Definition& d = of(call.op);
    const Attributes attributes = from_abi(call.attrs);
    std::vector<Tensor> inputs;
    for (auto* t : call.inputs) inputs.push_back(*t);
    const auto promised = outputs_of(d, metas_of(inputs), attributes);
    auto made = d.decompose({inputs, attributes, d.name.c_str()});
    if (made.size() != promised.size())
      throw ValueError(
          fmt::format("{}: the decomposition made {} tensors, but the shape rule says {}", d.name,
                      made.size(), promised.size()));
    for (size_t i = 0; i < made.size(); ++i) {
      auto& t = checked_impl(made[i], d.name.c_str());
      if (t.shape != promised[i].shape || t.dtype != promised[i].dtype)
        throw ShapeError(fmt::format(
            "{}: the decomposition made output {} as {} {}, but the shape rule says {} {}", d.name,
            i, t.dtype, t.shape, promised[i].dtype, promised[i].shape));
    }
    // A result is recorded, so it cannot be an input, as that of `x.to(f32)` may be, or another
    // result.
    for (size_t i = 0; i < made.size(); ++i) {
      const auto same = [&](const Tensor& t) { return &impl_of(t) == &impl_of(made[i]); };
      if (std::any_of(inputs.begin(), inputs.end(), same) ||
          std::any_of(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(i), same))
        made[i] = made[i].clone();
    }
    outputs = std::move(made);
  }

  static void run_gradient(const GradContext& c, Grads gradients) {
    const Definition& d = of(c.op);
    const Attributes attributes = from_abi(c.attrs);
    // Where nothing is saved, there is no list: a rule that reads what it forgot to save gets an
    // undefined tensor, which operators refuse.
    std::vector<Tensor> inputs(c.inputs.begin(), c.inputs.end()),
        outputs(c.outputs.begin(), c.outputs.end());
    inputs.resize(gradients.size());
    outputs.resize(c.grads.size());
    auto made = d.gradient({c.grads, inputs, outputs, c.needed, attributes});
    if (made.size() != gradients.size())
      throw AutogradError(fmt::format(
          "{}: the gradient rule returned {} tensors for {} inputs; return an undefined "
          "tensor for those that have no gradient{}",
          d.name, made.size(), gradients.size(), path_suffix()));
    for (size_t i = 0; i < made.size(); ++i) {
      if (!c.needs(i) || !made[i].defined()) continue;
      if (d.pointwise && c.grads[0].defined() && made[i].shape() == c.grads[0].shape())
        made[i] = sum_to(made[i], c.input_shape(i));
      if (made[i].shape() != c.input_shape(i))
        throw ShapeError(
            fmt::format("{}: the gradient of input {} has shape {}, but the input {}{}", d.name, i,
                        made[i].shape(), c.input_shape(i), path_suffix()));
      gradients[i] = std::move(made[i]);
    }
  }

  const Definition definition;
};

namespace {

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void require_name(const std::string& name) {
  const size_t colons = name.find("::");
  const std::string_view text = name;
  if (name.size() > 64 || colons == name.npos || !is_word(text.substr(0, colons)) ||
      !is_word(text.substr(colons + 2)))
    throw ValueError(
        fmt::format("custom::Op: \"{}\" is no name of an operator; it has the form "
                    "\"library::operator\", of a-z, 0-9 and _, at most 64 characters",
                    name));
}

uint32_t bits_of(const std::string& name, const std::vector<size_t>& numbers) {
  uint32_t bits = 0;
  for (size_t number : numbers) {
    if (number >= 32)
      throw ValueError(fmt::format(
          "custom::Op: {} saves number {}, but only the first 32 inputs and outputs can be saved",
          name, number));
    bits |= 1u << number;
  }
  return bits;
}

// The operators of the process by their names. They are never destroyed, and found here by tools
// that look for lost memory.
struct Operators {
  ForkMutex mutex{ForkOrder::tables};
  std::map<std::string, const tenon::Op*> all;
};
Operators& operators() {
  static constinit NeverDestroyed<Operators> kept;
  return kept.get();
}

}  // namespace

Op::Op(Definition d) {
  require_name(d.name);
  if (!d.infer) throw ValueError(fmt::format("custom::Op: {} has no shape rule (infer)", d.name));
  OpSpec spec{.name = interned(d.name)};
  spec.infer = Registered::run_infer;
  spec.gradient = d.gradient ? Registered::run_gradient : nullptr;
  spec.decompose = d.decompose ? Registered::run_decompose : nullptr;
  spec.saves_inputs = bits_of(d.name, d.saves_inputs);
  spec.saves_outputs = bits_of(d.name, d.saves_outputs);
  spec.differentiable = ~0u;
  spec.pointwise = d.pointwise;
  spec.autocast = Registered::rule_of(d.autocast);
  Operators& known = operators();
  std::lock_guard lock(known.mutex);
  const auto [place, fresh] = known.all.try_emplace(d.name);
  if (!fresh)
    throw ValueError(
        fmt::format("custom::Op: there is an operator \"{}\" already; each is defined once in a "
                    "process, in one library that all who need it link",
                    d.name));
  place->second = op_ = new Registered(spec, std::move(d));
}

const std::string& Op::name() const { return op_->definition.name; }

std::vector<Tensor> Op::call(std::vector<Tensor> inputs, const Attributes& attributes) const {
  std::vector<const Tensor*> pointers;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined())
      throw ValueError(
          fmt::format("{}: argument {} is an undefined tensor{}", name(), i, path_suffix()));
    pointers.push_back(&inputs[i]);
  }
  // Calls of one number of elements share a plan, which knows nothing of their shapes.
  if (op_->pointwise) Registered::require_fitting(op_->definition, inputs, attributes);
  return run_all({*op_, pointers, abi_attributes(attributes)});
}

Tensor Op::operator()(std::vector<Tensor> inputs, const Attributes& attributes) const {
  auto outputs = call(std::move(inputs), attributes);
  if (outputs.size() != 1)
    throw ValueError(fmt::format("{}: it has {} outputs; use call()", name(), outputs.size()));
  return std::move(outputs[0]);
}

}  // namespace tenon::custom
