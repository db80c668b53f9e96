// A trace whose numbers can be listed and replaced: those of its plans' calls as well.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <tenon/core/graph/match.h>
#include <tenon/core/graph/saved.h>
#include <tenon/core/graph/size_laws.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

struct OpenTrace {
  struct Node {
    CallDesc call;  // of a flat one, all tensors have the shape of the call, row-major
    std::vector<SavedOutput> outputs;
  };
  Trace trace;
  std::vector<Node> nodes;            // those of works of the host are empty
  std::vector<TensorDesc> arguments;  // those that are undefined are scalars
};

// Returns for each input the first one in the same memory.
std::vector<uint32_t> first_in_memory(std::span<const Input> inputs);

// Returns what each of them is like.
std::vector<TensorDesc> described(std::span<const Tensor* const> arguments);

// Whether strides lead to the same elements: in dimensions of size 1, they mean nothing.
bool same_strides(const Shape& shape, const Strides& a, const Strides& b);

// Opens a trace. Offsets of accesses that go through inputs count from the first input in the same
// memory then, and random numbers, which are no numbers of the function, are zeros.
OpenTrace open_trace(Trace trace, const Wiring& wiring, std::vector<TensorDesc> arguments);

// What is done to each number that may depend on sizes: first to those of the nodes in their order.
class NumberVisitor {
 public:
  virtual void integer(int64_t& number) = 0;
  // A dimension of a shape.
  virtual void size(int64_t& number) { integer(number); }
  virtual void scalar(Scalar& number) = 0;
  // A stride of a contiguous tensor in a dimension of size 1, which may be anything.
  virtual void stride_of_one(int64_t& number) = 0;

  // Visits all numbers of a trace, those of equal structure in the same order.
  void visit(OpenTrace& open);
  // Visits those of the call of one node.
  void visit(OpenTrace::Node& node, TraceNode& of);
  // For who has more of them.
  void bytes(uint64_t& number);
  void list(Shape& numbers);
  void shape(Shape& sizes);
  void attributes(Attrs& attributes);

 protected:
  ~NumberVisitor() = default;

 private:
  void strides(const Shape& shape, Strides& strides);
  void tensor(TensorDesc& tensor);
};

// All of them.
struct NumberList final : NumberVisitor {
  void integer(int64_t& number) override { integers.push_back(number); }
  void scalar(Scalar& number) override { scalars.push_back(number); }
  void stride_of_one(int64_t&) override { integers.push_back(kAnyNumber); }
  bool is_like(const NumberList& o) const {
    return integers.size() == o.integers.size() && scalars.size() == o.scalars.size();
  }
  // Whether the numbers are the same, except those that mean nothing in one of the calls.
  bool is_same(const NumberList& o) const;
  std::vector<int64_t> integers;
  std::vector<Scalar> scalars;
};

}  // namespace tenon::graph
