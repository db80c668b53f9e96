// What a program is made of, without plans.
#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/compiled_state.h>
#include <tenon/core/graph/describe.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/graph/saved.h>
#include <tenon/core/layout.h>

namespace tenon::graph {

namespace {

// Where a plan takes copies of inputs, the strides of a copy. Those that lie so already may still
// have others in dimensions of size 1, for which a plan would not be made.
TensorDesc as_seen(const TensorDesc& t, const PlanEntry& entry, const Shape* flat) {
  if (flat) return describe(t.dtype, *flat, Shape::row_major(*flat));
  if (!entry.make_contiguous) return t;
  return describe(t.dtype, t.shape, strides_in(t.shape, entry.copies_in(t.shape)));
}

bool is_copied(const PlanEntry& entry, size_t input) {
  const TensorDesc& t = *entry.call.inputs[input];
  return entry.make_contiguous && !has_format(t.shape, t.strides, entry.copies_in(t.shape));
}

bool is_listed(const Op& op) {
  for (const Op* other = all_ops(); other; other = other->next)
    if (other == &op) return true;
  return false;
}

}  // namespace

CallDesc call_as_seen(const PlanEntry& entry, const Shape* flat) {
  CallDesc call = entry.call;
  for (auto& t : call.inputs)
    if (t) t = as_seen(*t, entry, flat);
  if (flat && call.shape) call.shape = *flat;
  if (flat) call.format = preserve_format;
  if (!call.out) return call;
  if (flat) call.out = describe(call.out->dtype, *flat, Shape::row_major(*flat));
  if (call.out_input < 0) return call;
  const auto changed = static_cast<size_t>(call.out_input);
  if (is_copied(entry, changed))
    call.out_input = -1;
  else
    call.out = call.inputs[changed];
  return call;
}

SavedOutput output_of_plan(const PlanEntry& entry, const CallDesc& call, size_t i) {
  const PlanOutput& o = entry.outputs[i];
  SavedOutput output{o.kind, o.input, o.dtype, o.shape, {}};
  if (o.kind == OutputKind::absent) return {OutputKind::absent, 0, DType::f32, {}, {}};
  if (o.kind == OutputKind::made) output.input = 0;
  if (call.out && call.out_input < 0) output.kind = OutputKind::made, output.input = 0;
  if (entry.flattened)
    output.strides = Shape::row_major(o.shape);
  else if (call.out)
    output.strides = call.out->strides;
  else if (o.kind == OutputKind::in_place)
    output.strides = call.inputs[o.input]->strides;
  else
    output.strides = o.row_major ? Shape::row_major(o.shape) : o.strides;
  return output;
}

SavedNode saved_node(const TraceNode& node, const Scalar* scalars, Device device) {
  const PlanEntry& entry = *node.plan;
  const auto refuse = [&](const std::string& why) {
    throw ValueError(fmt::format("{} {}", entry.describe(node.flat ? &node.shape : nullptr), why));
  };
  if (entry.device != device)
    refuse(
        fmt::format("runs on {}, and what came before it on {}; a file has one device, so save "
                    "a function for each",
                    entry.device, device));
  if (!is_listed(*entry.call.op)) refuse("is an operator of your own, which a file cannot name");
  SavedNode saved;
  saved.call = call_as_seen(entry, node.flat ? &node.shape : nullptr);
  for (size_t i = 0; i < entry.outputs.size(); ++i)
    saved.outputs.push_back(output_of_plan(entry, saved.call, i));
  saved.scalars.assign(scalars, scalars + node.num_scalars);
  saved.draw = node.draw;
  saved.outputs_hold_values = node.outputs_hold_values;
  saved.repeated = node.repeated;
  saved.path = path_string(node.path);
  return saved;
}

namespace {

// Names that are given. What cannot be stored, fault_of_names finds; these would be stored, and
// not be what one can ask for: `tenon program run` takes NAME=FILE, and a '/' is no part of the
// name of a dataset.
void require_usable(const std::string& name, const char* what) {
  if (name.find_first_of("=\n\r") != name.npos)
    throw ValueError(fmt::format("the name \"{}\" of one of its {} has a line end or a '='",
                                 excerpt(name), what));
}

void require_usable(const SavedNames& names) {
  for (auto& name : names.inputs) require_usable(name, "inputs");
  for (auto& name : names.outputs) require_usable(name, "outputs");
  std::set<std::string_view> taken;
  for (auto& [name, tensor] : names.tensors) {
    require_usable(name, "tensors");
    if (name.find('/') != name.npos)
      throw ValueError(
          fmt::format("the name \"{}\" of one of its tensors has a '/'; use '.'", excerpt(name)));
    if (name.empty()) throw ValueError("one of its tensors is given an empty name");
    if (!tensor.defined())
      throw ValueError(
          fmt::format("the tensor that is to be called \"{}\" is undefined", excerpt(name)));
    if (!taken.insert(name).second)
      throw ValueError(fmt::format("two tensors are given the name \"{}\"", excerpt(name)));
  }
}

// The name at this place, where there is one, or the number.
std::string name_at(const std::vector<std::string>& names, size_t i) {
  return i < names.size() && !names[i].empty() ? names[i] : std::to_string(i);
}

// Collects the parts of a program. Storages are values, in the order in which nodes use them.
class Description {
 public:
  Description(const Program& program, std::span<const ArgumentKind> arguments,
              const SavedNames& names)
      : program_(program),
        trace_(program.recorded_with_memory()),
        wiring_(program.recorded_wiring()),
        arguments_(arguments),
        names_(names) {}

