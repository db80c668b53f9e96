// The commands of `tenon program`: programs in files, which compiled functions have saved.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/core.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/factories.h>
#include <tenon/core/ops/random.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/random.h>
#include <tenon/serialization/checkpoint.h>
#include <tenon/serialization/program/program.h>

#include "checkpoint_commands.h"
#include "commands.h"
#include "help.h"

namespace tenon::tools {
namespace {

using nlohmann::json;

struct ProgramChoice {
  std::string path, device;
  bool as_json = false;
};

struct ProgramRun : ProgramChoice {
  std::vector<std::string> inputs, numbers;
  std::string output, save, seed;
  uint64_t repeat = 1;
};

// An option that is given has a value: an empty one is none that was left out.
CLI::Option* add_text(CLI::App* command, const char* name, std::string& value, const char* help) {
  return command->add_option(name, value, help)->check([name](const std::string& text) {
    return text.empty() ? fmt::format("{} is empty; give it a value, or leave it out", name)
                        : std::string();
  });
}

// "1 operator", "2 operators".
std::string counted(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

std::string text_of(const NamedShape& t) {
  return fmt::format("{} {}", name_of(t.dtype), t.shape.str());
}
std::string text_of(const std::vector<NamedShape>& tensors) {
  std::string text;
  for (auto& t : tensors) text += (text.empty() ? "" : ", ") + text_of(t);
  return text;
}

json described_tensors(const std::vector<NamedShape>& tensors) {
  json list = json::array();
  for (auto& t : tensors)
    list.push_back({{"name", t.key},
                    {"dtype", name_of(t.dtype)},
                    {"shape", std::vector<int64_t>(t.shape.begin(), t.shape.end())}});
  return list;
}

json described_program(const ProgramInfo& info) {
  json numbers = json::array(), operators = json::array();
  for (auto& n : info.numbers)
    numbers.push_back({{"name", n.name}, {"value", json_number(n.value)}, {"counts", n.counts}});
  for (auto& op : info.operators)
    operators.push_back({{"name", op.name},
                         {"module", op.module},
                         {"inputs", described_tensors(op.inputs)},
                         {"outputs", described_tensors(op.outputs)}});
  return {{"bytes", info.file_bytes},
          {"format_version", info.format_version},
          {"program_version", info.program_version},
          {"device", info.device},
          {"inputs", described_tensors(info.inputs)},
          {"outputs", described_tensors(info.outputs)},
          {"numbers", std::move(numbers)},
          {"operators", std::move(operators)},
          {"tensors", described_tensors(info.tensors)},
          {"tensor_bytes", info.tensor_bytes},
          {"inside_bytes", info.inside_bytes},
          {"draws", info.draws}};
}

void print_tensors(const char* title, const std::vector<NamedShape>& tensors) {
  std::cout << title << (tensors.empty() ? ": none\n" : ":\n");
  std::vector<std::vector<std::string>> rows;
  for (auto& t : tensors)
    rows.push_back({"  " + t.key, std::string(name_of(t.dtype)), t.shape.str()});
  print_table(rows);
}

void show_program(const ProgramChoice& choice) {
  const ProgramInfo info = inspect_program(choice.path);
  if (choice.as_json) return print_json(described_program(info));
  std::cout << printable(choice.path) << ": program version " << info.program_version << ", format "
            << info.format_version << ", " << human_bytes(info.file_bytes)
            << ", all checksums right\nrecorded on " << info.device << "\n";
  print_tensors("inputs", info.inputs);
  print_tensors("outputs", info.outputs);
  std::cout << (info.numbers.empty() ? "numbers: none\n" : "numbers:\n");
  std::vector<std::vector<std::string>> rows;
  for (auto& n : info.numbers)
    rows.push_back({"  " + n.name, number_of(n.value), n.counts ? "counts itself" : "may be set"});
  print_table(rows);
  std::cout << "memory: " << human_bytes(info.tensor_bytes) << " in "
            << counted(info.tensors.size(), "tensor") << ", and up to "
            << human_bytes(info.inside_bytes) << " in a run\n"
            << "random draws: " << info.draws << "\n"
            << counted(info.operators.size(), "operator") << ":\n";
  rows.clear();
  for (auto& op : info.operators)
    rows.push_back({"  " + op.name, op.module, text_of(op.inputs) + " -> " + text_of(op.outputs)});
  print_table(rows);
  print_tensors("tensors", info.tensors);
}

std::optional<Device> device_of(const ProgramChoice& choice) {
  if (choice.device.empty()) return std::nullopt;
  return Device(choice.device);
}

// Whether the program can be made on its device is found out where there is one.
void verify_program(const ProgramChoice& choice) {
  ProgramInfo info;
  std::string where;
  try {
    info = inspect_program(choice.path);
    try {
      where = "runs on " + Program::load(choice.path, {.device = device_of(choice)}).device().str();
    } catch (const UnsupportedError&) {  // there is one, and it cannot run this
      throw;
    } catch (const OutOfMemoryError&) {
      throw;
    } catch (const DeviceError& error) {
      if (!choice.device.empty()) throw;
      where = fmt::format("not tried on {}: {}", info.device, error.what());
    }
  } catch (const Error& error) {
    if (choice.as_json) print_json({{"right", false}, {"error", error.what()}});
    throw;
  }
  if (choice.as_json)
    return print_json({{"right", true},
                       {"bytes", info.file_bytes},
                       {"operators", info.operators.size()},
                       {"tensors", info.tensors.size()},
                       {"device", where}});
  std::cout << printable(choice.path) << ": right; " << counted(info.operators.size(), "operator")
            << ", " << counted(info.tensors.size(), "tensor") << ", "
            << human_bytes(info.file_bytes) << "; " << printable_lines(where) << "\n";
}

// Splits "x=FILE.npy".
std::pair<std::string, std::string> split_setting(const std::string& text, const char* option,
                                                  const char* wanted) {
  const size_t equals = text.find('=');
  if (equals == text.npos || equals == 0)
    throw ValueError(fmt::format("{} \"{}\" is not {}", option, excerpt(text), wanted));
  return {text.substr(0, equals), text.substr(equals + 1)};
}

Tensor made_input(const NamedShape& in, const std::string& value) {
  if (value == "zeros") return zeros(in.shape, in.dtype);
  if (value == "ones") return ones(in.shape, in.dtype);
  if (value == "random")
    return is_floating_point(in.dtype) ? randn(in.shape).to(in.dtype)
                                       : randint(0, 2, in.shape).to(in.dtype);
  const nn::StateDict tensors = load(value);
  if (tensors.size() != 1)
    throw ValueError(fmt::format("input \"{}\": '{}' holds {} tensors, not one", printable(in.key),
                                 printable(value), tensors.size()));
  return tensors[0].second;
}

// As the program wants it to lie in memory, where a format says how.
Tensor laid_out(const Tensor& t, const Strides& strides) {
  if (t.strides() == strides) return t;
  for (const MemoryFormat format : {channels_last, channels_last_3d})
    if (t.dim() == (format == channels_last ? 4 : 5))
      if (const Tensor other = t.contiguous(format); other.strides() == strides) return other;
  return t;
}

NamedTensors inputs_for(const Program& program, const ProgramRun& options) {
  NamedTensors inputs;
  for (auto& text : options.inputs) {
    const auto [name, value] =
        split_setting(text, "--input", "NAME=FILE.npy, NAME=random, NAME=zeros or NAME=ones");
    const auto known = std::find_if(program.inputs().begin(), program.inputs().end(),
                                    [&, &name = name](auto& in) { return in.key == name; });
    if (known == program.inputs().end()) program.input_strides(name);  // its error
    inputs.add(
        name,
        laid_out(made_input(*known, value), program.input_strides(name)).to(program.device()));
  }
  return inputs;
}

// The value of a tensor of one element, or the mean of all.
std::string summary_of(const Tensor& t) {
  if (t.numel() == 0) return "empty";
  const auto values = t.to_vector<double>();
  double sum = 0;
  for (const double value : values) sum += value;
  return (values.size() == 1 ? "" : "mean ") + number_of(sum / static_cast<double>(values.size()));
}

void print_run(const ProgramRun& options, const NamedTensors& outputs, double seconds) {
  const double each = seconds / static_cast<double>(options.repeat);
  if (options.as_json) {
    json list = json::array();
    for (auto& [name, tensor] : outputs)
      list.push_back({{"name", name},
                      {"dtype", name_of(tensor.dtype())},
                      {"shape", std::vector<int64_t>(tensor.shape().begin(), tensor.shape().end())},
                      {"summary", summary_of(tensor)}});
    return print_json({{"runs", options.repeat}, {"seconds", each}, {"outputs", std::move(list)}});
  }
  std::vector<std::vector<std::string>> rows;
  for (auto& [name, tensor] : outputs)
    rows.push_back(
        {name, std::string(name_of(tensor.dtype())), tensor.shape().str(), summary_of(tensor)});
  print_table(rows);
  std::cout << options.repeat << (options.repeat == 1 ? " run, " : " runs, ")
            << number_of(each * 1e3) << " ms each\n";
}

void write_outputs(const std::string& path, const NamedTensors& outputs) {
  nn::StateDict tensors;
  for (auto& [name, tensor] : outputs) tensors.set(name, tensor);
  path.ends_with(".safetensors") ? save_safetensors(path, tensors) : save(path, tensors);
}

void run_program(const ProgramRun& options) {
  if (!options.seed.empty()) manual_seed(std::stoull(options.seed));
  Program program = Program::load(options.path, {.device = device_of(options)});
  if (!options.seed.empty()) program.manual_seed(std::stoull(options.seed));
  for (auto& text : options.numbers) {
    const auto [name, value] = split_setting(text, "--set", "NAME=NUMBER");
    double number = 0;
    if (!CLI::detail::lexical_cast(value, number))
      throw ValueError(fmt::format("--set \"{}\" is not NAME=NUMBER", excerpt(text)));
    program.set(name, number);
  }
  const NamedTensors inputs = inputs_for(program, options);
  NamedTensors outputs;
  const auto began = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < options.repeat; ++i) outputs = program.run(inputs);
  for (auto& [name, tensor] : outputs) tensor.wait();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  if (!options.output.empty()) write_outputs(options.output, outputs);
  if (!options.save.empty()) program.save(options.save);
  print_run(options, outputs, took.count());
}

void add_choice(CLI::App* command, ProgramChoice& choice, bool with_device) {
  command->add_option("FILE", choice.path, "A file that a compiled function was saved to")
      ->required();
  command->add_flag("--json", choice.as_json, "Print one JSON object");
  if (with_device)
    add_text(command, "--device", choice.device,
             "Where it runs; by default on the device on which it was recorded");
}

void add_run(CLI::App* program) {
  auto* run = program->add_subcommand("run", "Run a program and print its outputs");
  auto options = std::make_shared<ProgramRun>();
  add_choice(run, *options, true);
  run->add_option("--input", options->inputs,
                  "NAME=FILE.npy, or NAME=random, NAME=zeros, NAME=ones; one for each input")
      ->type_name("NAME=VALUE");
  run->add_option("--set", options->numbers, "A number of the program, such as lr=0.01")
      ->type_name("NAME=NUMBER");
  run->add_option("--repeat", options->repeat, "How often it runs with these inputs (default: 1)")
      ->check(CLI::Range(uint64_t{1}, uint64_t{1} << 32));
  add_text(run, "--seed", options->seed, "Of random inputs and of the program's own generator")
      ->check(check_whole_number);
  add_text(run, "--output", options->output,
           "A file for the outputs of the last run: a checkpoint, or *.safetensors");
  add_text(run, "--save", options->save, "A file for the program as it is then");
  run->callback([options] { run_program(*options); });
}

}  // namespace

void add_program(CLI::App& app) {
  auto* program =
      app.add_subcommand("program", "Show, run and check programs that compiled functions saved")
          ->require_subcommand(1);
  auto choice = std::make_shared<ProgramChoice>();
  auto* show = program->add_subcommand(
      "show", "List inputs, outputs, numbers, operators, tensors and memory, without a device");
  add_choice(show, *choice, false);
  show->callback([choice] { show_program(*choice); });
  add_run(program);
  auto* verify = program->add_subcommand(
      "verify", "Check every byte, and that the program can be made on its device");
  add_choice(verify, *choice, true);
  verify->callback([choice] { verify_program(*choice); });
}

}  // namespace tenon::tools
