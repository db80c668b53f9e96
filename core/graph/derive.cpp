// What a call does that follows from calls of other sizes.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/graph/describe.h>
#include <tenon/core/graph/dynamic.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

class DynamicProgram::Following final : public NumberVisitor {
 public:
  Following(const DynamicProgram& of, std::span<const int64_t> values) : of_(of), values_(values) {}

  void integer(int64_t& number) override {
    const size_t at = integers_++;
    if (next_integer_ == of_.integers_.size() || of_.integers_[next_integer_].at != at) return;
    const auto followed = follow(of_.integers_[next_integer_++].law, values_);
    fits_ = fits_ && followed && *followed >= 0;
    if (fits_) number = *followed;
  }
  // Operators often do something else for sizes of 0 and 1, and views become copies or the other
  // way round.
  void size(int64_t& number) override {
    const size_t before = next_integer_;
    integer(number);
    if (next_integer_ != before && of_.integers_[before].law.monomial != kConstant)
      fits_ = fits_ && number >= 2;
  }
  void stride_of_one(int64_t& number) override { integer(number); }
  void scalar(Scalar& number) override {
    const size_t at = scalars_++;
    if (next_scalar_ == of_.scalars_.size() || of_.scalars_[next_scalar_].at != at) return;
    const ScalarAt& law = of_.scalars_[next_scalar_++];
    if (!law.is_real) {
      const auto followed = follow(law.integer, values_);
      fits_ = fits_ && followed;
      number = Scalar::integer(followed.value_or(0));
    } else {
      const auto followed = follow(law.real, values_);
      fits_ = fits_ && followed;
      number = Scalar(followed.value_or(0));
    }
  }
  bool fits() const { return fits_; }

 private:
  const DynamicProgram& of_;
  const std::span<const int64_t> values_;
  size_t integers_ = 0, next_integer_ = 0, scalars_ = 0, next_scalar_ = 0;
  bool fits_ = true;
};

// Whether the laws say what a call did, or that it does not follow from others.
bool DynamicProgram::agrees(size_t call) const {
  const auto values = symbols_.values(calls_[call]);
  if (!values) return true;
  OpenTrace open = first_;
  const std::shared_ptr<History> history = history_ ? history_->copy() : nullptr;
  Following following(*this, *values);
  following.visit(open);
  if (history) history->visit(following);
  if (!following.fits()) return true;
  NumberList expected;
  expected.visit(open);
  if (history) history->visit(expected);
  return expected.is_same(numbers_[call]);
}

namespace {

// Why the plan that was made for other sizes cannot take the place of the one that is known.
const char* fault_of(const PlanEntry& made, const PlanEntry& known, const OpenTrace::Node& node,
                     const CallDesc& seen) {
  if (!made.plan || made.make_contiguous != known.make_contiguous ||
      made.flattened != known.flattened || made.copy_format != known.copy_format)
    return "is computed in another way";
  if (made.outputs.size() != node.outputs.size()) return "has other results";
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const SavedOutput o = output_of_plan(made, seen, i), &expected = node.outputs[i];
    if (o.kind != expected.kind || o.input != expected.input || o.dtype != expected.dtype ||
        o.shape != expected.shape || !same_strides(o.shape, o.strides, expected.strides))
      return "makes results of other shapes, or elsewhere in memory";
  }
  return nullptr;
}

bool same(std::span<const TensorDesc> a, std::span<const TensorDesc> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](auto& x, auto& y) {
    return x.shape == y.shape && same_strides(x.shape, x.strides, y.strides);
  });
}

// How many bytes an input or output of a node spans; inputs come first.
uint64_t extent_of(const TraceNode& node, const OpenTrace::Node& opened, const CallDesc& seen,
                   uint32_t i) {
  if (node.work) {
    const HostWork::Form& form = node.work->form_of(i);
    return extent_in_memory(form.dtype, form.shape, form.strides);
  }
  if (i >= node.num_inputs) {
    const SavedOutput& o = opened.outputs[i - node.num_inputs];
    return extent_in_memory(o.dtype, o.shape, o.strides);
  }
  const auto& t = seen.inputs[i];
  return t ? extent_in_memory(t->dtype, t->shape, t->strides) : 0;
}

// Whether all that a node reads and writes lies in its values.
bool stays_inside(const Trace& trace, const Wiring& wiring, const TraceNode& node,
                  const OpenTrace::Node& opened, const CallDesc& seen) {
  for (uint32_t i = 0; i < node.num_inputs + node.num_outputs; ++i) {
    const Access& access = trace.accesses[node.first_access + i];
    if (access.value == kAbsent) continue;
    const int32_t k = wiring.input_of_access[node.first_access + i];
    const Input* const input = k >= 0 ? &trace.inputs[static_cast<size_t>(k)] : nullptr;
    const uint64_t all = input ? input->extent : trace.values[access.value].bytes,
                   begin = access.offset - (input ? input->offset : 0);
    if (!lies_inside(begin, extent_of(node, opened, seen, i), all)) return false;
  }
  return true;
}

}  // namespace

