// What makes a recorded trace smaller before it becomes a program. It knows operators, which this
// room does not, so core/graph/passes defines it.
#pragma once

#include <string>
#include <vector>

#include <tenon/core/graph/compile.h>
#include <tenon/core/graph/match.h>
#include <tenon/core/graph/trace.h>

namespace tenon::graph {

// Changes the nodes of the trace and what they read, and adds a line for each thing that explain()
// should tell. Results stay the same bit for bit.
void optimize(Trace& trace, Wiring& wiring, const CompilePasses& passes,
              std::vector<std::string>& notes);

}  // namespace tenon::graph
