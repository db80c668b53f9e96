#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/graph/match.h>

namespace tenon::graph {

namespace {

std::string text_of(const TraceNode& n) {
  std::string text = n.describe();
  if (const auto path = path_string(n.path); !path.empty()) text += " (in module " + path + ")";
  return text;
}

// A number may be either, and whole numbers of less than 53 bits are no normal doubles.
std::string text_of(const Scalar& number) {
  const double f = number.value.f;
  return std::isnormal(f) ? fmt::format("{}", f) : fmt::format("{}", number.value.i);
}

// What is made of values of the host has one size.
bool same_work(const TraceNode& a, const TraceNode& b, bool any_size) {
  const auto *x = a.work.get(), *y = b.work.get();
  if (!x || !y) return !x && !y;
  const auto same = [&](const HostWork::Form& f, const HostWork::Form& g) {
    return any_size && !x->content
               ? f.dtype == g.dtype && f.device == g.device && f.shape.size() == g.shape.size()
               : f == g;
  };
  return x->name == y->name && x->identity == y->identity && !x->content == !y->content &&
         std::equal(x->forms.begin(), x->forms.end(), y->forms.begin(), y->forms.end(), same) &&
         x->num_reads == y->num_reads && x->num_changes == y->num_changes;
}

// Texts name operators and shapes, and do not tell all that may differ.
std::string other_operator(size_t i, const std::string& before, const std::string& now) {
  if (before != now) return fmt::format("operator {} was {}, and then {}", i, before, now);
  return fmt::format(
      "operator {}, {}, had other attributes than before, or tensors of another memory layout", i,
      before);
}

// A plan that had to leave its cache was made again.
bool same_plan(const TraceNode& a, const TraceNode& b) {
  if (a.plan == b.plan) return true;
  return a.plan && b.plan && !a.plan->key.empty() && a.plan->key == b.plan->key &&
         a.plan->context == b.plan->context;
}

bool same_but_numbers(const Attrs& a, const Attrs& b) {
  const auto same = [](const Attr& x, const Attr& y) {
    if (std::string_view(x.name) != y.name || x.kind != y.kind || x.hint != y.hint) return false;
    if (x.kind == TN_ATTR_STRING) return std::string_view(x.s) == y.s;
    return x.kind == TN_ATTR_BOOL ? x.i == y.i : x.num_ints == y.num_ints;
  };
  return std::equal(a.all().begin(), a.all().end(), b.all().begin(), b.all().end(), same);
}

bool same_but_sizes(const std::optional<TensorDesc>& a, const std::optional<TensorDesc>& b) {
  return a.has_value() == b.has_value() &&
         (!a || (a->dtype == b->dtype && a->shape.size() == b->shape.size()));
}

// The shapes of a flat plan are those of its node.
bool same_but_sizes(const TraceNode& m, const TraceNode& n) {
  if (m.shape.size() != n.shape.size() || m.flat != n.flat || !m.plan != !n.plan) return false;
  if (!m.plan) return true;
  const CallDesc &a = m.plan->call, &b = n.plan->call;
  const auto same = [&](auto& x, auto& y) {
    return m.flat ? x.has_value() == y.has_value() && (!x || x->dtype == y->dtype)
                  : same_but_sizes(x, y);
  };
  return m.plan->context == n.plan->context && a.op == b.op && a.num_scalars == b.num_scalars &&
         a.wanted == b.wanted && a.format == b.format && a.out_input == b.out_input &&
         a.shape.has_value() == b.shape.has_value() &&
         (m.flat || !a.shape || a.shape->size() == b.shape->size()) && same(a.out, b.out) &&
         m.plan->make_contiguous == n.plan->make_contiguous &&
         std::equal(a.inputs.begin(), a.inputs.end(), b.inputs.begin(), b.inputs.end(), same) &&
         same_but_numbers(a.attrs, b.attrs);
}

class Comparison {
 public:
  Comparison(const Trace& a, const Wiring* known, const Trace& b, bool any_size = false)
      : a_(a), known_(known), b_(b), any_size_(any_size) {}

