// The part of PluginStream that logs what a device reports about work that was queued before.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/runtime/plugin_stream.h>

namespace tenon {

// Logs the error for the oldest work to which it may belong, so that everybody who waits for that
// work or later work gets it.
void PluginStream::add_late_error(tn_error* error, uint64_t ticket) {
  if (error)
    failures.add_late(std::min(completed_ + 1, ticket), submitted_, name_late(error, ticket));
}

// Without a mark, nobody knows what the work came to, so the error is one of all unfinished work.
// One wait may try several times. As long as nobody has been told of the first attempt, the next
// ones are the same failure: told once each, they would reach reads that have nothing to do with
// it.
void PluginStream::add_mark_error(tn_error* error) {
  if (unmarked_ && !unmarked_->seen && unmarked_->code == error->code) return error->destroy(error);
  unmarked_ = name_late(error, submitted_);
  failures.add_late(completed_ + 1, submitted_, unmarked_);
}

FailureLog::Pointer PluginStream::name_late(tn_error* error, uint64_t last) const {
  return failure_of(error, [&] {
    std::string op;
    for (size_t i = 0; i < error->num_details; ++i)
      if (error->details[i].key && std::strcmp(error->details[i].key, "op") == 0 &&
          error->details[i].value)
        op = error->details[i].value;
    const bool lost = error->code == TN_CODE_DEVICE_LOST;
    std::string work = in_flight(last, op);
    std::string prefix = lost ? name_ + " is lost and cannot be used again in this process: "
                         : work.empty() ? name_ + ": queued work failed: "
                                        : "queued work failed: ";
    if (!op.empty()) prefix += op + ": ";
    return std::pair(std::move(prefix), std::move(work));
  });
}

// Describes the work up to ticket `last` that is not known to be finished, the newest last. If `op`
// is given and was queued, describes only that operator.
std::string PluginStream::in_flight(uint64_t last, const std::string& op) const {
  constexpr size_t most = 8;
  std::vector<std::string> names, of_op;
  const uint64_t oldest =
      std::max<uint64_t>(completed_ + 1, last >= ring_.size() ? last - ring_.size() + 1 : 1);
  for (uint64_t t = oldest; t <= last; ++t) {
    auto& q = ring_[t % ring_.size()];
    if (q.ticket != t) continue;
    std::string text =
        (q.plan ? q.plan->describe(&q.shape) : fmt::format("{} on {}", q.what, name_)) +
        origin_string(q.path);
    if (q.plan && op == q.plan->name()) of_op.push_back(text);
    names.push_back(std::move(text));
  }
  auto& found = of_op.empty() ? names : of_op;
  if (found.empty()) return "";
  if (found.size() == 1) return "\n  in " + found[0];
  std::string text = fmt::format("\n  in one of the {} operators in flight:", found.size());
  for (size_t i = found.size() - std::min(found.size(), most); i < found.size(); ++i)
    text += "\n    " + found[i];
  if (found.size() > most) text += fmt::format("\n    and {} before them", found.size() - most);
  return text + "\n  (set TENON_SYNC=1 to wait after each operator and see which one failed)";
}

}  // namespace tenon
