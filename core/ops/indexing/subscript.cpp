// Subscripts (core/ops/subscript.h).
#include <algorithm>

#include <tenon/core/format.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/rules.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/subscript.h>

namespace tenon {

namespace {

bool is_mask(const Tensor& t) { return dtype_of(t) == DType::boolean || dtype_of(t) == DType::u8; }

// Dimensions of x that a subscript takes, which has the number `argument`.
int64_t taken_by(const Subscript& s, size_t argument) {
  if (auto* t = std::get_if<Tensor>(&s.value())) {
    require_tensor("subscript", *t, "subscripts", argument);
    return is_mask(*t) ? t->dim() : 1;
  }
  return std::holds_alternative<int64_t>(s.value()) || std::holds_alternative<Slice>(s.value());
}

// The number of dimensions that an Ellipsis stands for.
int64_t left_over(const Tensor& x, std::span<const Subscript> subscripts) {
  int64_t taken = 0, ellipses = 0;
  size_t argument = 0;
  for (auto& s : subscripts) {
    taken += taken_by(s, argument++);
    ellipses += std::holds_alternative<EllipsisType>(s.value());
  }
  if (ellipses > 1)
    throw ValueError("subscript: Ellipsis stands for all dimensions that are left; give it once");
  if (taken > x.dim())
    throw IndexError(fmt::format("subscript: subscripts for {} dimensions of a tensor of shape {}",
                                 taken, x.shape()));
  return x.dim() - taken;
}

// What subscripts amount to: a view, and indices of its dimensions.
struct Chosen {
  Tensor base;
  std::vector<Tensor> indices;
};

class Choice {
 public:
  Choice(const Tensor& x, int64_t rest) : rest_(rest) { chosen.base = x; }

  void operator()(int64_t at) { chosen.base = select(chosen.base, dim_, at); }
  void operator()(const Slice& s) {
    const int64_t size = chosen.base.size(dim_);
    chosen.base = slice(chosen.base, dim_, s.start.value_or(0), s.stop.value_or(size), s.step);
    ++dim_;
  }
  void operator()(NoneType) { chosen.base = unsqueeze(chosen.base, dim_++); }
  void operator()(EllipsisType) { dim_ += rest_; }
  // A mask is one index for several dimensions.
  void operator()(const Tensor& t) {
    for (; indexed_ < dim_; ++indexed_) chosen.indices.emplace_back();
    chosen.indices.push_back(t);
    dim_ += is_mask(t) ? t.dim() : 1;
    indexed_ = dim_;
  }

  Chosen chosen;

 private:
  int64_t rest_, dim_ = 0, indexed_ = 0;
};

Chosen chosen_by(const Tensor& x, std::span<const Subscript> subscripts) try {
  require_tensor("subscript", x);
  Choice choice(x, left_over(x, subscripts));
  for (auto& s : subscripts) std::visit(choice, s.value());
  return choice.chosen;
} catch (const Error&) {
  rethrow_in("subscript");
}

// Returns the values in x's dtype. The conversion is recorded, so that their gradient is not lost.
Tensor converted(const Tensor& values, const Tensor& x) {
  require_tensor("subscript", values, "values");
  return values.to(dtype_of(x));
}

// The only index, if it is a mask, in a shape that broadcasts to that of the base.
Tensor only_mask(const Tensor& base, const std::vector<Tensor>& indices) {
  if (!std::all_of(indices.begin(), indices.end() - 1, [](auto& t) { return !t.defined(); }))
    return {};
  const Tensor& mask = indices.back();
  if (dtype_of(mask) != DType::boolean || mask.dim() == 0) return {};
  const auto first = static_cast<int64_t>(indices.size()) - 1;
  Shape shape = mask.shape();
  for (int64_t d = 0; d < mask.dim(); ++d)
    if (shape[d] != base.size(first + d)) return {};  // index_put_ says what is wrong
  while (first + static_cast<int64_t>(shape.size()) < base.dim()) shape.push_back(1);
  return mask.reshape(shape);
}

}  // namespace

Part::Part(const Tensor& x, std::span<const Subscript> subscripts)
    : Tensor(chosen_by(x, subscripts).base) {}

Part& Part::operator=(const Tensor& values) && {
  Tensor all = values;
  // As in PyTorch, dimensions of size 1 in front are dropped.
  require_tensor("subscript", all);
  while (all.dim() > dim() && all.size(0) == 1) all = tenon::squeeze(all, 0);
  copy_(all);
  return *this;
}
Part& Part::operator=(Number value) && {
  fill_(value);
  return *this;
}

Selection::Selection(const Tensor& x, std::span<const Subscript> subscripts) {
  Chosen chosen = chosen_by(x, subscripts);
  base_ = std::move(chosen.base);
  indices_ = std::move(chosen.indices);
}

Tensor Selection::get() const { return index(base_, indices_); }

Selection& Selection::operator=(const Tensor& values) && {
  base_.index_put_(indices_, converted(values, base_));
  return *this;
}

Selection& Selection::operator=(Number value) && {
  require_held("subscript", dtype_of(base_), value);
  if (const Tensor mask = only_mask(base_, indices_); mask.defined()) {
    if (wants_gradient(base_)) {
      base_.masked_fill_(mask, value);
      return *this;
    }
    require_mutable("subscript", base_);
    const NoGrad guard;
    base_.copy_(masked_fill(base_, mask, value));
    return *this;
  }
  return std::move(*this) = constant(value, dtype_of(base_), base_.device());
}

// Each of these reads the part, computes, and writes the result back.
Part& Part::operator+=(const Tensor& values) { return std::move(*this) = *this + values; }
Part& Part::operator-=(const Tensor& values) { return std::move(*this) = *this - values; }
Part& Part::operator*=(const Tensor& values) { return std::move(*this) = *this * values; }
Part& Part::operator/=(const Tensor& values) { return std::move(*this) = *this / values; }
Part& Part::operator+=(Number value) { return std::move(*this) = *this + value; }
Part& Part::operator-=(Number value) { return std::move(*this) = *this - value; }
Part& Part::operator*=(Number value) { return std::move(*this) = *this * value; }
Part& Part::operator/=(Number value) { return std::move(*this) = *this / value; }

Selection& Selection::operator+=(const Tensor& values) { return std::move(*this) = get() + values; }
Selection& Selection::operator-=(const Tensor& values) { return std::move(*this) = get() - values; }
Selection& Selection::operator*=(const Tensor& values) { return std::move(*this) = get() * values; }
Selection& Selection::operator/=(const Tensor& values) { return std::move(*this) = get() / values; }
Selection& Selection::operator+=(Number value) { return std::move(*this) = get() + value; }
Selection& Selection::operator-=(Number value) { return std::move(*this) = get() - value; }
Selection& Selection::operator*=(Number value) { return std::move(*this) = get() * value; }
Selection& Selection::operator/=(Number value) { return std::move(*this) = get() / value; }

}  // namespace tenon
