#include <fmt/core.h>

#include <tenon/core/base/json_writer.h>
#include <tenon/core/error.h>
#include <tenon/serialization/program/program_text.h>

namespace tenon {

namespace {

using graph::SavedKind;

// Numbers of floating point are written as their bits, because JSON has no infinities and NaNs.
class ProgramWriter {
 public:
  std::string write(const graph::SavedProgram& p) {
    json_.object([&] {
      json_.key("program_version").natural(kProgramVersion);
      json_.key("device").text(p.device.str());
      json_.key("random").array([&] { json_.natural(p.random.seed).natural(p.random.offset); });
      json_.key("draws").natural(p.num_draws);
      each("values", p.values, &ProgramWriter::value);
      each("inputs", p.inputs, &ProgramWriter::input);
      json_.key("tensors").array_of(p.tensors, [&](auto& t) { json_.text(t.name); });
      each("numbers", p.numbers, &ProgramWriter::number);
      each("results", p.results, &ProgramWriter::result);
      each("nodes", p.nodes, &ProgramWriter::node);
    });
    return json_.take();
  }

 private:
  template <class Items, class Item>
  void each(const char* name, const Items& items, void (ProgramWriter::*write_item)(const Item&)) {
    json_.key(name).array_of(items, [&](auto& item) { (this->*write_item)(item); });
  }

  // ---- pieces

  void shape(const Shape& dims) {
    json_.array_of(dims, [&](int64_t dim) { json_.number(dim); });
  }
  void tensor(DType dtype, const Shape& dims, const Strides& strides) {
    json_.array([&] {
      json_.text(name_of(dtype));
      shape(dims);
      shape(strides);
    });
  }
  void tensor(const std::optional<TensorDesc>& t) {
    if (t)
      tensor(t->dtype, t->shape, t->strides);
    else
      json_.null();
  }
  void pair(uint64_t first, uint64_t second) {
    json_.array([&] { json_.natural(first).natural(second); });
  }

  void attribute(const Attr& a) {
    json_.array([&] {
      json_.text(a.name);
      switch (a.kind) {
        case TN_ATTR_INT:
          json_.text("int").number(a.i);
          return;
        case TN_ATTR_BOOL:
          json_.text("bool").boolean(a.i != 0);
          return;
        case TN_ATTR_FLOAT:
          json_.text("float").number(Scalar(a.f).value.i);
          return;
        case TN_ATTR_STRING:
          json_.text(a.hint ? "hint" : "text").text(a.s);
          return;
        case TN_ATTR_INTS:
          json_.text("list");
          shape(a.list());
          return;
      }
      throw CheckpointError("an attribute of an operator is of a kind that no file can hold");
    });
  }
  void output(const graph::SavedOutput& o) {
    if (o.kind == OutputKind::absent) {
      json_.null();
      return;
    }
    json_.array([&] {
      json_.number(o.kind == OutputKind::in_place ? static_cast<int64_t>(o.input) : -1);
      tensor(o.dtype, o.shape, o.strides);
    });
  }
  void access(const graph::Access& at) {
    if (at.value == graph::kAbsent)
      json_.null();
    else
      pair(at.value, at.offset);
  }

  // ---- parts of a program

  void value(const graph::SavedValue& v) {
    json_.array([&] {
      json_.text(v.kind == SavedKind::inside  ? "inside"
                 : v.kind == SavedKind::input ? "input"
                                              : "tensor");
      json_.natural(v.index).natural(v.bytes);
    });
  }
  void input(const graph::SavedInput& in) {
    json_.object([&] {
      json_.key("name").text(in.name);
      json_.key("tensor");
      tensor(in.dtype, in.shape, in.strides);
      json_.key("changed").boolean(in.changed);
    });
  }
  void number(const graph::SavedNumber& n) {
    json_.object([&] {
      json_.key("name").text(n.name);
      json_.key("counts").boolean(n.counts);
      json_.key("value").number(n.value.value.i);
    });
  }
  void result(const graph::SavedResult& r) {
    json_.object([&] {
      json_.key("name").text(r.name);
      if (r.input >= 0) {
        json_.key("input").number(r.input);
        return;
      }
      json_.key("at").array([&] { json_.natural(r.value).number(r.offset); });
      json_.key("tensor");
      tensor(r.dtype, r.shape, r.strides);
    });
  }

  void node(const graph::SavedNode& n) {
    const CallDesc& call = n.call;
    json_.object([&] {
      json_.key("op").text(call.op->name);
      each("attributes", call.attrs.all(), &ProgramWriter::attribute);
      json_.key("inputs").array_of(call.inputs, [&](auto& t) { tensor(t); });
      each("outputs", n.outputs, &ProgramWriter::output);
      each("at", n.accesses, &ProgramWriter::access);
      json_.key("scalars").array_of(n.scalars, [&](auto& s) { json_.number(s.value.i); });
      json_.key("wanted").natural(call.wanted);
      json_.key("format").number(static_cast<int>(call.format));
      json_.key("flat").boolean(call.flat);
      rare(n);
    });
  }
  // What most nodes do not have.
  void rare(const graph::SavedNode& n) {
    const CallDesc& call = n.call;
    if (!n.living.empty())
      json_.key("numbers").array_of(n.living, [&](auto& l) { pair(l.scalar, l.number); });
    if (call.shape) {
      json_.key("shape");
      shape(*call.shape);
    }
    if (call.out)
      json_.key("into").array([&] {
        json_.number(call.out_input);
        tensor(call.out);
      });
    if (n.draw >= 0) json_.key("draw").number(n.draw);
    if (n.outputs_hold_values) json_.key("holds_values").boolean(true);
    if (n.repeated) json_.key("repeated").boolean(true);
    if (!n.path.empty()) json_.key("module").text(n.path);
  }

  JsonWriter json_;
};

}  // namespace

std::string program_to_json(const graph::SavedProgram& program) {
  try {
    return ProgramWriter().write(program);
  } catch (const ValueError& fault) {
    throw CheckpointError(fmt::format("a name in it: {}", fault.what()));
  }
}

}  // namespace tenon
