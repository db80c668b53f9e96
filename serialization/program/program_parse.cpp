// Reads the description of a program, of which nothing is believed.
#include <limits>
#include <memory>
#include <string>
#include <unordered_set>

#include <fmt/core.h>

#include <tenon/core/base/json_value.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/serialization/program/program_text.h>

namespace tenon {

namespace {

using graph::SavedKind;
using Items = JsonValue::Items;

constexpr uint64_t kMax32 = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMaxBytes = uint64_t{1} << 62;
constexpr size_t kLongestWord = 64;
using graph::kLongestName;

// Two operators may have one name, if one of them computes in floating point what the other does of
// whole numbers.
const Op* op_named(const std::string& name, const CallDesc& call) {
  const Op* named = nullptr;
  const bool floating =
      !call.inputs.empty() && call.inputs[0] && is_floating_point(call.inputs[0]->dtype);
  for (const Op* op = all_ops(); op; op = op->next) {
    if (name != op->name) continue;
    if (!named || (op->promotion == Promotion::floating) == floating) named = op;
  }
  return named;
}

class ProgramReader {
 public:
  graph::SavedProgram read(std::string_view text) {
    const JsonValue object = parsed(text);
    const uint64_t version = natural(object, "program_version", kMax32);
    if (version != kProgramVersion)
      throw CheckpointError(fmt::format(
          "its program has version {}, and this build reads version {}. Load it with a newer Tenon",
          version, kProgramVersion));
    graph::SavedProgram p;
    p.device = device(text_of(object, "device", kLongestWord));
    const Items& random = list(object, "random", 2);
    p.random = {natural(random[0], ~uint64_t{0}), natural(random[1], ~uint64_t{0})};
    p.num_draws = static_cast<uint32_t>(natural(object, "draws", kMax32));
    for (auto& item : list(object, "values")) p.values.push_back(value(item));
    for (auto& item : list(object, "inputs")) p.inputs.push_back(input(item));
    for (auto& item : list(object, "tensors")) {
      p.tensors.emplace_back().name = text_of(item, kLongestName);
    }
    for (auto& item : list(object, "numbers")) p.numbers.push_back(number(item));
    for (auto& item : list(object, "results")) p.results.push_back(result(item));
    at_ = 0;
    for (auto& item : list(object, "nodes")) {
      p.nodes.push_back(node(item));
      require_changes_to_be_told(p, p.nodes.back());
      ++at_;
    }
    at_ = kNowhere;
    if (const auto fault = graph::fault_of_names(p); !fault.empty()) fail(fault);
    p.texts = std::move(texts_);
    return p;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw CheckpointError(at_ == kNowhere
                              ? fmt::format("its program is damaged: {}", why)
                              : fmt::format("its program is damaged: operator {}: {}", at_, why));
  }

  JsonValue parsed(std::string_view text) const {
    constexpr size_t depth = 8;  // a dimension of a tensor of an output of a node is the deepest
    try {
      JsonValue value = parse_json(text, depth);
      if (value.kind() == JsonValue::object) return value;
    } catch (const ValueError&) {
    }
    fail("it is no JSON object");
  }

  // ---- pieces of JSON

  // Null where there is no such member.
  const JsonValue* find(const JsonValue& object, const char* name) const {
    if (object.kind() != JsonValue::object)
      fail(fmt::format("what should have \"{}\" is no object", name));
    return object.find(name);
  }
  const JsonValue& member(const JsonValue& object, const char* name) const {
    const JsonValue* found = find(object, name);
    if (!found) fail(fmt::format("it has no \"{}\"", name));
    return *found;
  }
  const Items& list(const JsonValue& object, const char* name, int64_t size = -1) const {
    const JsonValue& value = member(object, name);
    if (value.kind() != JsonValue::array ||
        (size >= 0 && value.items().size() != static_cast<size_t>(size)))
      fail(fmt::format("\"{}\" is no list of the right length", name));
    return value.items();
  }
  const Items& list(const JsonValue& value, size_t size) const {
    if (value.kind() != JsonValue::array || value.items().size() != size)
      fail(fmt::format("something is no list of {}", size));
    return value.items();
  }
  uint64_t natural(const JsonValue& item, uint64_t most) const {
    const bool is_whole = item.kind() == JsonValue::natural ||
                          (item.kind() == JsonValue::integer && item.whole() >= 0);
    if (!is_whole || item.bits() > most)
      fail(fmt::format("a number is not a whole one from 0 to {}", most));
    return item.bits();
  }
  uint64_t natural(const JsonValue& object, const char* name, uint64_t most) const {
    return natural(member(object, name), most);
  }
  int64_t whole(const JsonValue& item) const {
    if (item.kind() != JsonValue::integer) fail("a number is not an integer of 64 bits");
    return item.whole();
  }
  bool truth(const JsonValue& item) const {
    if (item.kind() != JsonValue::boolean) fail("something is neither true nor false");
    return item.truth();
  }
  std::string text_of(const JsonValue& item, size_t longest) const {
    if (item.kind() != JsonValue::string || item.text().size() > longest ||
        item.text().find('\0') != std::string::npos)
      fail(fmt::format("a value is not a text of at most {} bytes", longest));
    return item.text();
  }
  std::string text_of(const JsonValue& object, const char* name, size_t longest) const {
    return text_of(member(object, name), longest);
  }
  Scalar scalar(const JsonValue& item) const { return Scalar::integer(whole(item)); }

