#include <algorithm>
#include <map>
#include <mutex>
#include <new>
#include <tuple>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/fork.h>
#include <tenon/core/base/never_destroyed.h>
#include <tenon/core/runtime/counts.h>

namespace tenon {

namespace {

using Detours = DispatchStats::Detours;

// Operators and plugins have one address for each of their names.
using RunKey = std::tuple<const char*, const char*, uint32_t, uint32_t>;
struct RunSum {
  Device device;
  uint64_t runs = 0;
  std::chrono::nanoseconds time{0};
};
struct PlanSum {
  Device device;
  uint64_t count = 0;
};
using DetourKey =
    std::tuple<observe::DetourKind, const char*, uint32_t, uint32_t, std::string, std::string>;

struct Counts {
  ForkMutex mutex{ForkOrder::tables};
  uint32_t generation = fork_generation();
  std::map<RunKey, RunSum> runs;
  std::map<RunKey, PlanSum> plans;
  std::map<DetourKey, Detours> detours;
  std::map<std::tuple<observe::DetourKind, const char*>, size_t> signatures;
  uint64_t copies = 0, copied_bytes = 0;

  void reset() {
    runs.clear();
    plans.clear();
    detours.clear();
    signatures.clear();
    copies = copied_bytes = 0;
  }
};

// Never freed, because devices compute until the process has ended.
Counts& counts_of_all() {
  static constinit NeverDestroyed<Counts> counts;
  return counts.get();
}

// Calls `body` with the counts of this process. What its parent counted before the fork is for the
// parent to tell.
template <class F>
void with_counts(F&& body) {
  Counts& counts = counts_of_all();
  std::lock_guard lock(counts.mutex);
  if (counts.generation != fork_generation()) {
    counts.generation = fork_generation();
    counts.reset();
  }
  body(counts);
}

// The same for those who cannot throw: where memory is short, something is not counted.
template <class F>
void count(F&& body) noexcept {
  try {
    with_counts(body);
  } catch (const std::bad_alloc&) {
  }
}

constexpr size_t kMaxSignatures = 100;  // of an operator: shapes may differ with each call

}  // namespace

namespace observe {

namespace {
RunKey key_of(const PreparedPlan& plan) {
  return {plan.name(), plan.api->name(), plan.device.type_id(), plan.device.index()};
}
}  // namespace

void count_run(const Run& run) noexcept {
  auto& plan = *run.launch.plan;
  count([&](Counts& c) {
    auto& sum = c.runs[key_of(plan)];
    sum.device = plan.device;
    ++sum.runs;
    sum.time += run.ended - run.began;
  });
}

void count_plan(const PreparedPlan& plan) noexcept {
  count([&](Counts& c) {
    auto& sum = c.plans[key_of(plan)];
    sum.device = plan.device;
    ++sum.count;
  });
}

void count_detour(DetourKind kind, const tracing::Detour& d) noexcept {
  count([&](Counts& c) {
    DetourKey key{kind, d.op, d.device.type_id(), d.device.index(), d.signature, d.part_of};
    if (!c.detours.contains(key) && ++c.signatures[{kind, d.op}] > kMaxSignatures)
      std::get<4>(key) = "other shapes";
    auto& sum = c.detours[key];
    if (!sum.count) sum = {d.op, d.device.str(), std::get<4>(key), d.part_of, d.reason, 0, 0};
    ++sum.count;
    sum.bytes += d.bytes;
  });
}

void count_copy(uint64_t bytes) noexcept {
  count([&](Counts& c) {
    ++c.copies;
    c.copied_bytes += bytes;
  });
}

namespace {

std::string text_of_bytes(uint64_t bytes) {
  const char* const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < 10240) return fmt::format("{} bytes", bytes);
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit < 4; ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace

std::string text_of_runs(const DispatchStats& stats) {
  if (stats.runs.empty()) return "";
  double total = 0;
  uint64_t runs = 0;
  for (auto& r : stats.runs) {
    total += r.seconds;
    runs += r.runs;
  }
  std::string text = fmt::format(
      "runs of operators: {}, {:.3f} ms in plugins\n{:>10} {:>12} {:>7}  "
      "{:<24} {:<12} on",
      runs, total * 1e3, "runs", "ms", "share", "operator", "by");
  for (auto& r : stats.runs)
    text += fmt::format("\n{:>10} {:>12.3f} {:>5.1f} %  {:<24} {:<12} {}", r.runs, r.seconds * 1e3,
                        total > 0 ? 100 * r.seconds / total : 0, r.op, r.owner, r.device);
  if (stats.copies_between_devices)
    text += fmt::format("\ncopies between devices: {}, {}", stats.copies_between_devices,
                        text_of_bytes(stats.bytes_between_devices));
  return text;
}

std::string text_of_detours(const std::vector<Detours>& detours, const char* headline) {
  std::string text;
  const std::string* last_reason = nullptr;
  for (auto& d : detours) {
    text += fmt::format("{}\n{:>10} {}: {} on {}", text.empty() ? headline : "", d.count, d.op,
                        d.signature, d.device);
    if (!d.part_of.empty()) text += ", for " + d.part_of;
    if (d.bytes) text += ", " + text_of_bytes(d.bytes);
    if (last_reason && *last_reason == d.reason) continue;
    last_reason = &d.reason;
    // It has a line for each plugin and begins with a line break.
    for (char ch : d.reason) text += ch == '\n' ? "\n          " : std::string(1, ch);
  }
  return text;
}

}  // namespace observe

void count_dispatch(bool on) {
  counts_of_all();  // made here, and not by the thread that counts first
  if (on)
    observe::watchers |= observe::kCount;
  else
    observe::watchers &= ~uint32_t{observe::kCount};
}

DispatchStats dispatch_stats() {
  DispatchStats stats;
  with_counts([&](Counts& c) {
    for (auto& [key, sum] : c.runs)
      stats.runs.push_back({std::get<0>(key), sum.device.str(), std::get<1>(key), sum.runs,
                            std::chrono::duration<double>(sum.time).count()});
    for (auto& [key, sum] : c.plans)
      stats.plans.push_back({std::get<0>(key), sum.device.str(), std::get<1>(key), sum.count});
    for (auto& [key, detours] : c.detours) {
      std::vector<Detours>* const lists[] = {&stats.decomposed,    &stats.on_cpu,
                                             &stats.hidden_copies, &stats.conversions,
                                             &stats.refused,       &stats.widened};
      lists[static_cast<size_t>(std::get<0>(key))]->push_back(detours);
    }
    stats.copies_between_devices = c.copies;
    stats.bytes_between_devices = c.copied_bytes;
  });
  std::stable_sort(stats.runs.begin(), stats.runs.end(),
                   [](auto& a, auto& b) { return a.seconds > b.seconds; });
  std::stable_sort(stats.plans.begin(), stats.plans.end(),
                   [](auto& a, auto& b) { return a.count > b.count; });
  for (auto* list : {&stats.decomposed, &stats.on_cpu, &stats.hidden_copies, &stats.conversions,
                     &stats.refused, &stats.widened})
    std::stable_sort(list->begin(), list->end(),
                     [](auto& a, auto& b) { return a.count > b.count; });
  return stats;
}

void reset_dispatch_stats() {
  with_counts([](Counts& c) { c.reset(); });
}

}  // namespace tenon
