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
  using Entry = std::pair<std::string, Tensor>;
  NamedTensors() = default;
  NamedTensors(std::initializer_list<Entry> entries) : entries_(entries) {}
  void add(std::string name, Tensor tensor) {
    entries_.emplace_back(std::move(name), std::move(tensor));
  }

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
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

 private:
  const Tensor& at_place(int64_t place) const;
  std::vector<Entry> entries_;
};

// A number that a program keeps and uses in each run.
struct ProgramNumber {
  std::string name;     // "lr", or "step"
  double value = 0;     // of the next run
  bool counts = false;  // it grows by one with each run, and cannot be set
};

struct ProgramOperator {
  std::string name;                         // "conv2d"
  std::string module;                       // in which it was recorded; empty outside modules
  std::vector<NamedShape> inputs, outputs;  // their keys are empty
};

// What a program file says of itself.
struct ProgramInfo {
  uint64_t file_bytes = 0;
  uint32_t format_version = 0;   // of the file, as of a checkpoint
  uint32_t program_version = 0;  // of what describes the program
  std::string device;            // on which it was recorded
  std::vector<NamedShape> inputs, outputs, tensors;
  std::vector<ProgramNumber> numbers;
  std::vector<ProgramOperator> operators;  // in order
  uint64_t tensor_bytes = 0;               // of the tensors
  uint64_t inside_bytes = 0;               // of what a run makes, if nothing shared memory
  uint32_t draws = 0;                      // of random numbers in a run
};

struct ProgramOptions {
  // Where it runs; by default on the device on which it was recorded.
  std::optional<Device> device = {};
  // As in CompilePasses: plans that stay the same from run to run are queued by one call.
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

  // Runs it once. Each input has to be there, with the dtype, shape, strides and device that
  // inputs() and device() say. Returns its outputs, in order; they are computed when they are read.
  // Throws a ValueError, ShapeError, DTypeError or DeviceError for inputs that do not fit, and has
  // done nothing then.
  NamedTensors run(const NamedTensors& inputs);

  Device device() const;
  // The same as what inspect_program says, except for numbers, which have their present values.
  const std::vector<NamedShape>& inputs() const;
  const std::vector<NamedShape>& outputs() const;
  std::vector<ProgramNumber> numbers() const;
  // Returns the strides that an input has to have.
  Strides input_strides(std::string_view name) const;
  // Returns a number. Throws a ValueError that lists the names if there is none.
  double number(std::string_view name) const;
  // Sets a learning rate. Throws a ValueError if there is no such number, if it counts, or unless
  // the value is finite and at least 0.
  void set(std::string_view name, double value);
  // Restarts the program's own generator of random numbers, which goes on where that of the process
  // was when the function was saved.
  void manual_seed(uint64_t seed);
  // Returns a tensor that the program uses, such as a weight: a copy on its device. Throws a
  // ValueError that lists some names if there is none.
  Tensor tensor(std::string_view name) const;

  // Writes the program with its state of now. Errors are those of tenon::save.
  void save(const std::filesystem::path& path) const;

 private:
  struct State;
  explicit Program(std::unique_ptr<State> state);
  State& state() const;
  std::unique_ptr<State> state_;
};

// Verifies every byte of a program file and describes it, without a device. Throws as
// Program::load.
TENON_API ProgramInfo inspect_program(const std::filesystem::path& path);

}  // namespace tenon