  SavedProgram run() {
    require_usable(names_);
    require_storable();
    saved_.device = trace_.device;
    saved_.num_draws = trace_.num_draws;
    saved_.random = random_state();
    add_inputs();
    inside_.assign(trace_.values.size(), kAbsent);
    for (const Part& part : trace_.parts) {
      for (uint32_t i = part.first_node; i < part.end_node; ++i) add_node(trace_.nodes[i]);
      if (part.again) add_host_part(part);
    }
    add_results();
    name_tensors();
    cut_tensors(saved_, names_);
    if (const auto fault = fault_of_names(saved_); !fault.empty())
      throw ValueError(fault + "; give each input and output a name of its own");
    return std::move(saved_);
  }

 private:
  void require_storable() const {
    if (trace_.nodes.empty()) throw ValueError("it has no operator");
    for (auto& node : trace_.nodes)
      if (node.work) refuse_work(node);
    for (size_t k = 0; k < trace_.inputs.size(); ++k) {
      const Input& input = trace_.inputs[k];
      if (input.leaf >= 0) {
        require_unused(k);
        continue;
      }
      if (wiring_.pinned[k])
        throw ValueError(fmt::format(
            "argument {} was the same memory in the calls that were recorded, so nothing tells "
            "whether the function reads its argument or a tensor from outside. Call it with "
            "another tensor first, such as x.clone()",
            input.argument));
    }
    if (const auto two = program_.arguments_that_share())
      throw ValueError(fmt::format(
          "arguments {} and {} shared memory in the calls that were recorded, so nothing tells "
          "which of them an operator reads. Call it with tensors that share none first, such as "
          "x.clone()",
          two->first, two->second));
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!arguments_[i].defined)
        throw ValueError("an argument is an undefined tensor; leave it out of the function");
      require_device(fmt::format("argument {}", i), arguments_[i].device);
    }
  }

  [[noreturn]] static void refuse_work(const TraceNode& node) {
    const std::string path = path_string(node.path);
    throw ValueError(fmt::format(
        "\"{}\"{} is work of the host, which a file cannot hold; it holds operators of "
        "one device. Leave that out of the function, and pass the tensor as an argument",
        node.describe(), path.empty() ? "" : " (in module " + path + ")"));
  }