  Match run() {
    if (same_sizes() && same_inputs() && same_nodes() && same_parts() && same_kept()) {
      pin();
      if (!any_size_) compare_numbers();
      compare_contents();
    }
    return std::move(match_);
  }

 private:
  bool differ(std::string difference) {
    match_.difference = std::move(difference);
    return false;
  }

  bool same_node(const TraceNode& m, const TraceNode& n) const {
    if (!same_work(m, n, any_size_)) return false;
    return any_size_ ? same_but_sizes(m, n) : same_plan(m, n) && m.shape == n.shape;
  }

  bool same_sizes() {
    const size_t common = std::min(a_.nodes.size(), b_.nodes.size());
    for (size_t i = 0; i < common; ++i)
      if (!same_node(a_.nodes[i], b_.nodes[i]))
        return differ(other_operator(i, text_of(a_.nodes[i]), text_of(b_.nodes[i])));
    if (a_.nodes.size() != b_.nodes.size())
      return differ(fmt::format("{} operators ran, and then {}", a_.nodes.size(), b_.nodes.size()));
    if (a_.values.size() != b_.values.size() || a_.accesses.size() != b_.accesses.size() ||
        a_.scalars.size() != b_.scalars.size() || a_.parts.size() != b_.parts.size() ||
        a_.results.size() != b_.results.size() || a_.kept.size() != b_.kept.size() ||
        a_.num_draws != b_.num_draws)
      return differ("the operators worked on other tensors than before");
    return true;
  }

  bool same_inputs() {
    if (a_.inputs.size() != b_.inputs.size() || a_.leaves.size() != b_.leaves.size())
      return differ("other leaves got gradients than before");
    for (size_t i = 0; i < a_.inputs.size(); ++i)
      if (a_.inputs[i].argument != b_.inputs[i].argument ||
          a_.inputs[i].leaf != b_.inputs[i].leaf ||
          (a_.inputs[i].extent != b_.inputs[i].extent &&
           !(any_size_ && a_.inputs[i].argument >= 0)))
        return differ(
            "a leaf had a gradient in only one of two calls, or a gradient at another address");
    for (size_t k = 0; known_ && k < a_.inputs.size(); ++k)
      if (known_->pinned[k] && moved(k))
        return differ("an argument was at another address than before");
    for (size_t i = 0; i < a_.leaves.size(); ++i) {
      const Leaf &x = a_.leaves[i], &y = b_.leaves[i];
      if (x.tensor != y.tensor || x.shared != y.shared)
        return differ("other leaves got gradients than before");
      if (x.asked != y.asked || x.replaced != y.replaced ||
          (x.asked && (x.had != y.had || x.shape != y.shape || x.strides != y.strides)))
        return differ("a leaf had a gradient in only one of two calls, or one of another shape");
    }
    for (size_t i = 0; i < a_.inputs.size(); ++i)
      if (a_.inputs[i].is_leaf != b_.inputs[i].is_leaf)
        return differ("an argument is another leaf than before");
    match_.wiring.pinned.resize(b_.inputs.size());
    return true;
  }

  // Whether the access is to memory of the input; an input that is not pinned has forgotten where
  // it was.
  static bool lies_in(const Trace& t, size_t input, const Access& access) {
    const Input& in = t.inputs[input];
    return in.id && t.values[access.value].id == in.id && access.offset >= in.offset &&
           access.offset - in.offset < std::max<uint64_t>(in.extent, 1);
  }

  bool moved(size_t input) const {
    const Input &x = a_.inputs[input], &y = b_.inputs[input];
    return x.id != y.id || x.offset != y.offset;
  }

  bool same_place_in(size_t k, const Access& x, const Access& y) const {
    return any_size_ || x.offset - a_.inputs[k].offset == y.offset - b_.inputs[k].offset;
  }

