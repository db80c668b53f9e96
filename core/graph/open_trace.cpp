#include <algorithm>
#include <memory>
#include <utility>

#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/graph/describe.h>
#include <tenon/core/graph/open_trace.h>
#include <tenon/core/tensor_impl.h>

namespace tenon::graph {

bool same_strides(const Shape& shape, const Strides& a, const Strides& b) {
  for (size_t d = 0; d < shape.size(); ++d)
    if (shape[d] != 1 && a[d] != b[d]) return false;
  return true;
}

std::vector<TensorDesc> described(std::span<const Tensor* const> arguments) {
  std::vector<TensorDesc> all;
  for (auto* argument : arguments)
    all.push_back(argument->defined() ? describe(impl_of(*argument))
                                      : describe(DType::f32, {}, {}));
  return all;
}

std::vector<uint32_t> first_in_memory(std::span<const Input> inputs) {
  std::vector<uint32_t> first;
  for (uint32_t k = 0; k < inputs.size(); ++k) {
    first.push_back(k);
    for (uint32_t j = 0; j < k && first[k] == k; ++j)
      if (inputs[j].id == inputs[k].id) first[k] = j;
  }
  return first;
}

OpenTrace open_trace(Trace trace, const Wiring& wiring, std::vector<TensorDesc> arguments) {
  OpenTrace open{std::move(trace), {}, std::move(arguments)};
  Trace& t = open.trace;
  const std::vector<uint32_t> first = first_in_memory(t.inputs);
  std::vector<uint64_t> begins(t.inputs.size(), ~uint64_t{0});
  for (size_t k = 0; k < t.inputs.size(); ++k)
    begins[first[k]] = std::min(begins[first[k]], t.inputs[k].offset);
  for (size_t i = 0; i < t.accesses.size(); ++i)
    if (const int32_t k = wiring.input_of_access[i]; k >= 0)
      t.accesses[i].offset -= begins[first[static_cast<size_t>(k)]];
  for (size_t k = 0; k < t.inputs.size(); ++k)
    if (!wiring.pinned[k]) t.inputs[k].offset -= begins[first[k]];
  for (auto& node : t.nodes) {
    auto& opened = open.nodes.emplace_back();
    for (uint32_t k = 0; node.draw >= 0 && k < 2; ++k) t.scalars[node.first_scalar + k] = Scalar();
    if (!node.plan) continue;
    const Shape* const flat = node.flat ? &node.shape : nullptr;
    const CallDesc seen = call_as_seen(*node.plan, flat);
    for (size_t i = 0; i < node.plan->outputs.size(); ++i)
      opened.outputs.push_back(output_of_plan(*node.plan, seen, i));
    opened.call = flat ? seen : node.plan->call;
  }
  return open;
}

void NumberVisitor::bytes(uint64_t& number) {
  auto value = static_cast<int64_t>(number);
  integer(value);
  number = static_cast<uint64_t>(value);
}

void NumberVisitor::list(Shape& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) integer(numbers[i]);
}

void NumberVisitor::shape(Shape& sizes) {
  for (size_t i = 0; i < sizes.size(); ++i) size(sizes[i]);
}

void NumberVisitor::strides(const Shape& shape, Strides& strides) {
  const bool contiguous = strides.size() == shape.size() && is_contiguous(shape, strides);
  for (size_t d = 0; d < strides.size(); ++d)
    contiguous&& shape[d] == 1 ? stride_of_one(strides[d]) : integer(strides[d]);
}

void NumberVisitor::tensor(TensorDesc& tensor) {
  shape(tensor.shape);
  strides(tensor.shape, tensor.strides);
  tensor = describe(tensor.dtype, tensor.shape, tensor.strides);
}

void NumberVisitor::attributes(Attrs& attributes) {
  Attrs visited;
  for (const Attr& a : attributes.all()) {
    if (a.kind == TN_ATTR_INT) {
      int64_t number = a.i;
      integer(number);
      visited.set(a.name, number);
    } else if (a.kind == TN_ATTR_FLOAT) {
      Scalar number(a.f);
      scalar(number);
      visited.set(a.name, number.value.f);
    } else if (a.kind == TN_ATTR_INTS) {
      Shape numbers = a.list();
      list(numbers);
      visited.set(a.name, numbers);
    } else if (a.kind == TN_ATTR_BOOL) {
      visited.set(a.name, a.i != 0);
    } else if (a.hint) {
      visited.set_hint(a.name, a.s);
    } else {
      visited.set(a.name, a.s);
    }
  }
  attributes = visited;
}

void NumberVisitor::visit(OpenTrace::Node& node, TraceNode& of) {
  for (auto& input : node.call.inputs)
    if (input) tensor(*input);
  if (node.call.shape) shape(*node.call.shape);
  if (node.call.out) tensor(*node.call.out);
  attributes(node.call.attrs);
  shape(of.shape);
  for (auto& o : node.outputs) shape(o.shape), strides(o.shape, o.strides);
  if (!of.work) return;
  auto work = std::make_shared<HostWork>(*of.work);
  for (auto& form : work->forms) shape(form.shape), list(form.strides);
  of.work = std::move(work);
}

bool NumberList::is_same(const NumberList& o) const {
  return std::equal(
             integers.begin(), integers.end(), o.integers.begin(), o.integers.end(),
             [](int64_t a, int64_t b) { return a == b || a == kAnyNumber || b == kAnyNumber; }) &&
         std::equal(scalars.begin(), scalars.end(), o.scalars.begin(), o.scalars.end(),
                    [](const Scalar& a, const Scalar& b) { return a.value.i == b.value.i; });
}

void NumberVisitor::visit(OpenTrace& open) {
  Trace& trace = open.trace;
  for (size_t i = 0; i < trace.nodes.size(); ++i) visit(open.nodes[i], trace.nodes[i]);
  for (auto& access : trace.accesses) bytes(access.offset);
  for (auto& input : trace.inputs) bytes(input.offset);
  for (auto& value : trace.values)
    if (value.inside) bytes(value.bytes);
  for (auto& kept : trace.kept) {
    shape(kept.shape), list(kept.strides), integer(kept.offset);
    bytes(kept.written);
  }
  for (auto& argument : open.arguments) tensor(argument);
  for (auto& number : trace.scalars) scalar(number);
}

}  // namespace tenon::graph
