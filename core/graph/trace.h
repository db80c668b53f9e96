// What one call of a function did, as a recorder saw it: plans over the values of storages. Views
// do not exist here; a plan reads and writes a storage from an offset on.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <tenon/core/base/module_path.h>
#include <tenon/core/base/recording.h>
#include <tenon/core/base/ref.h>
#include <tenon/core/dispatch/attrs.h>
#include <tenon/core/dispatch/plan_cache.h>
#include <tenon/core/graph/program_ref.h>
#include <tenon/core/runtime/host_work.h>
#include <tenon/core/storage.h>
#include <tenon/core/tensor_impl.h>

namespace tenon::graph {

constexpr uint32_t kAbsent = ~uint32_t{0};

// A storage, in the order in which a call first used them.
struct Value {
  bool inside = false;  // it was allocated during the call
  const Storage* id = nullptr;
  ProgramRef<Storage> held;  // of what was not: so that no other storage gets its address
  uint64_t bytes = 0;
  bool written = false;   // a node of the trace wrote it
  bool constant = false;  // nodes of Trace::constants compute it, once for all replays
  Device device = {};
};

// Where a plan reads or writes. `value` is kAbsent for an input or output that is absent.
struct Access {
  uint32_t value = kAbsent;
  uint64_t offset = 0;  // in bytes from the start of the storage
};

// A number of a node that each run takes from Program::numbers.
struct LivingNumber {
  uint32_t scalar = 0;  // of the node
  uint32_t number = 0;
};

// What the host does itself between plans, such as a copy between devices. As a node it has the
// inputs `reads` and `changes`, and the outputs `changes` and what it makes.
struct HostWork {
  struct Form {
    DType dtype = DType::f32;
    Device device;
    Shape shape;
    Strides strides;
    bool operator==(const Form&) const = default;
  };
  std::string name;
  uint64_t identity = 0;                       // as in recording::HostWork
  std::shared_ptr<const std::string> content;  // null if it has none
  bool queues = true;
  std::vector<Form> forms;  // of the tensors that it reads, changes and makes
  uint32_t num_reads = 0, num_changes = 0;
  recording::Repeat again;

  // Returns the form of an input or output of the node; inputs come first.
  const Form& form_of(uint32_t access) const {
    const uint32_t inputs = num_reads + num_changes;
    return forms[access < inputs ? access : access - num_changes];
  }
};

// A plan, or else work of the host, to which passes leave its place and its tensors.
struct TraceNode {
  Ref<PlanEntry> plan;
  std::shared_ptr<const HostWork> work;  // null for a plan, and only then
  uint32_t first_access = 0;             // of Trace::accesses, inputs before outputs
  uint32_t num_inputs = 0, num_outputs = 0;
  uint32_t first_scalar = 0, num_scalars = 0;
  int32_t draw = -1;  // the number of the draw that its first two scalars are
  bool outputs_hold_values = false;
  bool flat = false;      // its plan is flattened, and `shape` is that of the call
  bool repeated = false;  // what was computed before, because it was not kept
  Shape shape;
  const PathNode* path = nullptr;
  std::vector<LivingNumber> living;

  std::string describe() const;
};

// What a plan of a host part reads or writes: a value of the trace, a storage from outside that the
// trace does not have, or one that begins and ends in the host part.
struct HostValue {
  uint32_t value = kAbsent;
  ProgramRef<Storage> held;
  uint64_t bytes = 0;
};

// What a host part queued itself, for who stores a program: its replays do it by Part::again.
struct HostPlans {
  std::vector<HostValue> values;
  std::vector<Access> accesses;  // of these values
  std::vector<Scalar> scalars;
  std::vector<TraceNode> nodes;
  // Why it could not be repeated without the host, if so.
  std::string fault;
};

// A tensor that is to be made again: a result, or the gradient of a leaf.
struct Kept {
  uint32_t value = 0;
  DType dtype = DType::f32;
  Shape shape;
  Strides strides;
  int64_t offset = 0;  // in elements
  bool requires_grad = false;
  Ref<Node> node;  // in place of a history that was spent
  uint32_t output = 0;
  uint64_t version = 0, written = 0;  // of its storage, at the end
};

// What the function returned: one of `kept`, an argument, or a tensor from outside. None of the
// three for an undefined tensor.
struct Result {
  int32_t kept = -1, argument = -1;
  ProgramRef<TensorImpl> outside;
};

// A leaf from outside whose gradient the call asked for or replaced.
struct Leaf {
  ProgramRef<TensorImpl> tensor;
  bool asked = false;  // before it was replaced
  bool replaced = false;
  bool shared = false;  // it may have replicas
  // The gradient before the call.
  bool had = false;
  Shape shape;
  Strides strides;
};

// The gradient of a leaf becomes this one of `kept`, or undefined.
struct Bind {
  uint32_t leaf = 0;
  int32_t kept = -1;
};

// Versions that plans of a part of the call added to a storage from outside.
struct VersionChange {
  uint32_t value = 0;
  uint64_t count = 0;
  uint32_t works = 0;  // how many works of the trace that queue came before
};

// Plans without an interruption, then the gradients that leaves got, then what the host does
// itself.
struct Part {
  uint32_t first_node = 0, end_node = 0;
  std::vector<VersionChange> versions;
  std::vector<Bind> binds;
  std::weak_ptr<const void> owner;  // of `again`
  std::function<void()> again;      // empty after the last part
  const char* host_name = nullptr;  // of whom it is
  recording::HostNumbers host_numbers;
  uint32_t first_host_node = 0, end_host_node = 0;  // of Trace::host
};

// A storage that is another one in each call: that of an argument, or of the gradient that a leaf
// had before the call.
struct Input {
  int32_t leaf = -1;      // of Trace::leaves; -1 for an argument
  int32_t argument = -1;  // its number among the arguments
  int32_t is_leaf = -1;   // which of Trace::leaves the argument itself is; -1 for none
  const Storage* id = nullptr;
  ProgramRef<Storage> held;
  uint64_t offset = 0, extent = 0;  // the bytes that its tensor spans, from this one on
};

struct Trace {
  std::string refusal;  // why nothing can be made of it; the rest has no meaning then
  Device device;        // of the first node, if that is a plan
  std::vector<Value> values;
  std::vector<Access> accesses;
  std::vector<Scalar> scalars;
  std::vector<TraceNode> nodes;
  std::vector<TraceNode> constants;  // what a pass took out of `nodes`
  std::vector<Part> parts;
  std::vector<Leaf> leaves;
  std::vector<Kept> kept;
  std::vector<Result> results;  // then what their history holds (core/graph/history.h)
  std::vector<Input> inputs;
  HostPlans host;
  uint32_t num_following = 0;  // of `results`: those that the function did not return
  uint32_t num_draws = 0;
  uint32_t num_numbers = 0;   // of LivingNumber
  uint64_t inside_bytes = 0;  // the most that eager execution had at once

  // How many tensors the function returned.
  size_t num_results() const { return results.size() - num_following; }
  const Access* inputs_of(const TraceNode& n) const { return accesses.data() + n.first_access; }
  const Access* outputs_of(const TraceNode& n) const { return inputs_of(n) + n.num_inputs; }
};

}  // namespace tenon::graph