  // Returns the input through which both accesses went, or -1. Of several in the same memory, it is
  // the largest, because an access may reach farther than into a small one; if sizes differ, the
  // largest that begins there, in which all of the access lies for all sizes. One without elements
  // is taken if there is no other.
  int32_t input_of(const Access& x, const Access& y) const {
    int32_t found = -1;
    std::pair<bool, uint64_t> best;
    for (size_t k = 0; k < a_.inputs.size(); ++k) {
      if (!moved(k) || !lies_in(a_, k, x) || !lies_in(b_, k, y) || !same_place_in(k, x, y))
        continue;
      const Input &in = a_.inputs[k], &now = b_.inputs[k];
      const bool begins = in.extent > 0 && x.offset == in.offset && y.offset == now.offset;
      const std::pair fit(any_size_ && begins, in.extent);
      if (found < 0 || fit > best) found = static_cast<int32_t>(k), best = fit;
    }
    return found;
  }

  bool same_access(const Access& x, const Access& y, int32_t known, int32_t& input) {
    input = -1;
    if (x.value != y.value) return false;
    if (x.value == kAbsent) return true;
    const Value &v = a_.values[x.value], &w = b_.values[y.value];
    if (v.inside != w.inside) return false;
    if (v.inside) return any_size_ || (x.offset == y.offset && v.bytes == w.bytes);
    if (known >= 0) {
      input = known;
      const auto k = static_cast<size_t>(known);
      return lies_in(b_, k, y) && same_place_in(k, x, y);
    }
    if (v.id == w.id && x.offset == y.offset) return true;
    input = known_ ? -1 : input_of(x, y);
    return input >= 0 || (any_size_ && v.id == w.id);
  }

  bool same_nodes() {
    auto& inputs = match_.wiring.input_of_access;
    inputs.resize(b_.accesses.size());
    for (size_t i = 0; i < a_.nodes.size(); ++i) {
      const TraceNode &m = a_.nodes[i], &n = b_.nodes[i];
      const auto other = [&] { return text_of(n) + " worked on another tensor than before"; };
      if (m.num_scalars != n.num_scalars || m.draw != n.draw ||
          m.outputs_hold_values != n.outputs_hold_values || m.num_inputs != n.num_inputs ||
          m.num_outputs != n.num_outputs)
        return differ(other());
      for (size_t k = n.first_access, end = k + n.num_inputs + n.num_outputs; k < end; ++k)
        if (!same_access(a_.accesses[k], b_.accesses[k], known_ ? known_->input_of_access[k] : -1,
                         inputs[k]))
          return differ(other());
    }
    return true;
  }

  bool same_parts() {
    for (size_t i = 0; i < a_.parts.size(); ++i) {
      const Part &x = a_.parts[i], &y = b_.parts[i];
      bool same = x.end_node == y.end_node && !x.again == !y.again &&
                  !x.owner.owner_before(y.owner) && !y.owner.owner_before(x.owner) &&
                  x.binds.size() == y.binds.size() && x.versions.size() == y.versions.size();
      for (size_t k = 0; same && k < x.binds.size(); ++k)
        same = x.binds[k].leaf == y.binds[k].leaf && x.binds[k].kept == y.binds[k].kept;
      for (size_t k = 0; same && k < x.versions.size(); ++k)
        same = x.versions[k].value == y.versions[k].value &&
               x.versions[k].count == y.versions[k].count &&
               x.versions[k].works == y.versions[k].works;
      if (!same) return differ("an optimizer or a gradient took part in another way than before");
    }
    return true;
  }

  bool same_kept() {
    for (size_t i = 0; i < a_.kept.size(); ++i) {
      const Kept &x = a_.kept[i], &y = b_.kept[i];
      const bool same_shape = any_size_ ? x.shape.size() == y.shape.size()
                                        : x.shape == y.shape && x.strides == y.strides;
      if (x.value != y.value || x.dtype != y.dtype || !same_shape ||
          x.requires_grad != y.requires_grad)
        return differ("a result has another shape or history than before");
      if (b_.values[y.value].inside ? !any_size_ && x.offset != y.offset : !same_view(x, y))
        return differ("a result is a view of another tensor than before, or of an argument");
    }
    for (size_t i = 0; i < a_.results.size(); ++i) {
      const Result &x = a_.results[i], &y = b_.results[i];
      if (x.kept != y.kept || x.argument != y.argument || x.outside != y.outside)
        return differ("the function returned another tensor than before");
    }
    return true;
  }

