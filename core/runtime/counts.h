// The sums behind dispatch_stats().
#pragma once

#include <tenon/core/runtime/dispatch_stats.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/trace.h>

namespace tenon::observe {

void count_run(const Run& run) noexcept;
void count_plan(const PreparedPlan& plan) noexcept;
void count_copy(uint64_t bytes) noexcept;
enum class DetourKind : uint8_t {
  decomposed,
  on_cpu,
  hidden_copy,
  conversion,
  refused,
  widened,
};
void count_detour(DetourKind kind, const tracing::Detour& detour) noexcept;

// Texts for people, of several lines; empty if there is nothing to tell.
std::string text_of_runs(const DispatchStats& stats);
std::string text_of_detours(const std::vector<DispatchStats::Detours>& detours,
                            const char* headline);

}  // namespace tenon::observe
