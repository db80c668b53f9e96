// Reads the description of a program, of which nothing is believed.
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <unordered_set>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/dispatch/op.h>
#include <tenon/core/error.h>
#include <tenon/core/extent.h>
#include <tenon/serialization/program/program_text.h>

namespace tenon {

namespace {

using graph::SavedKind;
using nlohmann::json;

constexpr uint64_t kMost32 = std::numeric_limits<int32_t>::max();
constexpr uint64_t kMostBytes = uint64_t{1} << 62;
constexpr size_t kLongestWord = 64;
using graph::kLongestName;

// Attributes are kept by pointers to literals, and plans outlive programs. So the texts of files
// are kept for good, each once; they are short, as what operators have.
const char* lasting(const std::string& text) {
  struct Words {
    ForkMutex mutex{ForkOrder::tables};
    std::unordered_set<std::string> all;
  };
  static constinit NeverDestroyed<Words> kept;
  Words& words = kept.get();
  std::lock_guard lock(words.mutex);
  return words.all.insert(text).first->c_str();
}

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
    const json object = json::parse(text, nullptr, false);
    if (!object.is_object()) fail("it is no JSON object");
    const uint64_t version = natural(object, "program_version", kMost32);
    if (version != kProgramVersion)
      throw CheckpointError(fmt::format(
          "its program has version {}, and this build reads version {}. Load it with a newer Tenon",
          version, kProgramVersion));
    graph::SavedProgram p;
    p.device = device(text_of(object, "device", kLongestWord));
    const json& random = list(object, "random", 2);
    p.random = {natural(random[0], ~uint64_t{0}), natural(random[1], ~uint64_t{0})};
    p.num_draws = static_cast<uint32_t>(natural(object, "draws", kMost32));
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
      ++at_;
    }
    at_ = kNowhere;
    if (const auto fault = graph::fault_of_names(p); !fault.empty()) fail(fault);
    return p;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw CheckpointError(at_ == kNowhere
                              ? fmt::format("its program is damaged: {}", why)
                              : fmt::format("its program is damaged: operator {}: {}", at_, why));
  }

  // ---- pieces of JSON

  const json& member(const json& object, const char* name) const {
    if (!object.is_object()) fail(fmt::format("what should have \"{}\" is no object", name));
    const auto found = object.find(name);
    if (found == object.end()) fail(fmt::format("it has no \"{}\"", name));
    return *found;
  }
  const json& list(const json& object, const char* name, int64_t size = -1) const {
    const json& items = member(object, name);
    if (!items.is_array() || (size >= 0 && items.size() != static_cast<size_t>(size)))
      fail(fmt::format("\"{}\" is no list of the right length", name));
    return items;
  }
  const json& list(const json& items, size_t size) const {
    if (!items.is_array() || items.size() != size)
      fail(fmt::format("something is no list of {}", size));
    return items;
  }
  uint64_t natural(const json& item, uint64_t most) const {
    if (!item.is_number_unsigned() || item.get<uint64_t>() > most)
      fail(fmt::format("a number is not a whole one from 0 to {}", most));
    return item.get<uint64_t>();
  }
  uint64_t natural(const json& object, const char* name, uint64_t most) const {
    return natural(member(object, name), most);
  }
  int64_t whole(const json& item) const {
    if (!item.is_number_integer() ||
        (item.is_number_unsigned() &&
         item.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())))
      fail("a number is no whole one of 64 bits");
    return item.get<int64_t>();
  }
  bool truth(const json& item) const {
    if (!item.is_boolean()) fail("something is neither true nor false");
    return item.get<bool>();
  }
  std::string text_of(const json& item, size_t longest) const {
    if (!item.is_string() || item.get_ref<const std::string&>().size() > longest ||
        item.get_ref<const std::string&>().find('\0') != std::string::npos)
      fail(fmt::format("something is no text of up to {} bytes", longest));
    return item.get<std::string>();
  }
  std::string text_of(const json& object, const char* name, size_t longest) const {
    return text_of(member(object, name), longest);
  }
  Scalar scalar(const json& item) const { return Scalar::integer(whole(item)); }

  Device device(const std::string& text) const {
    try {
      return Device(text);
    } catch (const DeviceError& error) {
      fail(error.what());
    }
  }
  Shape shape(const json& item) const {
    if (!item.is_array() || item.size() > Shape::max_rank)
      fail("a shape or strides are no list of up to 8 numbers");
    Shape dims;
    for (auto& dim : item) dims.push_back(whole(dim));
    return dims;
  }

  struct Described {
    DType dtype = DType::f32;
    Shape shape;
    Strides strides;
  };
  Described tensor(const json& item) const {
    list(item, 3);
    Described t;
    try {
      t.dtype = parse_dtype(text_of(item[0], kLongestWord));
      t.shape = shape(item[1]);
      t.strides = shape(item[2]);
      graph::extent_in_memory(t.dtype, t.shape, t.strides);
    } catch (const ValueError& error) {
      fail(error.what());
    }
    return t;
  }
  TensorDesc descriptor(const json& item) const {
    const Described t = tensor(item);
    return describe(t.dtype, t.shape, t.strides);
  }

  // ---- parts of a program

  graph::SavedValue value(const json& item) const {
    list(item, 3);
    const std::string kind = text_of(item[0], kLongestWord);
    graph::SavedValue v;
    v.kind = kind == "inside"  ? SavedKind::inside
             : kind == "input" ? SavedKind::input
                               : SavedKind::tensor;
    if (v.kind == SavedKind::tensor && kind != "tensor")
      fail(fmt::format("a value is of the unknown kind \"{}\"", excerpt(kind)));
    v.index = static_cast<uint32_t>(natural(item[1], kMost32));
    v.bytes = natural(item[2], kMostBytes);
    return v;
  }
  graph::SavedInput input(const json& item) const {
    const Described t = tensor(member(item, "tensor"));
    return {text_of(item, "name", kLongestName), t.dtype, t.shape, t.strides,
            truth(member(item, "changed"))};
  }
  graph::SavedNumber number(const json& item) const {
    return {text_of(item, "name", kLongestName), truth(member(item, "counts")),
            scalar(member(item, "value"))};
  }
  graph::SavedResult result(const json& item) const {
    graph::SavedResult r;
    r.name = text_of(item, "name", kLongestName);
    if (item.contains("input")) {
      r.input = static_cast<int32_t>(natural(item, "input", kMost32));
      return r;
    }
    const Described t = tensor(member(item, "tensor"));
    r.dtype = t.dtype, r.shape = t.shape, r.strides = t.strides;
    const json& at = list(item, "at", 2);
    r.value = static_cast<uint32_t>(natural(at[0], kMost32));
    r.offset = static_cast<int64_t>(natural(at[1], kMostBytes));
    return r;
  }

  void add_attr(Attrs& attrs, const json& item) const {
    list(item, 3);
    const std::string name = text_of(item[0], kLongestWord), kind = text_of(item[1], kLongestWord);
    if (attrs.has(name)) fail(fmt::format("the attribute \"{}\" is there twice", excerpt(name)));
    if (attrs.all().size() == 8) fail("it has more than 8 attributes");
    if (kind == "int")
      attrs.set(lasting(name), whole(item[2]));
    else if (kind == "bool")
      attrs.set(lasting(name), truth(item[2]));
    else if (kind == "float")
      attrs.set(lasting(name), scalar(item[2]).value.f);
    else if (kind == "text")
      attrs.set(lasting(name), lasting(text_of(item[2], kLongestWord)));
    else if (kind == "hint")
      attrs.set_hint(lasting(name), lasting(text_of(item[2], kLongestWord)));
    else if (kind == "list")
      attrs.set(lasting(name), shape(item[2]));
    else
      fail(fmt::format("an attribute is of the unknown kind \"{}\"", excerpt(kind)));
  }

  graph::SavedOutput output(const json& item) const {
    if (item.is_null()) return {OutputKind::absent, 0, DType::f32, {}, {}};
    list(item, 2);
    const Described t = tensor(item[1]);
    const int64_t changed = whole(item[0]);
    if (changed < -1 || changed > static_cast<int64_t>(kMost32))
      fail("an output changes an input that there is not");
    return {changed < 0 ? OutputKind::made : OutputKind::in_place,
            changed < 0 ? 0 : static_cast<uint32_t>(changed), t.dtype, t.shape, t.strides};
  }

  graph::Access access(const json& item) const {
    if (item.is_null()) return {};
    list(item, 2);
    return {static_cast<uint32_t>(natural(item[0], kMost32)), natural(item[1], kMostBytes)};
  }

  graph::SavedNode node(const json& item) const {
    graph::SavedNode n;
    CallDesc& call = n.call;
    const std::string name = text_of(item, "op", kLongestName);
    for (auto& t : list(item, "inputs"))
      call.inputs.push_back(t.is_null() ? std::nullopt : std::optional(descriptor(t)));
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
        fail("an output changes an input that there is not");
    for (auto& at : list(item, "at")) n.accesses.push_back(access(at));
    for (auto& s : list(item, "scalars")) n.scalars.push_back(scalar(s));
    call.num_scalars = n.scalars.size();
    call.wanted = static_cast<uint32_t>(natural(item, "wanted", ~uint32_t{0}));
    call.format = static_cast<MemoryFormat>(natural(item, "format", 3));
    call.flat = truth(member(item, "flat"));
    add_rare(item, n);
    return n;
  }

  // What most nodes do not have.
  void add_rare(const json& item, graph::SavedNode& n) const {
    CallDesc& call = n.call;
    if (item.contains("numbers"))
      for (auto& l : list(item, "numbers")) {
        list(l, 2);
        n.living.push_back({static_cast<uint32_t>(natural(l[0], kMost32)),
                            static_cast<uint32_t>(natural(l[1], kMost32))});
      }
    if (item.contains("shape")) {
      call.shape = shape(item["shape"]);
      if (!is_addressable(*call.shape)) fail("a shape is one that no tensor has");
    }
    if (item.contains("into")) {
      const json& into = list(item, "into", 2);
      const int64_t changed = whole(into[0]);
      if (changed < -1 || changed >= static_cast<int64_t>(call.inputs.size()))
        fail("an output changes an input that there is not");
      call.out_input = static_cast<int32_t>(changed);
      call.out = descriptor(into[1]);
    }
    if (item.contains("draw")) n.draw = static_cast<int32_t>(natural(item, "draw", kMost32));
    if (item.contains("holds_values")) n.outputs_hold_values = truth(item["holds_values"]);
    if (item.contains("module")) n.path = text_of(item, "module", kLongestName);
  }

  static constexpr size_t kNowhere = ~size_t{0};
  size_t at_ = kNowhere;  // the node that is read
};

}  // namespace

graph::SavedProgram program_from_json(std::string_view text) { return ProgramReader().read(text); }

}  // namespace tenon
