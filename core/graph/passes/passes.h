// The passes that make a recorded trace smaller and faster before it becomes a program. Each is one
// file, may be switched off (CompileOptions::passes), and keeps every result bit for bit.
#pragma once

#include <string>
#include <vector>

#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/passes/draft.h>

namespace tenon::graph {

// What a pass says for explain(), such as "fused: mul, add, gelu".
using Notes = std::vector<std::string>;

// Each returns how many nodes fewer there are.

// Removes nodes whose results nobody needs.
size_t remove_dead_code(Draft& draft);
// Removes nodes that compute again what an earlier one has computed.
size_t share_common_subexpressions(Draft& draft);
// Removes copies whose source stays as it is until the copy is read for the last time.
size_t remove_copies(Draft& draft);
// Moves nodes that always compute the same small tensors to Trace::constants.
size_t fold_constants(Draft& draft);
// Makes additions of a tensor part of the products, convolutions and batch norms whose results they
// take. With `fuses`, those stay that pointwise operators follow, with which they will be fused.
size_t fold_residuals(Draft& draft, bool fuses, Notes& notes);
// Makes activations part of the products, convolutions and batch norms whose results they take.
size_t fold_activations(Draft& draft, Notes& notes);
// Puts pointwise operators that work on the same elements into one node each.
size_t fuse_pointwise(Draft& draft, Notes& notes);

}  // namespace tenon::graph
