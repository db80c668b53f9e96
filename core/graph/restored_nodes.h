// What the trace of a file is put together from.
#pragma once

#include <tenon/core/graph/saved.h>
#include <tenon/core/runtime/context.h>

namespace tenon::graph {

bool same_output(const SavedOutput& a, const SavedOutput& b);
// Whether one plan does for both.
bool same_node(const SavedNode& a, const SavedNode& b);

// These know operators, which this room does not, so core/graph/passes defines them.

// Whether recorded functions never call the operator. Its program is one that the process has made.
bool is_made_by_passes(const Op& op);
// Returns a node that fills a value of the trace with zeros. Its access and its number are added to
// the trace.
TraceNode fill_with_zeros(Trace& trace, uint32_t value, DeviceContext& context);

}  // namespace tenon::graph
