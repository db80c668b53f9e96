// A program as a file holds it: the trace as it was recorded, with descriptors in place of plans.
// What a file is like, and the reading of values, is not known here (serialization/program).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <tenon/core/dispatch/descriptor.h>
#include <tenon/core/graph/match.h>
#include <tenon/core/graph/trace.h>
#include <tenon/core/random.h>

namespace tenon::graph {

class Program;
struct ArgumentKind;

struct SavedOutput {
  OutputKind kind = OutputKind::made;
  uint32_t input = 0;  // that is changed, if the kind is in_place
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
};

// The call is the one that the plugin saw: where its plan took copies of inputs, they have the
// strides of these. Of a flat one, all tensors have the shape of the call, row-major.
struct SavedNode {
  CallDesc call;
  std::vector<SavedOutput> outputs;
  std::vector<Access> accesses;  // inputs before outputs
  std::vector<Scalar> scalars;
  std::vector<LivingNumber> living;
  int32_t draw = -1;
  bool outputs_hold_values = false;
  bool repeated = false;  // what was computed before, because it was not kept
  std::string path;       // the module in which it ran; empty outside modules
};

// A storage: one that each run makes anew, an input, or a tensor of the program.
enum class SavedKind : uint8_t { inside, input, tensor };
struct SavedValue {
  SavedKind kind = SavedKind::inside;
  uint32_t index = 0;  // of the inputs or tensors
  uint64_t bytes = 0;
};

// An input begins at the start of its value.
struct SavedInput {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
  bool changed = false;  // in place
};

// Weights, buffers and what an optimizer remembers: memory that the program goes on to use. Each
// has one value, which begins with it. `memory` is a storage, of which `offset` is the first byte.
struct SavedTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  uint32_t value = 0;
  Ref<Storage> memory;
  uint64_t offset = 0;
};

// A result is an input, or a tensor over a value.
struct SavedResult {
  std::string name;
  int32_t input = -1;
  uint32_t value = 0;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
  int64_t offset = 0;  // in elements
};

// A number that lives on: a learning rate, which may be set, or the number of the next step.
struct SavedNumber {
  std::string name;
  bool counts = false;  // a whole number, which grows by one with each run
  Scalar value;
};

struct SavedProgram {
  // What attributes of its calls point to, if they are no literals: each text of a file once.
  std::unique_ptr<std::unordered_set<std::string>> texts;
  Device device;
  RandomState random;
  uint32_t num_draws = 0;
  std::vector<SavedValue> values;
  std::vector<SavedNode> nodes;
  std::vector<SavedInput> inputs;
  std::vector<SavedTensor> tensors;
  std::vector<SavedResult> results;
  std::vector<SavedNumber> numbers;
};

// Names for a program that is to be stored: of inputs and outputs in order, and of tensors from
// outside, such as the parameters of a model. What has none is called by its number, or by the
// operator that reads it.
struct SavedNames {
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, Tensor>> tensors;
};

// Returns what a program is made of, for arguments of these kinds. Its tensors share the memory of
// the original. Throws a ValueError for a program that cannot do without its function: it says why.
SavedProgram describe_program(const Program& program, std::span<const ArgumentKind> arguments,
                              const SavedNames& names);

// A program of a file that is ready to be made.
struct RestoredTrace {
  Trace trace;
  Wiring wiring;
};
// Makes a trace, with new plans for the device of `context`, in whose memory the tensors are by
// now. Nothing in `saved` is believed but shapes and memory of the tensors. Throws a ValueError
// that names the node for what no recorded program has, and what making a plan throws.
RestoredTrace restore_trace(const SavedProgram& saved, DeviceContext& context);

// In a file. Returns what is wrong with the names of a program, such as that two outputs have one
// name; nothing if a file can have them.
constexpr size_t kLongestName = 4096;
std::string fault_of_names(const SavedProgram& program);

// Returns how many bytes lie from the first byte of such a tensor to the end of its last. Throws a
// ValueError for shapes and strides that no tensor has.
uint64_t extent_in_memory(DType dtype, const Shape& shape, const Strides& strides);
// Whether `bytes` from byte `begin` on are among the first `all`.
constexpr bool lies_inside(uint64_t begin, uint64_t bytes, uint64_t all) {
  return begin <= all && bytes <= all - begin;
}
// The same of a tensor, which begins with element `offset`.
bool lies_inside(DType dtype, const Shape& shape, const Strides& strides, int64_t offset,
                 uint64_t all);

}  // namespace tenon::graph
