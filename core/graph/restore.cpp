// How the trace of a file becomes one that programs are made of. Nothing of it is believed: whoever
// wrote the file may want to read or write beside memory.
#include <algorithm>
#include <map>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/dispatch/foreign_call.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/describe.h>
#include <tenon/core/graph/restored_nodes.h>
#include <tenon/core/graph/saved.h>
#include <tenon/core/graph/written_bytes.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/may_share_bytes.h>

namespace tenon::graph {

namespace {

class Restoration {
 public:
  Restoration(const SavedProgram& saved, DeviceContext& context)
      : saved_(saved), context_(context) {}

  RestoredTrace run() {
    trace_.device = context_.device;
    if (saved_.nodes.empty()) throw ValueError("it has no operator");
    add_values();
    add_inputs();
    require(saved_.num_draws <= saved_.nodes.size(), "it draws more numbers than it uses");
    drawn_.resize(saved_.num_draws);
    written_.resize(saved_.values.size());
    begins_as_zeros_.resize(saved_.values.size());
    first_writer_.assign(saved_.values.size(), kNowhere);
    changes_.resize(saved_.values.size());
    for (at_ = 0; at_ < saved_.nodes.size(); ++at_) add_named_node(saved_.nodes[at_]);
    at_ = kNowhere;
    require(std::find(drawn_.begin(), drawn_.end(), false) == drawn_.end(),
            "it draws numbers that it does not use");
    add_results();
    add_zeros();
    add_part();
    trace_.num_draws = saved_.num_draws;
    trace_.num_numbers = static_cast<uint32_t>(saved_.numbers.size());
    return {std::move(trace_), std::move(wiring_)};
  }

 private:
  // Its text names the operator, if it is about one.
  struct Refusal final : ValueError {
    using ValueError::ValueError;
  };
  [[noreturn]] void refuse(const std::string& why) const {
    if (at_ == kNowhere) throw ValueError(why);
    throw Refusal(fmt::format("its operator {} ({}): {}", at_,
                              saved_.nodes[at_].call.op ? saved_.nodes[at_].call.op->name : "?",
                              why));
  }
  void require(bool ok, const char* why) const {
    if (!ok) refuse(why);
  }

  // ---- values

  void add_values() {
    std::vector<bool> inputs(saved_.inputs.size()), tensors(saved_.tensors.size());
    uint64_t inside = 0;
    const auto take = [&](std::vector<bool>& taken, uint32_t index) {
      require(index < taken.size() && !taken[index], "a value is of no input or tensor");
      taken[index] = true;
    };
    for (auto& value : saved_.values) {
      Value& made = trace_.values.emplace_back();
      made.bytes = value.bytes;
      made.device = context_.device;
      if (value.kind == SavedKind::inside) {
        made.inside = true;
        require(value.bytes <= context_.max_bytes() &&
                    !__builtin_add_overflow(inside, value.bytes, &inside) &&
                    inside <= DeviceContext::kMaxAddressable,
                "a value is larger than the memory of the device");
        continue;
      }
      if (value.kind == SavedKind::tensor) {
        take(tensors, value.index);
        made.held = saved_.tensors[value.index].memory;
        require(made.held && made.held->bytes == value.bytes,
                "a value has another size than its tensor");
      } else {
        take(inputs, value.index);
        // So that it is told apart from all others; each run has another.
        made.held = context_.memory->allocate(1);
      }
      made.id = made.held.get();
    }
    require(std::find(inputs.begin(), inputs.end(), false) == inputs.end() &&
                std::find(tensors.begin(), tensors.end(), false) == tensors.end(),
            "an input or tensor has no value");
  }

  void add_inputs() {
    input_values_.resize(saved_.inputs.size());
    for (uint32_t v = 0; v < saved_.values.size(); ++v)
      if (saved_.values[v].kind == SavedKind::input) input_values_[saved_.values[v].index] = v;
    for (size_t k = 0; k < saved_.inputs.size(); ++k) {
      const SavedInput& in = saved_.inputs[k];
      const uint64_t extent = extent_in_memory(in.dtype, in.shape, in.strides);
      require(extent == saved_.values[input_values_[k]].bytes,
              "an input has another size than its value");
      Input& input = trace_.inputs.emplace_back();
      input.argument = static_cast<int32_t>(k);
      input.id = trace_.values[input_values_[k]].id;
      input.held = trace_.values[input_values_[k]].held;
      input.extent = extent;
    }
    wiring_.pinned.resize(saved_.inputs.size());
  }

