#include <fmt/core.h>

#include <tenon/core/graph/optimize.h>
#include <tenon/core/graph/passes/passes.h>

namespace tenon::graph {

namespace {

void note_removed(Notes& notes, const char* what, size_t count) {
  if (count) notes.push_back(fmt::format("removed: {} {}", count, what));
}

}  // namespace

void optimize(Trace& trace, Wiring& wiring, const CompilePasses& passes, Notes& notes) {
  Draft draft(trace, wiring);
  if (passes.dead_code)
    note_removed(notes, "operators whose results nobody needs", remove_dead_code(draft));
  if (passes.common_subexpressions)
    note_removed(notes, "operators that compute something again",
                 share_common_subexpressions(draft));
  if (passes.copies) note_removed(notes, "copies", remove_copies(draft));
  if (passes.constants)
    note_removed(notes, "operators that always compute the same", fold_constants(draft));
  if (passes.residuals) fold_residuals(draft, passes.pointwise, notes);
  if (passes.activations) fold_activations(draft, notes);
  if (passes.pointwise) fuse_pointwise(draft, notes);
}

}  // namespace tenon::graph
