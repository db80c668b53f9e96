#include <nlohmann/json.hpp>

#include <tenon/core/error.h>
#include <tenon/serialization/program/program_text.h>

namespace tenon {

namespace {

using graph::SavedKind;
using nlohmann::json;

json listed(const Shape& shape) { return std::vector<int64_t>(shape.begin(), shape.end()); }

json tensor_json(DType dtype, const Shape& shape, const Strides& strides) {
  return json::array({name_of(dtype), listed(shape), listed(strides)});
}
json tensor_json(const std::optional<TensorDesc>& t) {
  return t ? tensor_json(t->dtype, t->shape, t->strides) : json();
}

// Numbers of floating point are written as their bits, because JSON has no infinities and NaNs.
json bits_of(double value) {
  Scalar bits(value);
  return bits.value.i;
}

json attr_json(const Attr& a) {
  json value;
  const char* kind = nullptr;
  switch (a.kind) {
    case TN_ATTR_INT:
      kind = "int", value = a.i;
      break;
    case TN_ATTR_BOOL:
      kind = "bool", value = a.i != 0;
      break;
    case TN_ATTR_FLOAT:
      kind = "float", value = bits_of(a.f);
      break;
    case TN_ATTR_STRING:
      kind = a.hint ? "hint" : "text", value = a.s;
      break;
    case TN_ATTR_INTS:
      kind = "list", value = listed(a.list());
      break;
  }
  if (!kind)
    throw CheckpointError("an attribute of an operator is of a kind that no file can hold");
  return json::array({a.name, kind, std::move(value)});
}

json access_json(const graph::Access& access) {
  return access.value == graph::kAbsent ? json() : json::array({access.value, access.offset});
}

json node_json(const graph::SavedNode& node) {
  const CallDesc& call = node.call;
  json attrs = json::array(), inputs = json::array(), outputs = json::array();
  json accesses = json::array(), scalars = json::array(), living = json::array();
  for (auto& a : call.attrs.all()) attrs.push_back(attr_json(a));
  for (auto& t : call.inputs) inputs.push_back(tensor_json(t));
  for (auto& o : node.outputs)
    outputs.push_back(o.kind == OutputKind::absent ? json()
                      : o.kind == OutputKind::in_place
                          ? json::array({o.input, tensor_json(o.dtype, o.shape, o.strides)})
                          : json::array({-1, tensor_json(o.dtype, o.shape, o.strides)}));
  for (auto& access : node.accesses) accesses.push_back(access_json(access));
  for (auto& scalar : node.scalars) scalars.push_back(scalar.value.i);
  for (auto& l : node.living) living.push_back(json::array({l.scalar, l.number}));
  json object = {{"op", call.op->name},
                 {"attributes", std::move(attrs)},
                 {"inputs", std::move(inputs)},
                 {"outputs", std::move(outputs)},
                 {"at", std::move(accesses)},
                 {"scalars", std::move(scalars)},
                 {"wanted", call.wanted},
                 {"format", static_cast<int>(call.format)},
                 {"flat", call.flat}};
  if (!living.empty()) object["numbers"] = std::move(living);
  if (call.shape) object["shape"] = listed(*call.shape);
  if (call.out) object["into"] = json::array({call.out_input, tensor_json(call.out)});
  if (node.draw >= 0) object["draw"] = node.draw;
  if (node.outputs_hold_values) object["holds_values"] = true;
  if (!node.path.empty()) object["module"] = node.path;
  return object;
}

json value_json(const graph::SavedValue& value) {
  const char* const kind = value.kind == SavedKind::inside  ? "inside"
                           : value.kind == SavedKind::input ? "input"
                                                            : "tensor";
  return json::array({kind, value.index, value.bytes});
}

template <class T, class F>
json list_of(const std::vector<T>& items, F&& each) {
  json list = json::array();
  for (auto& item : items) list.push_back(each(item));
  return list;
}

}  // namespace

std::string program_to_json(const graph::SavedProgram& p) {
  const json object = {
      {"program_version", kProgramVersion},
      {"device", p.device.str()},
      {"random", json::array({p.random.seed, p.random.offset})},
      {"draws", p.num_draws},
      {"values", list_of(p.values, value_json)},
      {"inputs", list_of(p.inputs,
                         [](const graph::SavedInput& in) {
                           return json{{"name", in.name},
                                       {"tensor", tensor_json(in.dtype, in.shape, in.strides)},
                                       {"changed", in.changed}};
                         })},
      {"tensors", list_of(p.tensors, [](const graph::SavedTensor& t) { return json(t.name); })},
      {"numbers",
       list_of(p.numbers,
               [](const graph::SavedNumber& n) {
                 return json{{"name", n.name}, {"counts", n.counts}, {"value", n.value.value.i}};
               })},
      {"results", list_of(p.results,
                          [](const graph::SavedResult& r) {
                            if (r.input >= 0) return json{{"name", r.name}, {"input", r.input}};
                            return json{{"name", r.name},
                                        {"at", json::array({r.value, r.offset})},
                                        {"tensor", tensor_json(r.dtype, r.shape, r.strides)}};
                          })},
      {"nodes", list_of(p.nodes, node_json)}};
  try {
    return object.dump();
  } catch (const json::exception&) {
    throw CheckpointError("a name is not UTF-8");
  }
}

}  // namespace tenon