  // ---- nodes

  // What rules and extents throw says what is wrong, but not of which operator of the file.
  void add_named_node(const SavedNode& saved) {
    try {
      add_node(saved);
    } catch (const Refusal&) {
      throw;
    } catch (const DeviceError&) {
      throw;
    } catch (const Error& error) {
      refuse(error.what());
    }
  }

  void add_node(const SavedNode& saved) {
    require_call(saved);
    TraceNode node;
    node.plan = plan_for(saved);
    node.flat = node.plan->flattened;
    if (node.flat) node.shape = saved.call.shape_of_all();
    node.first_access = static_cast<uint32_t>(trace_.accesses.size());
    node.num_inputs = static_cast<uint32_t>(saved.call.inputs.size());
    node.num_outputs = static_cast<uint32_t>(saved.outputs.size());
    node.first_scalar = static_cast<uint32_t>(trace_.scalars.size());
    node.num_scalars = static_cast<uint32_t>(saved.scalars.size());
    node.outputs_hold_values = saved.outputs_hold_values;
    node.repeated = saved.repeated;
    node.living = saved.living;
    add_accesses(saved);
    add_numbers(saved, node);
    trace_.nodes.push_back(std::move(node));
  }

  void require_call(const SavedNode& saved) const {
    const CallDesc& call = saved.call;
    require(call.op && !call.op->execute, "it is no operator that runs");
    require(!is_made_by_passes(*call.op), "it is never recorded");
    require_scalars(call);
    require(call.op->infer || (call.out && call.inputs.empty()), "it has no result of its own");
    require(saved.accesses.size() == call.inputs.size() + saved.outputs.size() &&
                saved.scalars.size() == call.num_scalars,
            "its inputs, outputs or numbers are incomplete");
    require_sane_attributes(call);
    const TensorDesc* first = nullptr;
    for (auto& t : call.inputs) {
      if (!t) continue;
      extent_in_memory(t->dtype, t->shape, t->strides);
      if (!first) first = &*t;
      require(!call.flat || (t->contiguous && t->shape == first->shape),
              "its tensors do not have one shape");
    }
    if (call.shape) extent_in_memory(DType::f32, *call.shape, Shape::row_major(*call.shape));
    require(!call.flat || ((first || call.out) && (call.op->pointwise || call.op->by_element)),
            "it does not compute element by element");
    if (!call.out) return;
    extent_in_memory(call.out->dtype, call.out->shape, call.out->strides);
    require(!elements_overlap(call.out->shape, call.out->strides),
            "elements of its result overlap");
    require(!call.flat || (call.out->contiguous && (!first || call.out->shape == first->shape)),
            "its tensors do not have one shape");
    require_shape_of_result(call);
    require(saved.outputs.size() == 1 && call.out_input >= -1 &&
                call.out_input < static_cast<int64_t>(call.inputs.size()),
            "its result is none of its inputs");
    if (call.out_input < 0) return;
    const auto& in = call.inputs[static_cast<size_t>(call.out_input)];
    require(in && in->dtype == call.out->dtype && in->shape == call.out->shape &&
                in->strides == call.out->strides,
            "its result is not the input that it changes");
  }

  // Where the result is given, making a plan does not ask the operator for its shape.
  void require_shape_of_result(const CallDesc& call) const {
    if (!call.op->infer) return;
    Infer infer(call);
    call.op->infer(infer);
    require(infer.outputs.size() == 1 && infer.outputs[0].shape == call.out->shape,
            "its result has another shape than its operator computes");
  }

