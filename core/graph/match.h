// Whether two calls did the same, and what of it belongs to the arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/core/graph/trace.h>

namespace tenon::graph {

// Which accesses of a trace go through its inputs, and so reach different memory in each call. This
// is only known if the input had different memory in the two calls, because a tensor that a
// function reads from outside may also be its argument. An input that had the same memory in both
// calls is pinned to it.
struct Wiring {
  std::vector<int32_t> input_of_access;  // -1: the storage itself
  std::vector<bool> pinned;              // for each input
};

struct Match {
  std::string difference;        // the first; empty if there is none
  bool number_differs = false;   // it is a number of an operator, and all else agrees
  bool content_differs = false;  // the same, for values that the host gives to a tensor
  Wiring wiring;
};

// Compares a trace with an earlier one. `known` is the wiring of the earlier one, if it is known.
Match match(const Trace& earlier, const Wiring* known, const Trace& now);
// The same, where all numbers may differ that can follow from the sizes of arguments: shapes,
// strides, places in memory, attributes and numbers of operators. Ranks have to be the same.
Match match_but_sizes(const Trace& earlier, const Wiring* known, const Trace& now);

// Whether a leaf had a gradient before one of two calls and none before the other. A program of one
// is then never run in place of the other, so that both may take turns.
bool are_told_apart(const Trace& a, const Trace& b);

}  // namespace tenon::graph