  Device device(const std::string& text) const {
    try {
      return Device(text);
    } catch (const DeviceError& error) {
      fail(error.what());
    }
  }
  Shape shape(const JsonValue& item) const {
    if (item.kind() != JsonValue::array || item.items().size() > Shape::max_rank)
      fail("a shape or strides are no list of up to 8 numbers");
    Shape dims;
    for (auto& dim : item.items()) dims.push_back(whole(dim));
    return dims;
  }

  struct Described {
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
  };
  Described tensor(const JsonValue& item) const {
    const Items& parts = list(item, 3);
    Described t;
    try {
      t.dtype = parse_dtype(text_of(parts[0], kLongestWord));
      t.shape = shape(parts[1]);
      t.strides = shape(parts[2]);
      graph::extent_in_memory(t.dtype, t.shape, t.strides);
    } catch (const ValueError& error) {
      fail(error.what());
    }
    return t;
  }
  TensorDesc descriptor(const JsonValue& item) const {
    const Described t = tensor(item);
    return describe(t.dtype, t.shape, t.strides);
  }

  // ---- parts of a program

  graph::SavedValue value(const JsonValue& item) const {
    const Items& parts = list(item, 3);
    const std::string kind = text_of(parts[0], kLongestWord);
    graph::SavedValue v;
    v.kind = kind == "inside"  ? SavedKind::inside
             : kind == "input" ? SavedKind::input
                               : SavedKind::tensor;
    if (v.kind == SavedKind::tensor && kind != "tensor")
      fail(fmt::format("a value is of the unknown kind \"{}\"", excerpt(kind)));
    v.index = static_cast<uint32_t>(natural(parts[1], kMax32));
    v.bytes = natural(parts[2], kMaxBytes);
    return v;
  }
  graph::SavedInput input(const JsonValue& item) const {
    const Described t = tensor(member(item, "tensor"));
    return {text_of(item, "name", kLongestName), t.dtype, t.shape, t.strides,
            truth(member(item, "changed"))};
  }
  graph::SavedNumber number(const JsonValue& item) const {
    return {text_of(item, "name", kLongestName), truth(member(item, "counts")),
            scalar(member(item, "value"))};
  }
  graph::SavedResult result(const JsonValue& item) const {
    graph::SavedResult r;
    r.name = text_of(item, "name", kLongestName);
    if (const JsonValue* place = find(item, "input")) {
      r.input = static_cast<int32_t>(natural(*place, kMax32));
      return r;
    }
    const Described t = tensor(member(item, "tensor"));
    r.dtype = t.dtype, r.shape = t.shape, r.strides = t.strides;
    const Items& at = list(item, "at", 2);
    r.value = static_cast<uint32_t>(natural(at[0], kMax32));
    r.offset = static_cast<int64_t>(natural(at[1], kMaxBytes));
    return r;
  }

  // Attributes have pointers to their texts, which last as long as the program that is read.
  const char* lasting(const std::string& text) { return texts_->insert(text).first->c_str(); }

  void add_attr(Attrs& attrs, const JsonValue& item) {
    const Items& parts = list(item, 3);
    const JsonValue& value = parts[2];
    const std::string name = text_of(parts[0], kLongestWord),
                      kind = text_of(parts[1], kLongestWord);
    if (attrs.has(name)) fail(fmt::format("the attribute \"{}\" is there twice", excerpt(name)));
    if (attrs.all().size() == 8) fail("it has more than 8 attributes");
    if (kind == "int")
      attrs.set(lasting(name), whole(value));
    else if (kind == "bool")
      attrs.set(lasting(name), truth(value));
    else if (kind == "float")
      attrs.set(lasting(name), scalar(value).value.f);
    else if (kind == "text")
      attrs.set(lasting(name), lasting(text_of(value, kLongestWord)));
    else if (kind == "hint")
      attrs.set_hint(lasting(name), lasting(text_of(value, kLongestWord)));
    else if (kind == "list")
      attrs.set(lasting(name), shape(value));
    else
      fail(fmt::format("an attribute is of the unknown kind \"{}\"", excerpt(kind)));
  }