  // Equal calls have one plan.
  Ref<PlanEntry> plan_for(const SavedNode& saved) {
    auto& known = plans_[saved.call.op->name];
    for (auto& [other, plan] : known)
      if (same_node(*other, saved)) return plan;
    auto plan = plans_of(context_).make_apart(saved.call);
    if (!plan->plan || plan->make_contiguous || plan->widened || plan->decomposed || plan->on_cpu)
      throw UnsupportedError(
          fmt::format("its operator {} was recorded on {}, and {} cannot run it in one piece{}. "
                      "Record and save "
                      "the function on this device",
                      plan->describe(), saved_.device, context_.device, plan->refusals));
    bool same = plan->outputs.size() == saved.outputs.size();
    for (size_t i = 0; same && i < saved.outputs.size(); ++i)
      same = same_output(output_of_plan(*plan, saved.call, i), saved.outputs[i]);
    if (!same)
      refuse(
          fmt::format("its results are others than {} makes of its inputs, or lie in another "
                      "way in memory",
                      context_.device));
    known.emplace_back(&saved, plan);
    return plan;
  }

  // ---- memory

  void add_accesses(const SavedNode& saved) {
    const size_t inputs = saved.call.inputs.size();
    for (size_t i = 0; i < inputs; ++i) {
      const auto& t = saved.call.inputs[i];
      const uint64_t bytes = t ? extent_in_memory(t->dtype, t->shape, t->strides) : 0;
      require((saved.accesses[i].value != kAbsent) == t.has_value(),
              "an input without a value, or a value without an input");
      add_access(saved.accesses[i], bytes, t ? size_of(t->dtype) : 1);
      if (!t || !bytes) continue;
      require(was_written(saved.accesses[i].value),
              "it reads a value that no operator before it has computed");
      read(saved.accesses[i], {t->shape, t->strides, size_of(t->dtype)});
    }
    for (size_t i = 0; i < saved.outputs.size(); ++i) add_output(saved, i);
  }

  bool was_written(uint32_t value) const {
    return saved_.values[value].kind != SavedKind::inside || first_writer_[value] != kNowhere;
  }

  // What lies in memory that nothing has written is what others of the process left there.
  void read(const Access& at, const Footprint& tensor) {
    if (trace_.values[at.value].inside && !written_[at.value].cover(at.offset, tensor))
      begins_as_zeros_[at.value] = true;
  }

  void add_access(const Access& access, uint64_t bytes, uint64_t size) {
    if (access.value != kAbsent) {
      require(access.value < saved_.values.size(), "there is no value of such a number");
      const uint64_t all = saved_.values[access.value].bytes;
      require(lies_inside(access.offset, bytes, all), "it leads out of its value");
      require(access.offset % size == 0, "it lies between two elements of its value");
    }
    const bool is_input =
        access.value != kAbsent && saved_.values[access.value].kind == SavedKind::input;
    trace_.accesses.push_back(access);
    wiring_.input_of_access.push_back(
        is_input ? static_cast<int32_t>(saved_.values[access.value].index) : -1);
  }

  void add_output(const SavedNode& saved, size_t i) {
    const size_t inputs = saved.call.inputs.size();
    const SavedOutput& o = saved.outputs[i];
    const Access& access = saved.accesses[inputs + i];
    require((access.value != kAbsent) == (o.kind != OutputKind::absent),
            "a result without a value, or a value without a result");
    if (o.kind == OutputKind::absent) return add_access(access, 0, 1);
    const uint64_t bytes = extent_in_memory(o.dtype, o.shape, o.strides);
    add_access(access, bytes, size_of(o.dtype));
    const size_t changed = o.kind == OutputKind::in_place ? o.input : kNowhere;
    require(changed == kNowhere || (saved.accesses[changed].value == access.value &&
                                    saved.accesses[changed].offset == access.offset),
            "it changes another memory than that of its input");
    // What it reads of the others it may read after it has written, although it checked it before.
    const Footprint written = footprint(saved, inputs + i);
    for (size_t k = 0; bytes && k < inputs + i; ++k)
      require(k == changed || !overlaps(saved, k, access, written),
              "its result lies over another of its tensors");
    Value& value = trace_.values[access.value];
    value.written = true;
    if (first_writer_[access.value] == kNowhere) first_writer_[access.value] = at_;
    if (value.inside)
      written_[access.value].add(access.offset, written);
    else
      ++changes_[access.value];
  }

  static Footprint footprint(const SavedNode& saved, size_t k) {
    if (const size_t inputs = saved.call.inputs.size(); k >= inputs) {
      const SavedOutput& o = saved.outputs[k - inputs];
      return {o.shape, o.strides, size_of(o.dtype)};
    }
    const TensorDesc& t = *saved.call.inputs[k];
    return {t.shape, t.strides, size_of(t.dtype)};
  }
  static bool overlaps(const SavedNode& saved, size_t k, Access at, const Footprint& written) {
    return saved.accesses[k].value == at.value &&
           may_share_bytes(saved.accesses[k].offset, footprint(saved, k), at.offset, written);
  }

