#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/input_file.h>
#include <tenon/core/base/number_text.h>
#include <tenon/core/base/printable.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/graph/program.h>
#include <tenon/core/graph/saved.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/tensor_impl.h>
#include <tenon/serialization/header.h>
#include <tenon/serialization/program/program.h>
#include <tenon/serialization/program/program_file.h>
#include <tenon/serialization/program/program_text.h>
#include <tenon/serialization/tensor_file.h>

namespace tenon {

namespace {

// "x", "y"; of many, the first.
template <class Items, class Name>
std::string names_in(const Items& items, Name&& name_of_item) {
  std::string text;
  size_t shown = 0;
  for (auto& item : items) {
    if (shown == 8) return text + ", …";
    text += fmt::format("{}\"{}\"", shown++ ? ", " : "", printable(name_of_item(item)));
  }
  return text.empty() ? "none" : text;
}

}  // namespace

// ---- named tensors

const Tensor* NamedTensors::find(std::string_view name) const {
  for (auto& [key, tensor] : entries_)
    if (key == name) return &tensor;
  return nullptr;
}

const Tensor& NamedTensors::operator[](std::string_view name) const {
  if (const Tensor* found = find(name)) return *found;
  throw ValueError(fmt::format("there is no tensor \"{}\"; there are {}", printable(name),
                               names_in(entries_, [](auto& e) { return e.first; })));
}

const Tensor& NamedTensors::at_place(int64_t place) const {
  if (place >= 0 && std::cmp_less(place, entries_.size()))
    return entries_[static_cast<size_t>(place)].second;
  throw IndexError(
      fmt::format("there is no tensor {} of {}, counted from 0", place, entries_.size()));
}

// ---- programs

struct Program::State {
  ForkMutex mutex{ForkOrder::calls};
  std::string name;           // of the file, for errors
  graph::SavedProgram saved;  // its tensors hold the memory
  std::vector<NamedShape> inputs, outputs;
  std::unique_ptr<graph::Program> program;
  Device device;