  graph::SavedOutput output(const JsonValue& item) const {
    if (item.kind() == JsonValue::null) return {OutputKind::absent, 0, DType::f32, {}, {}};
    const Items& parts = list(item, 2);
    const Described t = tensor(parts[1]);
    const int64_t changed = whole(parts[0]);
    if (changed < -1 || changed > static_cast<int64_t>(kMax32))
      fail("an output changes an input that does not exist");
    return {changed < 0 ? OutputKind::made : OutputKind::in_place,
            changed < 0 ? 0 : static_cast<uint32_t>(changed), t.dtype, t.shape, t.strides};
  }

  graph::Access access(const JsonValue& item) const {
    if (item.kind() == JsonValue::null) return {};
    const Items& parts = list(item, 2);
    return {static_cast<uint32_t>(natural(parts[0], kMax32)), natural(parts[1], kMaxBytes)};
  }

  graph::SavedNode node(const JsonValue& item) {
    graph::SavedNode n;
    CallDesc& call = n.call;
    const std::string name = text_of(item, "op", kLongestName);
    for (auto& t : list(item, "inputs"))
      call.inputs.push_back(t.kind() == JsonValue::null ? std::nullopt
                                                        : std::optional(descriptor(t)));
    call.op = op_named(name, call);
    if (!call.op)
      throw CheckpointError(
          fmt::format("its program has the operator \"{}\", which this build does not have. Load "
                      "it with a newer "
                      "Tenon",
                      excerpt(name)));
    for (auto& a : list(item, "attributes")) add_attr(call.attrs, a);
    for (auto& o : list(item, "outputs")) n.outputs.push_back(output(o));
    for (auto& o : n.outputs)
      if (o.kind == OutputKind::in_place && o.input >= call.inputs.size())
        fail("an output changes an input that does not exist");
    for (auto& at : list(item, "at")) n.accesses.push_back(access(at));
    for (auto& s : list(item, "scalars")) n.scalars.push_back(scalar(s));
    call.num_scalars = n.scalars.size();
    call.wanted = static_cast<uint32_t>(natural(item, "wanted", ~uint32_t{0}));
    call.format = static_cast<MemoryFormat>(natural(item, "format", 3));
    call.flat = truth(member(item, "flat"));
    add_rare(item, n);
    return n;
  }

  // Whoever runs the program asks its inputs which of them it changes.
  void require_changes_to_be_told(const graph::SavedProgram& p, const graph::SavedNode& n) const {
    for (size_t i = n.call.inputs.size(); i < n.accesses.size(); ++i) {
      const uint32_t value = n.accesses[i].value;
      if (value >= p.values.size() || p.values[value].kind != SavedKind::input) continue;
      if (const uint32_t in = p.values[value].index; in < p.inputs.size() && !p.inputs[in].changed)
        fail(fmt::format("it changes input {}, of which the file says that it does not", in));
    }
  }

  // What most nodes do not have.
  void add_rare(const JsonValue& item, graph::SavedNode& n) const {
    CallDesc& call = n.call;
    if (find(item, "numbers"))
      for (auto& l : list(item, "numbers")) {
        const Items& parts = list(l, 2);
        n.living.push_back({static_cast<uint32_t>(natural(parts[0], kMax32)),
                            static_cast<uint32_t>(natural(parts[1], kMax32))});
      }
    if (const JsonValue* dims = find(item, "shape")) {
      call.shape = shape(*dims);
      if (!is_addressable(*call.shape)) fail("a shape is one that no tensor has");
    }
    if (find(item, "into")) {
      const Items& into = list(item, "into", 2);
      const int64_t changed = whole(into[0]);
      if (changed < -1 || changed >= static_cast<int64_t>(call.inputs.size()))
        fail("an output changes an input that does not exist");
      call.out_input = static_cast<int32_t>(changed);
      call.out = descriptor(into[1]);
    }
    if (const JsonValue* draw = find(item, "draw"))
      n.draw = static_cast<int32_t>(natural(*draw, kMax32));
    if (const JsonValue* holds = find(item, "holds_values")) n.outputs_hold_values = truth(*holds);
    if (const JsonValue* again = find(item, "repeated")) n.repeated = truth(*again);
    if (const JsonValue* path = find(item, "module")) n.path = text_of(*path, kLongestName);
  }

  static constexpr size_t kNowhere = ~size_t{0};
  size_t at_ = kNowhere;  // the node that is read
  std::unique_ptr<std::unordered_set<std::string>> texts_ =
      std::make_unique<std::unordered_set<std::string>>();
};

}  // namespace

graph::SavedProgram program_from_json(std::string_view text) { return ProgramReader().read(text); }

}  // namespace tenon