  void require_device(const std::string& what, Device device) const {
    if (device != trace_.device)
      throw ValueError(
          fmt::format("{} is on {}, and the function computes on {}; a file has one device", what,
                      device, trace_.device));
  }

  // The gradient that a leaf had before the call; the arguments come before it.
  void require_unused(size_t input) const {
    const auto& used = wiring_.input_of_access;
    if (wiring_.pinned[input] ||
        std::find(used.begin(), used.end(), static_cast<int32_t>(input)) != used.end())
      throw ValueError(
          "it adds to gradients of earlier calls, which are no tensors of a program; call "
          "zero_grad() inside the function");
  }

  void add_inputs() {
    for (size_t k = 0; k < arguments_.size(); ++k) {
      const ArgumentKind& kind = arguments_[k];
      saved_.inputs.push_back(
          {name_at(names_.inputs, k), kind.dtype, kind.shape, kind.strides, false});
      saved_.values.push_back(
          {SavedKind::input, static_cast<uint32_t>(k), trace_.inputs[k].extent});
    }
    if (names_.inputs.size() > arguments_.size())
      throw ValueError(
          fmt::format("{} names of inputs are given, and the function has {} arguments",
                      names_.inputs.size(), arguments_.size()));
  }

  uint32_t inside_value(uint32_t value) {
    uint32_t& place = inside_[value];
    if (place == kAbsent) {
      place = static_cast<uint32_t>(saved_.values.size());
      saved_.values.push_back({SavedKind::inside, 0, trace_.values[value].bytes});
    }
    return place;
  }

  uint32_t tensor_value(const Ref<Storage>& storage, const SavedNode* node, size_t access) {
    const auto [found, fresh] = tensors_.try_emplace(storage.get(), kAbsent);
    if (!fresh) return found->second;
    if (!storage) throw ValueError("it uses memory that an argument had; call it once more");
    if (is_let_go(*storage))
      throw ValueError("a tensor that it uses does not exist any more; call it again first");
    found->second = static_cast<uint32_t>(saved_.values.size());
    const auto index = static_cast<uint32_t>(saved_.tensors.size());
    saved_.values.push_back({SavedKind::tensor, index, storage->bytes});
    SavedTensor& tensor = saved_.tensors.emplace_back();
    tensor.value = found->second;
    tensor.memory = storage;
    tensor.name = node ? default_name(*node, access) : "result";
    for (auto& [name, given] : names_.tensors)
      if (given.defined() && impl_of(given).storage == storage) {
        tensor.name = name;
        break;
      }
    return found->second;
  }

