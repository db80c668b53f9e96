// Programs in files: functions that were compiled, saved, and run without their source.
//
//   step.save("lenet.tenon", {.inputs = {"x", "y"}, .outputs = {"loss"}});   // tenon::compile
//   …
//   auto program = tenon::Program::load("lenet.tenon");
//   program.set("lr", 0.01);
//   tenon::Tensor loss = program.run({{"x", x}, {"y", y}})["loss"];
//
// docs/compile.md says what a program keeps of its function, and docs/checkpoints.md what the file
// is like.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/core/device.h>
#include <tenon/core/tensor.h>
#include <tenon/serialization/key_map.h>

namespace tenon {

// A few tensors with names, in order. Iterate with `for (auto& [name, tensor] : tensors)`.
class TENON_API NamedTensors {
 public:
  // A name and its tensor.
  using Entry = std::pair<std::string, Tensor>;
  // Makes an empty list.
  NamedTensors() = default;
  // Takes {{"x", x}, {"y", y}}.
  NamedTensors(std::initializer_list<Entry> entries) : entries_(entries) {}
  // Adds a tensor at the end.
  void add(std::string name, Tensor tensor) {
    entries_.emplace_back(std::move(name), std::move(tensor));
  }

  // Returns the number of tensors.
  size_t size() const { return entries_.size(); }
  // Returns the first tensor of that name, or null.
  const Tensor* find(std::string_view name) const;
  // Returns the tensor of that name. Throws a ValueError that lists the names if there is none.
  const Tensor& operator[](std::string_view name) const;
  // Returns the tensor at a place. Throws an IndexError if there is none.
  template <std::integral I>
  const Tensor& operator[](I place) const {
    return at_place(std::in_range<int64_t>(place) ? static_cast<int64_t>(place)
                                                  : std::numeric_limits<int64_t>::max());
  }
  // Return iterators over pairs of name and tensor.
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

 private:
  const Tensor& at_place(int64_t place) const;
  std::vector<Entry> entries_;
};

// A number that a program keeps and uses in each run.
struct ProgramNumber {
  // The name of the number, "lr" or "step".
  std::string name;
  // Its value in the next run.
  double value = 0;
  // True if it grows by one with each run, and cannot be set.
  bool counts = false;
};

// An operator that a program runs.
struct ProgramOperator {
  // The name of the operator, "conv2d".
  std::string name;
  // The module in which it was recorded; empty outside of modules.
  std::string module;
  // List what it takes and returns; their keys are empty.
  std::vector<NamedShape> inputs, outputs;
};

// Describes what is in a program file.
struct ProgramInfo {
  // The size of the file.
  uint64_t file_bytes = 0;
  // The version of the file, as of a checkpoint, and that of what describes the program.
  uint32_t format_version = 0;
  uint32_t program_version = 0;
  // The device on which it was recorded.
  std::string device;
  // The inputs and outputs, and the tensors that the program uses.
  std::vector<NamedShape> inputs, outputs, tensors;
  // The numbers that it uses.
  std::vector<ProgramNumber> numbers;
  // The operators in the order in which they run.
  std::vector<ProgramOperator> operators;
  // The bytes of the tensors, and those of what a run makes, if nothing shared memory.
  uint64_t tensor_bytes = 0;
  uint64_t inside_bytes = 0;
  // Counts how often a run draws random numbers.
  uint32_t draws = 0;
};

// Says where and how a program runs.
struct ProgramOptions {
  // Sets the device; by default it is the one on which the program was recorded.
  std::optional<Device> device = {};
  // Queues plans that stay the same from run to run by one call, as in CompilePasses.
  bool device_graphs = true;
};

// A program of a file, with its weights and whatever else it uses and changes: a program that
// trains goes on training. Nothing of the function that it was is needed, neither modules nor
// autograd. It may be moved, and not copied; two threads that run one program wait for each other.
class TENON_API Program {
 public:
  // Reads a file that Compiled::save or save() wrote. Every byte is compared with its checksum, and
  // everything that the file says is checked, before it is used. Throws a CheckpointError if it is
  // missing, damaged, of a newer version, no program, or makes no sense; an UnsupportedError if the
  // device lacks one of its operators; and a PluginError or DeviceError if there is no such device.
  static Program load(const std::filesystem::path& path, const ProgramOptions& options = {});
  Program(Program&&) noexcept;
  Program& operator=(Program&&) noexcept;
  ~Program();

  // Runs the program once and returns its outputs, in order; they are computed when they are read.
  // Each input has to be there, with the dtype, shape, strides and device that inputs(),
  // input_strides() and device() say. Throws a ValueError, ShapeError, DTypeError or DeviceError
  // for inputs that do not fit, and has done nothing then.
  NamedTensors run(const NamedTensors& inputs);

  // Returns the device on which it runs.
  Device device() const;
  // Returns the names, shapes and dtypes of the inputs, in order.
  const std::vector<NamedShape>& inputs() const;
  // Returns the names, shapes and dtypes of the outputs, in order.
  const std::vector<NamedShape>& outputs() const;
  // Returns the numbers with their present values.
  std::vector<ProgramNumber> numbers() const;
  // Returns the strides that an input has to have. Throws a ValueError that lists the names if
  // there is none.
  Strides input_strides(std::string_view name) const;
  // Returns the present value of a number. Throws a ValueError that lists the names if there is
  // none.
  double number(std::string_view name) const;
  // Sets a number, such as a learning rate, for the next runs. Throws a ValueError if there is no
  // such number, if it counts, or unless the value is finite and at least 0.
  void set(std::string_view name, double value);
  // Restarts the program's own generator of random numbers, which otherwise goes on where that of
  // the process was when the function was saved.
  void manual_seed(uint64_t seed);
  // Returns a tensor that the program uses, such as a weight: a copy on its device. Throws a
  // ValueError that lists some names if there is none.
  Tensor tensor(std::string_view name) const;

  // Writes the program with its present tensors, numbers and generator. Errors are those of
  // tenon::save.
  void save(const std::filesystem::path& path) const;

 private:
  struct State;
  explicit Program(std::unique_ptr<State> state);
  State& state() const;
  std::unique_ptr<State> state_;
};

// Verifies every byte of a program file and describes it, without a device. Throws as Program::load
// does.
TENON_API ProgramInfo inspect_program(const std::filesystem::path& path);

}  // namespace tenon