  // ---- numbers

  void add_numbers(const SavedNode& saved, TraceNode& node) {
    trace_.scalars.insert(trace_.scalars.end(), saved.scalars.begin(), saved.scalars.end());
    for (auto& living : saved.living)
      require(living.scalar < saved.scalars.size() && living.number < saved_.numbers.size(),
              "there is no number of such a place");
    const bool draws = saved.call.op->draws;
    require(draws == (saved.draw >= 0), "it draws random numbers, or does not, against its kind");
    if (!draws) return;
    require(static_cast<uint64_t>(saved.draw) < drawn_.size() && saved.scalars.size() >= 2,
            "there is no draw of such a number");
    drawn_[static_cast<size_t>(saved.draw)] = true;
    node.draw = saved.draw;
  }

  // ---- the end

  void add_results() {
    for (auto& saved : saved_.results) {
      Result& result = trace_.results.emplace_back();
      if (saved.input >= 0) {
        require(static_cast<size_t>(saved.input) < saved_.inputs.size(),
                "a result is no input of it");
        result.argument = saved.input;
        continue;
      }
      require(saved.value < saved_.values.size(), "a result has no value");
      const SavedValue& value = saved_.values[saved.value];
      require(value.kind != SavedKind::input, "a result is a part of an input");
      const uint64_t bytes = extent_in_memory(saved.dtype, saved.shape, saved.strides);
      require(lies_inside(saved.dtype, saved.shape, saved.strides, saved.offset, value.bytes),
              "a result leads out of its value");
      const uint64_t begin = static_cast<uint64_t>(saved.offset) * size_of(saved.dtype);
      require(bytes == 0 || was_written(saved.value), "a result is computed by no operator");
      read({saved.value, begin}, {saved.shape, saved.strides, size_of(saved.dtype)});
      result.kept = static_cast<int32_t>(trace_.kept.size());
      Kept& kept = trace_.kept.emplace_back();
      kept.value = saved.value;
      kept.dtype = saved.dtype, kept.shape = saved.shape, kept.strides = saved.strides;
      kept.offset = saved.offset;
      kept.written = ~uint64_t{0};
    }
  }

  // Values of which more is read than is written begin as zeros, before their first operator.
  void add_zeros() {
    std::vector<std::vector<uint32_t>> before(saved_.nodes.size());
    for (uint32_t v = 0; v < begins_as_zeros_.size(); ++v)
      if (begins_as_zeros_[v]) before[first_writer_[v]].push_back(v);
    std::vector<TraceNode> nodes;
    for (size_t i = 0; i < before.size(); ++i) {
      for (const uint32_t v : before[i]) nodes.push_back(fill_with_zeros(trace_, v, context_));
      nodes.push_back(std::move(trace_.nodes[i]));
    }
    trace_.nodes = std::move(nodes);
    wiring_.input_of_access.resize(trace_.accesses.size(), -1);
  }

  // The whole program is one part: nothing is left to the host.
  void add_part() {
    Part& part = trace_.parts.emplace_back();
    part.end_node = static_cast<uint32_t>(trace_.nodes.size());
    for (uint32_t v = 0; v < changes_.size(); ++v)
      if (changes_[v]) part.versions.push_back({v, changes_[v]});
  }

  static constexpr size_t kNowhere = ~size_t{0};

  const SavedProgram& saved_;
  DeviceContext& context_;
  Trace trace_;
  Wiring wiring_;
  size_t at_ = kNowhere;  // the node that is made
  std::vector<uint32_t> input_values_;
  std::vector<bool> drawn_, begins_as_zeros_;
  std::vector<WrittenBytes> written_;
  std::vector<size_t> first_writer_;  // of each value, the node
  std::vector<uint64_t> changes_;
  std::map<std::string, std::vector<std::pair<const SavedNode*, Ref<PlanEntry>>>> plans_;
};

}  // namespace

RestoredTrace restore_trace(const SavedProgram& saved, DeviceContext& context) {
  return Restoration(saved, context).run();
}

}  // namespace tenon::graph
