// What a compiled function tells about itself.
#include <algorithm>
#include <list>
#include <map>
#include <mutex>

#include <fmt/format.h>

#include <tenon/core/format.h>
#include <tenon/core/graph/compiled_state.h>
#include <tenon/core/runtime/context.h>

namespace tenon::detail {

namespace {

using namespace graph;

std::string text_of(const Signature& s) {
  std::string text;
  for (auto& kind : s.tensors) {
    if (!text.empty()) text += ", ";
    if (!kind.defined) {
      text += "undefined";
      continue;
    }
    text += fmt::format("{} {} on {}", kind.dtype, kind.shape, kind.device);
    if (kind.strides != Shape::row_major(kind.shape))
      text += fmt::format(" of strides {}", kind.strides);
    if (kind.grad) text += " with a gradient";
  }
  text = fmt::format("({}){}", text, s.grad ? "" : " under NoGrad");
  if (!s.sizes.empty()) text += fmt::format(" of a call with ({})", fmt::join(s.sizes, ", "));
  for (auto& guard : s.autocast)
    text += guard.enabled ? fmt::format(" under Autocast({})", guard.dtype) : " under NoAutocast";
  return text;
}

std::string operators_of(const Trace& trace) {
  std::map<std::string, size_t> counts;
  for (auto& node : trace.nodes) ++counts[node.work ? node.work->name : node.plan->name()];
  std::string text;
  for (auto& [name, count] : counts)
    text += fmt::format("{}{}{}", text.empty() ? "" : ", ", name,
                        count > 1 ? fmt::format(" x{}", count) : "");
  return text;
}

// Leaves out the backward passes that calls of all sizes share: the text about those calls has
// them.
std::string text_of(const History& history, const std::list<KnownDynamic>& dynamics) {
  const bool is_told = std::any_of(dynamics.begin(), dynamics.end(), [&](auto& known) {
    return known.calls.history() && history.has_passes_of(*known.calls.history());
  });
  return history.explain() + (is_told ? "" : history.explain_passes());
}

std::string text_of(const KnownProgram& known, const std::list<KnownDynamic>& dynamics) {
  const Trace& trace = known.program->trace();
  size_t host_parts = 0, gradients = 0;
  for (auto& part : trace.parts) {
    if (part.again) ++host_parts;
    for (auto& bind : part.binds) gradients += bind.kept >= 0;
  }
  std::string text = fmt::format(
      "    a program of {} operators, replayed {} times, made of {} that were recorded, {} "
      "results, "
      "{} gradients, {} random draws\n"
      "      memory: {} bytes in one piece, and {} of results and gradients{}\n",
      trace.nodes.size(), known.program->replays, known.program->recorded().nodes.size(),
      trace.num_results(), gradients, trace.num_draws, known.program->arena_bytes(),
      known.program->fresh_bytes(),
      trace.inside_bytes ? fmt::format("; eager execution had {} at most", trace.inside_bytes)
                         : "; what it does follows from calls of other sizes");
  if (const auto& devices = known.program->devices(); devices.size() > 1) {
    text += "      on";
    for (auto* context : devices) text += " " + context->name;
    text += "\n";
  }
  if (known.timing.is_known())
    text += fmt::format("      a replay took {:.1f} us, and the function itself {:.1f}\n",
                        known.timing.replay() * 1e6, known.timing.function() * 1e6);
  if (known.timing.aside())
    text += fmt::format(
        "      it is set aside, because it is slower: the function runs itself for "
        "the next {} calls\n",
        known.timing.aside());
  if (host_parts)
    text += fmt::format("      steps of optimizers, which the host takes: {}\n", host_parts);
  text += fmt::format("      operators: {}\n", operators_of(trace));
  for (auto& note : known.program->notes()) text += fmt::format("      {}\n", note);
  for (auto& note : known.program->graph_notes()) text += fmt::format("      {}\n", note);
  return known.history ? text + text_of(*known.history, dynamics) : text;
}

std::string text_of(const KnownDynamic& known) {
  std::string sizes;
  for (auto& call : known.calls.telling_sizes())
    sizes += fmt::format("{}({})", sizes.empty() ? "" : ", ", fmt::join(call, ", "));
  std::string text = fmt::format("  for all sizes, from calls with {}: ", sizes);
  text += known.calls.is_ready() ? fmt::format("{} programs follow from these\n", known.derived)
                                 : fmt::format("no program yet, because {}\n", known.calls.why());
  if (!known.fault.empty())
    text += fmt::format("    the last size of which none does: {}\n", known.fault);
  return known.calls.history() ? text + known.calls.history()->explain_passes() : text;
}

}  // namespace

std::string CompiledCalls::explain() const {
  State& state = this->state();
  const auto lock = state.lock_outside("explain");
  std::string text =
      fmt::format("a compiled function: {} calls recorded, {} not recorded, {} programs made",
                  state.recorded_calls, state.plain_calls, state.made + state.derived);
  text += state.derived
              ? fmt::format(", of which {} follow from calls of other sizes\n", state.derived)
              : "\n";
  if (!state.note.empty())
    text += fmt::format("  a call was not recorded, because {}\n", state.note);
  if (state.dropped)
    text += fmt::format(
        "  {} times the programs of the kind of arguments that was used longest ago were dropped, "
        "because CompileOptions::max_programs is {}\n",
        state.dropped, state.options.max_programs);
  if (const uint64_t calls = state.turns.turned_away())
    text += fmt::format(
        "  {} calls were not recorded, because more kinds of arguments take turns than "
        "CompileOptions::max_programs: raise it, or pad the arguments to fewer shapes\n",
        calls);
  if (const uint64_t calls = state.derived_turns.turned_away())
    text += fmt::format(
        "  {} calls had no program, because more than {} sizes take turns: raise "
        "CompileOptions::max_programs beyond that, or pad the arguments to fewer sizes\n",
        calls, std::max<size_t>(state.options.max_programs, kMaxDerived));
  for (auto& known : state.dynamics) text += text_of(known);
  if (state.refuted)
    text += "  what the function does was found to differ by size in a way that no law tells\n";
  if (!state.dynamic_note.empty())
    text += fmt::format("  the last call that was recorded tells nothing of other sizes: {}\n",
                        state.dynamic_note);
  size_t others = 0, replays = 0;
  for (auto& kind : state.kinds) {
    // Programs that were derived from the same calls have equal explanations, so one is enough.
    if (kind.derived && !kind.programs.empty() && &kind != &state.kinds.front()) {
      ++others;
      replays += kind.replays();
      continue;
    }
    text += fmt::format("  for {}:\n", text_of(kind.signature));
    for (auto& known : kind.programs) text += text_of(known, state.dynamics);
    if (kind.programs.empty() && kind.note.empty()) text += "    no program yet\n";
    if (!kind.note.empty())
      text += fmt::format("    {}: {}\n",
                          kind.programs.empty() ? "no program" : "the last one that was not used",
                          kind.note);
  }
  if (others)
    text += fmt::format("  for {} other sizes: programs that do the same, replayed {} times\n",
                        others, replays);
  return text;
}

}  // namespace tenon::detail
