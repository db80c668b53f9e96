// The lists of tensors that optimizer steps take.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <tenon/core/dispatch/op.h>
#include <tenon/core/ops/optimizer.h>

namespace tenon {

// Inputs are lists of n tensors: parameters, gradients, then state. All but the gradients are
// changed in place and are outputs.
void infer_in_place(Infer& infer);

// Access to these lists by number.
struct ListsInPlace {
  explicit ListsInPlace(const Call& call)
      : in(call.inputs), n(static_cast<size_t>(call.attrs.get_int("n"))) {}
  Inputs in;
  size_t n;
  Tensor operator()(size_t list, size_t i) const { return *in[list * n + i]; }
  bool has(size_t list) const { return in.size() > list * n; }
  void outputs(std::vector<Tensor>& out) const;
};

// Returns the tensors of all lists that are not empty. Throws a ValueError for a list that has
// another length than the first, and for an undefined tensor.
std::vector<const Tensor*> gather_inputs(const char* op, std::initializer_list<TensorList> lists);
// Throws the ValueError "<op>: <name> are needed with these settings, …" unless a list is there
// exactly if it is wanted.
void require_list(const char* op, const char* name, bool there, bool wanted);
// Throws the ValueError "<op>: step counts from 1, found <step>".
void require_step(const char* op, int64_t step);
// For steps that are made of other operators: the checks that infer_in_place makes.
void require_fitting(const char* op, std::initializer_list<TensorList> lists);

}  // namespace tenon