  // Two may be parts of one given tensor, or be read by operators of one place.
  void name_tensors() {
    std::set<std::string> taken;
    for (auto& tensor : saved_.tensors) {
      std::string name = tensor.name;
      for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}.{}", tensor.name, i);
      tensor.name = name;
    }
  }

  static std::string default_name(const SavedNode& node, size_t access) {
    const bool is_input = access < node.call.inputs.size();
    std::string name =
        fmt::format("{}{}{}.{}{}", node.path, node.path.empty() ? "" : ".", node.call.op->name,
                    is_input ? "" : "out", is_input ? access : access - node.call.inputs.size());
    std::replace(name.begin(), name.end(), '/', '.');  // which no name of a dataset has
    return name;
  }

  void add_node(const TraceNode& node) {
    SavedNode saved = saved_node(node, trace_.scalars.data() + node.first_scalar, saved_.device);
    for (uint32_t i = 0; i < node.num_inputs + node.num_outputs; ++i) {
      const Access& access = trace_.accesses[node.first_access + i];
      const int32_t input = wiring_.input_of_access[node.first_access + i];
      Access to;
      if (access.value == kAbsent) {
      } else if (input >= 0) {
        to = {static_cast<uint32_t>(input),
              access.offset - trace_.inputs[static_cast<size_t>(input)].offset};
        saved_.inputs[to.value].changed |= i >= node.num_inputs;
      } else if (trace_.values[access.value].inside) {
        to = {inside_value(access.value), access.offset};
      } else {
        to = {tensor_value(trace_.values[access.value].held.ref(), &saved, i), access.offset};
      }
      saved.accesses.push_back(to);
    }
    saved_.nodes.push_back(std::move(saved));
  }

  // A plan of a host part, whose values are places of their own.
  void add_host_part(const Part& part) {
    HostPartDescription host(trace_, part, saved_);
    for (uint32_t n = part.first_host_node; n < part.end_host_node; ++n) {
      const TraceNode& node = trace_.host.nodes[n];
      SavedNode saved =
          saved_node(node, trace_.host.scalars.data() + node.first_scalar, saved_.device);
      for (uint32_t i = 0; i < node.num_inputs + node.num_outputs; ++i) {
        const Access& access = trace_.host.accesses[node.first_access + i];
        Access to;
        if (access.value != kAbsent) to = {host_value(access.value, host, saved, i), access.offset};
        saved.accesses.push_back(to);
      }
      host.add_numbers(node, saved);
      saved_.nodes.push_back(std::move(saved));
    }
  }

  uint32_t host_value(uint32_t at, const HostPartDescription& host, const SavedNode& node,
                      size_t access) {
    const HostValue& value = trace_.host.values[at];
    if (value.value != kAbsent && trace_.values[value.value].inside)
      return inside_value(value.value);
    if (value.value != kAbsent || value.held) {
      const Ref<Storage>& storage =
          (value.held ? value.held : trace_.values[value.value].held).ref();
      host.require_own(storage.get());
      return tensor_value(storage, &node, access);
    }
    const auto [found, fresh] = host_inside_.try_emplace(at, kAbsent);
    if (fresh) {
      found->second = static_cast<uint32_t>(saved_.values.size());
      saved_.values.push_back({SavedKind::inside, 0, value.bytes});
    }
    return found->second;
  }

  void add_results() {
    for (size_t i = 0; i < trace_.num_results(); ++i) {
      const Result& result = trace_.results[i];
      SavedResult saved;
      saved.name = name_at(names_.outputs, i);
      if (result.argument >= 0) {
        saved.input = result.argument;
      } else if (result.kept >= 0) {
        const Kept& kept = trace_.kept[static_cast<size_t>(result.kept)];
        saved.dtype = kept.dtype, saved.shape = kept.shape, saved.strides = kept.strides;
        saved.offset = kept.offset;
        saved.value = trace_.values[kept.value].inside
                          ? inside_value(kept.value)
                          : tensor_value(trace_.values[kept.value].held.ref(), nullptr, 0);
      } else if (result.outside) {
        const TensorImpl& t = *result.outside;
        require_device(fmt::format("result {}", i), t.device);
        saved.dtype = t.dtype, saved.shape = t.shape, saved.strides = t.strides;
        saved.offset = t.offset;
        saved.value = tensor_value(t.storage, nullptr, 0);
      } else {
        throw ValueError(fmt::format("result {} is an undefined tensor", i));
      }
      saved_.results.push_back(std::move(saved));
    }
    if (names_.outputs.size() > trace_.num_results())
      throw ValueError(fmt::format("{} names of outputs are given, and the function has {} results",
                                   names_.outputs.size(), trace_.num_results()));
  }

  const Program& program_;
  const Trace trace_;
  const Wiring& wiring_;
  const std::span<const ArgumentKind> arguments_;
  const SavedNames& names_;
  SavedProgram saved_;
  std::vector<uint32_t> inside_;              // values of the file for those of the trace
  std::map<uint32_t, uint32_t> host_inside_;  // and for those of the host
  std::map<const Storage*, uint32_t> tensors_;
};

}  // namespace

SavedProgram describe_program(const Program& program, std::span<const ArgumentKind> arguments,
                              const SavedNames& names) {
  return Description(program, arguments, names).run();
}

}  // namespace tenon::graph
