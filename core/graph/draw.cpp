// Programs as pictures: what Graphviz makes of the text.
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/error.h>
#include <tenon/core/graph/compiled_state.h>

namespace tenon::detail {

namespace {

using namespace graph;

class Drawing {
 public:
  explicit Drawing(const Trace& trace) : trace_(trace), writer_(trace.values.size(), -1) {}

  std::string text() && {
    text_ = "digraph program {\n  node [shape=box, fontname=\"sans-serif\"];\n";
    for (size_t p = 0; p < trace_.parts.size(); ++p) {
      const Part& part = trace_.parts[p];
      for (uint32_t i = part.first_node; i < part.end_node; ++i) draw(i);
      if (part.again)
        text_ += fmt::format("  h{} [label=\"a step of an optimizer\", style=dashed];\n", p);
    }
    for (size_t i = 0; i < trace_.results.size(); ++i)
      if (const int32_t kept = trace_.results[i].kept; kept >= 0)
        draw_end(trace_.kept[static_cast<size_t>(kept)].value,
                 i < trace_.num_results() ? fmt::format("result {}", i) : "for backward");
    size_t gradient = 0;
    for (auto& part : trace_.parts)
      for (auto& bind : part.binds)
        if (bind.kept >= 0)
          draw_end(trace_.kept[static_cast<size_t>(bind.kept)].value,
                   fmt::format("gradient {}", gradient++));
    return std::move(text_) + "}\n";
  }

 private:
  void draw(uint32_t i) {
    const TraceNode& node = trace_.nodes[i];
    const char* const name = node.plan ? node.plan->name() : node.work->name.c_str();
    const std::string signature =
        node.plan ? node.plan->signature(node.flat ? &node.shape : nullptr) : "";
    text_ += fmt::format("  n{} [label=\"{}\", tooltip=\"{}\"];\n", i, name, signature);
    for (uint32_t k = 0; k < node.num_inputs; ++k)
      if (const uint32_t v = trace_.accesses[node.first_access + k].value; v != kAbsent)
        text_ += fmt::format("  {} -> n{};\n", source(v), i);
    for (uint32_t k = 0; k < node.num_outputs; ++k)
      if (const uint32_t v = trace_.accesses[node.first_access + node.num_inputs + k].value;
          v != kAbsent)
        writer_[v] = static_cast<int32_t>(i);
  }

  // Who wrote the value last, or the value itself where it is from outside.
  std::string source(uint32_t v) {
    if (writer_[v] >= 0) return fmt::format("n{}", writer_[v]);
    if (outside_.insert(v).second)
      text_ +=
          fmt::format("  v{} [label=\"{} bytes\", shape=ellipse];\n", v, trace_.values[v].bytes);
    return fmt::format("v{}", v);
  }
  void draw_end(uint32_t v, const std::string& name) {
    const std::string from = source(v);
    text_ += fmt::format("  \"{0}\" [shape=ellipse];\n  {1} -> \"{0}\";\n", name, from);
  }

  const Trace& trace_;
  std::vector<int32_t> writer_;
  std::set<uint32_t> outside_;  // that are drawn
  std::string text_;
};

}  // namespace

std::string CompiledCalls::to_dot(bool recorded) const {
  State& state = this->state();
  const auto lock = state.lock_outside("draw");
  for (auto& kind : state.kinds)
    for (auto& known : kind.programs)
      return Drawing(recorded ? known.program->recorded() : known.program->trace()).text();
  throw ValueError(
      "to_dot: there is no program to draw yet: call the compiled function twice, and see what "
      "explain() says if there is none then");
}

}  // namespace tenon::detail