  const Tensor& checked_input(size_t k, const NamedTensors& given) const;
  void require_known(const NamedTensors& given) const;
  void take_state();
};

namespace {

std::vector<NamedShape> inputs_of(const graph::SavedProgram& p) {
  std::vector<NamedShape> inputs;
  for (auto& in : p.inputs) inputs.push_back({in.name, in.shape, in.dtype});
  return inputs;
}

std::vector<NamedShape> outputs_of(const graph::SavedProgram& p) {
  std::vector<NamedShape> outputs;
  for (auto& r : p.results) {
    if (r.input < 0)
      outputs.push_back({r.name, r.shape, r.dtype});
    else if (static_cast<size_t>(r.input) < p.inputs.size())
      outputs.push_back({r.name, p.inputs[static_cast<size_t>(r.input)].shape,
                         p.inputs[static_cast<size_t>(r.input)].dtype});
    else
      throw CheckpointError("its program is damaged: a result is no input of it");
  }
  return outputs;
}

double value_of(const graph::SavedNumber& n, tn_scalar now) {
  return n.counts ? static_cast<double>(now.i) : now.f;
}

// A rate that set() would refuse is none of a recorded program.
void require_numbers(const graph::SavedProgram& p) {
  for (auto& n : p.numbers) {
    const bool good = n.counts ? n.value.value.i >= 1 && n.value.value.i <= (int64_t{1} << 53)
                               : std::isfinite(n.value.value.f) && n.value.value.f >= 0;
    if (!good)
      throw CheckpointError(fmt::format("its program is damaged: the number \"{}\" is {}",
                                        excerpt(n.name), number_text(value_of(n, n.value.value))));
  }
}

// Adds the name of the file to what is wrong with it.
template <class Body>
auto loading(const std::filesystem::path& path, Body&& body) {
  const auto text = [&](const std::exception& error) {
    return fmt::format("cannot load program '{}': {}", printable(path.native()), error.what());
  };
  try {
    return body();
  } catch (const NamedFileError& error) {
    throw CheckpointError(error.what());
  } catch (const OutOfMemoryError& error) {
    throw OutOfMemoryError(text(error));
  } catch (const UnsupportedError& error) {
    throw UnsupportedError(text(error));
  } catch (const PluginError& error) {
    throw PluginError(text(error));
  } catch (const DeviceError& error) {
    throw DeviceError(text(error));
  } catch (const std::bad_alloc&) {
    throw CheckpointError(fmt::format(
        "cannot load program '{}': the host has no memory left for it", printable(path.native())));
  } catch (const Error& error) {
    throw CheckpointError(text(error));
  }
}

std::unique_ptr<graph::Program> made_of(const graph::SavedProgram& saved, DeviceContext& context,
                                        bool device_graphs) {
  auto [trace, wiring] = graph::restore_trace(saved, context);
  std::string why;
  auto program = graph::Program::make(std::move(trace), std::move(wiring),
                                      CompilePasses{.device_graphs = device_graphs}, why);
  if (!program) throw ValueError(why);
  program->generator = saved.random;
  for (size_t i = 0; i < saved.numbers.size(); ++i)
    program->numbers[i] = saved.numbers[i].value.value;
  return program;
}

}  // namespace

Program Program::load(const std::filesystem::path& path, const ProgramOptions& options) {
  return loading(path, [&] {
    const VerifiedFile file(path);
    auto state = std::make_unique<State>();
    state->name = printable(path.native());
    state->saved = read_program(file);
    match_tensors(file, state->saved);
    require_numbers(state->saved);
    state->inputs = inputs_of(state->saved);
    state->outputs = outputs_of(state->saved);
    state->device = options.device.value_or(state->saved.device);
    DeviceContext& context = context_of(state->device);
    read_tensors(file, state->saved, state->device);
    file.verify_rest();
    state->program = made_of(state->saved, context, options.device_graphs);
    state->saved.device = state->device;
    return Program(std::move(state));
  });
}

Program::Program(std::unique_ptr<State> state) : state_(std::move(state)) {}
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;
Program::~Program() = default;

Program::State& Program::state() const {
  if (!state_) throw ValueError("Program: this object was moved from");
  return *state_;
}

Device Program::device() const { return state().device; }
const std::vector<NamedShape>& Program::inputs() const { return state().inputs; }
const std::vector<NamedShape>& Program::outputs() const { return state().outputs; }

void Program::State::require_known(const NamedTensors& given) const {
  for (auto& [name, tensor] : given) {
    bool known = false;
    for (auto& in : inputs) known |= in.key == name;
    if (!known)
      throw ValueError(fmt::format("the program of '{}' has no input \"{}\"; it has {}", this->name,
                                   printable(name),
                                   names_in(inputs, [](auto& in) { return in.key; })));
    const auto has_the_name = [&](auto& entry) { return entry.first == name; };
    if (std::count_if(given.begin(), given.end(), has_the_name) > 1)
      throw ValueError(fmt::format("the input \"{}\" of the program of '{}' is given twice",
                                   printable(name), this->name));
  }
}

const Tensor& Program::State::checked_input(size_t k, const NamedTensors& given) const {
  const graph::SavedInput& in = saved.inputs[k];
  const Tensor* tensor = given.find(in.name);
  const auto text = [&](const std::string& why) {
    return fmt::format("input \"{}\" of the program of '{}' {}", printable(in.name), name, why);
  };
  if (!tensor || !tensor->defined())
    throw ValueError(text(fmt::format("is missing; it is {} {}", in.dtype, in.shape)));
  const TensorImpl& t = impl_of(*tensor);
  if (t.dtype != in.dtype)
    throw DTypeError(
        text(fmt::format("is {}, found {}; convert it with .to()", in.dtype, t.dtype)));
  if (t.shape != in.shape)
    throw ShapeError(text(fmt::format(
        "has the shape {}, found {}: a program is made for one shape. Save the function after it "
        "ran with this one",
        in.shape, t.shape)));
  if (t.device != device)
    throw DeviceError(text(fmt::format("is on {}, and the program on {}; move it with .to(\"{}\")",
                                       t.device, device, device)));
  for (size_t d = 0; d < t.shape.size(); ++d)
    if (t.shape[d] > 1 && t.strides[d] != in.strides[d])
      throw ValueError(text(fmt::format(
          "has the strides {}, found {}: pass .contiguous(), or what else lies so in memory",
          in.strides, t.strides)));
  if (in.changed && grad_enabled() && tensor->requires_grad())
    throw AutogradError(text(
        "is changed in place by it and requires a gradient, which is not recorded; run it inside "
        "tenon::NoGrad, or give it .detach()"));
  return *tensor;
}

NamedTensors Program::run(const NamedTensors& inputs) {
  recording::refuse("it runs a program of a file");
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.require_known(inputs);
  std::vector<const Tensor*> arguments;
  for (size_t k = 0; k < s.inputs.size(); ++k) arguments.push_back(&s.checked_input(k, inputs));
  if (const char* why = s.program->obstacle(arguments))
    throw ValueError(fmt::format("the program of '{}' cannot run: {}", s.name, why));
  std::vector<Tensor> results;
  s.program->run(arguments, results);
  for (size_t i = 0; i < s.saved.numbers.size(); ++i)
    if (s.saved.numbers[i].counts) ++s.program->numbers[i].i;
  NamedTensors outputs;
  for (size_t i = 0; i < results.size(); ++i) outputs.add(s.outputs[i].key, std::move(results[i]));
  return outputs;
}

// ---- its state

std::vector<ProgramNumber> Program::numbers() const {
  std::lock_guard lock(state().mutex);
  std::vector<ProgramNumber> all;
  const auto& known = state().saved.numbers;
  for (size_t i = 0; i < known.size(); ++i)
    all.push_back(
        {known[i].name, value_of(known[i], state().program->numbers[i]), known[i].counts});
  return all;
}

double Program::number(std::string_view name) const {
  const auto all = numbers();
  for (auto& n : all)
    if (n.name == name) return n.value;
  throw ValueError(fmt::format("the program of '{}' has no number \"{}\"; it has {}", state().name,
                               printable(name), names_in(all, [](auto& n) { return n.name; })));
}

void Program::set(std::string_view name, double value) {
  number(name);  // or its error
  std::lock_guard lock(state().mutex);
  const auto& known = state().saved.numbers;
  for (size_t i = 0; i < known.size(); ++i) {
    if (known[i].name != name) continue;
    if (known[i].counts)
      throw ValueError(fmt::format("the program of '{}' counts \"{}\" itself; it cannot be set",
                                   state().name, printable(name)));
    if (!std::isfinite(value) || value < 0)
      throw ValueError(fmt::format("\"{}\" has to be finite and at least 0, found {}",
                                   printable(name), number_text(value)));
    state().program->numbers[i].f = value;
  }
}

void Program::manual_seed(uint64_t seed) {
  std::lock_guard lock(state().mutex);
  state().program->generator = RandomState{seed, 0};
}

Strides Program::input_strides(std::string_view name) const {
  for (auto& in : state().saved.inputs)
    if (in.name == name) return in.strides;
  throw ValueError(fmt::format("the program of '{}' has no input \"{}\"; it has {}", state().name,
                               printable(name),
                               names_in(state().inputs, [](auto& in) { return in.key; })));
}

Tensor Program::tensor(std::string_view name) const {
  std::lock_guard lock(state().mutex);
  for (auto& t : state().saved.tensors)
    if (t.name == name) return memory_of(t).clone();
  throw ValueError(fmt::format("the program of '{}' has no tensor \"{}\"; it has {}", state().name,
                               printable(name),
                               names_in(state().saved.tensors, [](auto& t) { return t.name; })));
}

void Program::State::take_state() {
  saved.random = *program->generator;
  for (size_t i = 0; i < saved.numbers.size(); ++i)
    saved.numbers[i].value.value = program->numbers[i];
}

void Program::save(const std::filesystem::path& path) const {
  std::lock_guard lock(state().mutex);
  naming_lack_of_memory<CheckpointError>("cannot save program", path, [&] {
    state().take_state();
    write_program(path, state().saved);
  });
}

// ---- what a file says

ProgramInfo inspect_program(const std::filesystem::path& path) {
  return loading(path, [&] {
    const VerifiedFile file(path);
    graph::SavedProgram p = read_program(file);
    match_tensors(file, p);
    require_numbers(p);
    file.verify_rest();
    ProgramInfo info{.file_bytes = file.size(),
                     .format_version = kCheckpointFormatVersion,
                     .program_version = kProgramVersion,
                     .device = p.device.str(),
                     .inputs = inputs_of(p),
                     .outputs = outputs_of(p),
                     .tensors = {},
                     .numbers = {},
                     .operators = {},
                     .draws = p.num_draws};
    for (auto& t : p.tensors) {
      info.tensors.push_back({t.name, t.shape, t.dtype});
      info.tensor_bytes += static_cast<uint64_t>(t.shape.numel()) * size_of(t.dtype);
    }
    for (auto& n : p.numbers)
      info.numbers.push_back({n.name, value_of(n, n.value.value), n.counts});
    for (auto& v : p.values)
      if (v.kind == graph::SavedKind::inside &&
          __builtin_add_overflow(info.inside_bytes, v.bytes, &info.inside_bytes))
        throw CheckpointError("its program is damaged: its values are larger than any memory");
    for (auto& node : p.nodes) {
      ProgramOperator& op = info.operators.emplace_back();
      op.name = node.call.op->name;
      op.module = node.path;
      for (auto& t : node.call.inputs)
        if (t) op.inputs.push_back({"", t->shape, t->dtype});
      for (auto& o : node.outputs)
        if (o.kind != OutputKind::absent) op.outputs.push_back({"", o.shape, o.dtype});
    }
    return info;
  });
}

}  // namespace tenon