// Gives each input of the trace the extent of its argument and new memory as its identity, because
// arguments have other memory in each call. Inputs that shared memory in the other calls have to
// share it here, too. Returns what is wrong with the arguments; null if nothing is.
const char* DynamicProgram::take_inputs(Trace& trace,
                                        std::span<const Tensor* const> arguments) const {
  const auto tensor_of = [&](const Input& input) -> const TensorImpl& {
    return impl_of(*arguments[static_cast<size_t>(input.argument)]);
  };
  const auto begin_of = [](const TensorImpl& t) {
    return static_cast<uint64_t>(t.offset) * size_of(t.dtype);
  };
  for (size_t k = 0; k < trace.inputs.size(); ++k) {
    Input& input = trace.inputs[k];
    if (input.argument < 0 || wiring_.pinned[k]) continue;
    const TensorImpl& t = tensor_of(input);
    input.extent = extent_in_memory(t.dtype, t.shape, t.strides);
    const Input& like = trace.inputs[first_in_memory_[k]];
    if (&like == &input) continue;
    const TensorImpl& other = tensor_of(like);
    if (t.storage != other.storage || begin_of(t) - begin_of(other) != input.offset - like.offset)
      return "arguments do not share memory as they did";
  }
  for (size_t k = 0; k < trace.inputs.size(); ++k) {
    if (wiring_.pinned[k]) continue;
    Input& input = trace.inputs[k];
    const uint32_t first = first_in_memory_[k];
    input.held = first == k ? ProgramRef<Storage>(context_of(trace.device).memory->allocate(1))
                            : trace.inputs[first].held;
    input.id = input.held.get();
    for (size_t i = 0; i < trace.accesses.size(); ++i) {
      if (wiring_.input_of_access[i] != static_cast<int32_t>(k)) continue;
      Value& value = trace.values[trace.accesses[i].value];
      value.held = input.held;
      value.id = input.id;
    }
  }
  return nullptr;
}

// Returns what is wrong with the node; null if nothing is.
const char* DynamicProgram::plan_again(Trace& trace, size_t at,
                                       const OpenTrace::Node& opened) const {
  TraceNode& node = trace.nodes[at];
  CallDesc seen;
  if (node.plan) {
    const auto known = std::exchange(node.plan, plans_of(*node.plan->context).find(opened.call));
    seen = call_as_seen(*node.plan, node.flat ? &node.shape : nullptr);
    if (const char* fault = fault_of(*node.plan, *known, opened, seen)) return fault;
  }
  return stays_inside(trace, wiring_, node, opened, seen) ? nullptr : "leads out of its memory";
}

// Returns what keeps the call from following from the others; null if it does.
const char* DynamicProgram::derive(OpenTrace& open, History* history,
                                   std::span<const int64_t> values,
                                   std::span<const Tensor* const> arguments) const {
  Following following(*this, values);
  following.visit(open);
  if (history) history->visit(following);
  if (!following.fits()) return "a size, or a place in memory, comes out as none that follows";
  if (!same(open.arguments, described(arguments)))
    return "an argument has another memory layout than in the recorded calls";
  open.trace.inside_bytes = 0;
  if (const char* fault = take_inputs(open.trace, arguments)) return fault;
  for (auto& kept : open.trace.kept)
    if (!lies_inside(kept.dtype, kept.shape, kept.strides, kept.offset,
                     open.trace.values[kept.value].bytes))
      return "a result extends beyond its memory";
  return history ? history->fault(arguments, open.trace) : nullptr;
}

std::optional<DynamicProgram::Call> DynamicProgram::derive(std::span<const Tensor* const> arguments,
                                                           const Sizes& sizes,
                                                           std::string& why) const {
  const auto values = symbols_.values(sizes);
  if (!values || !selection_.has(sizes)) {
    why = values ? "no call whose size leaves the same remainder tells what it does"
                 : "sizes differ that were equal in all calls before";
    return std::nullopt;
  }
  OpenTrace open = first_;
  std::shared_ptr<History> history = history_ ? history_->copy() : nullptr;
  if (history) history->join(*history_, sizes);
  try {
    if (const char* fault = derive(open, history.get(), *values, arguments)) {
      why = fault;
      return std::nullopt;
    }
    for (size_t i = 0; i < open.trace.nodes.size(); ++i)
      if (const char* fault = plan_again(open.trace, i, open.nodes[i])) {
        why = fmt::format("operator {}, {}, {}", i, open.trace.nodes[i].describe(), fault);
        return std::nullopt;
      }
  } catch (const DeviceError&) {
    throw;
  } catch (const Error& error) {
    why = error.what();
    return std::nullopt;
  }
  return Call{std::move(open.trace), wiring_, std::move(history)};
}

}  // namespace tenon::graph