  // A program can make a returned view again if it is of one fixed tensor from outside, but not if
  // it is of an argument, which is another tensor in each call.
  bool same_view(const Kept& x, const Kept& y) const {
    if (a_.values[x.value].id != b_.values[y.value].id || (!any_size_ && x.offset != y.offset))
      return false;
    for (size_t k = 0; k < b_.inputs.size(); ++k)
      if (b_.inputs[k].id == b_.values[y.value].id) return false;
    return true;
  }

  // What was used in place in both calls stays there; so does a leaf that is an argument, and an
  // argument that is returned.
  void pin() {
    auto& wiring = match_.wiring;
    for (size_t k = 0; k < b_.inputs.size(); ++k) {
      if (known_) {
        wiring.pinned[k] = known_->pinned[k];
        continue;
      }
      if (moved(k)) continue;
      for (size_t i = 0; i < b_.accesses.size(); ++i)
        if (b_.accesses[i].value != kAbsent && wiring.input_of_access[i] < 0 &&
            lies_in(b_, k, b_.accesses[i]))
          wiring.pinned[k] = true;
      for (auto& leaf : b_.leaves)
        if (leaf.tensor && leaf.tensor->storage.get() == b_.inputs[k].id) wiring.pinned[k] = true;
      for (auto& result : b_.results)
        if (result.argument >= 0 && result.argument == b_.inputs[k].argument)
          wiring.pinned[k] = true;
    }
  }

  void compare_numbers() {
    for (const TraceNode& n : b_.nodes)
      for (uint32_t k = n.draw >= 0 ? 2 : 0; k < n.num_scalars; ++k) {
        const size_t at = n.first_scalar + k;
        if (std::memcmp(&a_.scalars[at], &b_.scalars[at], sizeof(Scalar)) == 0) continue;
        match_.number_differs = true;
        match_.difference = fmt::format("number {} of {} was {}, and then {}", k, text_of(n),
                                        text_of(a_.scalars[at]), text_of(b_.scalars[at]));
        return;
      }
  }

  // Values that the host gave to tensors, in both calls or in one only.
  void compare_contents() {
    for (size_t i = 0; i < b_.nodes.size() && match_.difference.empty(); ++i) {
      const auto* x = a_.nodes[i].work.get();
      const auto* y = b_.nodes[i].work.get();
      if (!x || !x->content || *x->content == *y->content) continue;
      match_.content_differs = true;
      match_.difference = "a tensor that is made of values of the host had other values before";
      if (const auto path = path_string(b_.nodes[i].path); !path.empty())
        match_.difference += " (in module " + path + ")";
    }
  }

  const Trace& a_;
  const Wiring* const known_;
  const Trace& b_;
  const bool any_size_;
  Match match_;
};

}  // namespace

Match match(const Trace& earlier, const Wiring* known, const Trace& now) {
  return Comparison(earlier, known, now).run();
}

Match match_but_sizes(const Trace& earlier, const Wiring* known, const Trace& now) {
  return Comparison(earlier, known, now, true).run();
}

bool are_told_apart(const Trace& a, const Trace& b) {
  return std::any_of(a.leaves.begin(), a.leaves.end(), [&](const Leaf& leaf) {
    return std::any_of(b.leaves.begin(), b.leaves.end(), [&](const Leaf& other) {
      return leaf.asked && other.asked && leaf.tensor && other.tensor &&
             &*leaf.tensor == &*other.tensor && leaf.had != other.had;
    });
  });
}

}  // namespace tenon::graph
