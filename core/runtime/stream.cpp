#include <atomic>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/copy_name.h>
#include <tenon/core/runtime/observe.h>
#include <tenon/core/runtime/profile_log.h>
#include <tenon/core/runtime/stream.h>
#include <tenon/core/runtime/trace.h>

namespace tenon {

bool sync_mode() {
  static std::atomic<int> on{-1};  // not read yet
  if (on < 0) on = flag_from_environment("TENON_SYNC");
  return on > 0;
}

void DeviceStream::wait_and_watch(uint64_t ticket) {
  if (!observe::watched() || reached(ticket)) [[likely]]
    return wait(ticket);
  const auto began = tracing::Clock::now();
  wait(ticket);
  if (observe::watched_by(observe::kTrace)) tracing::add_wait(name_, began);
  if (observe::watched_by(observe::kProfile)) profiling::add_wait(name_, began);
}

void DeviceStream::wait_for_value(uint64_t ticket, const void* data, const Footprint& footprint) {
  wait_and_watch(ticket);
  if (failures.any() || failures.may_be_told(ticket))
    if (auto f = failures.take_for_value(ticket, data, footprint)) throw_failure(*f);
}

void DeviceStream::wait_for_call(uint64_t ticket) {
  wait_and_watch(ticket);
  if (failures.any() || failures.may_be_told(ticket))
    if (auto f = failures.take_for_call(ticket)) throw_failure(*f);
}

void DeviceStream::wait_for_all() {
  wait_and_watch(last());
  if (failures.any())
    if (auto f = failures.take_unreported()) throw_failure(*f);
}

void DeviceStream::require(tn_error* error, const std::string& prefix) {
  if (!error || error->code != TN_CODE_DEVICE_LOST) return check(error, prefix);
  const std::string lost = name_ + " is lost and cannot be used again in this process: ";
  throw_failure(
      *failures.lose(failure_of(error, [&] { return std::pair(lost + prefix, std::string()); })));
}

void DeviceStream::forget_failures() {
  while (failures.take_unreported()) {
  }
  failures.take_dropped();
}

void DeviceStream::refuse_closed(const char* why) const {
  throw DeviceError(fmt::format("{} is closed: {}", name_, why));
}

void DeviceStream::refuse(const char* what) const {
  if (own_capture())
    throw DeviceError(
        fmt::format("{} while a stream graph of {} is captured: only operators on tensors of that "
                    "device can be recorded; do it before or after the capture",
                    what, name_));
  throw DeviceError(
      fmt::format("{} while another thread captures a stream graph of {}: until that ends, nothing "
                  "else can use the device",
                  what, name_));
}

namespace {

// New outputs have no values now.
void skip(FailureLog& failures, const Launch& l, const FailureLog::Pointer& failure) {
  if (l.outputs_hold_values) return;
  for (uint32_t i = 0; i < l.num_outputs; ++i)
    if (l.spoils_in_place || !l.plan->in_place[i])
      failures.poison(l.outputs[i], l.plan->written[i], failure);
}

}  // namespace

FailureLog::Pointer poisoned_input(const FailureLog& failures, const Launch& l) {
  for (uint32_t i = 0; i < l.num_inputs; ++i)
    if (l.inputs[i])
      if (auto f = failures.poisoned(l.inputs[i], l.plan->read[i])) return f;
  return nullptr;
}

void run_and_log(FailureLog& failures, const Launch& l, const PathNode* path, uint64_t ticket,
                 tn_stream* stream) {
  const bool look_up = failures.any();
  if (look_up) {
    if (auto f = poisoned_input(failures, l)) return skip(failures, l, f);
  }
  if (tn_error* e = observe::run_plan(l, path, stream)) {
    auto filed = failure_of(e, [&] {
      return std::pair(std::string(l.plan->name()) + ": ",
                       "\n  in " + l.plan->describe(l.shape) + origin_string(path));
    });
    for (uint32_t i = 0; i < l.num_outputs; ++i)
      failures.poison(l.outputs[i], l.plan->written[i], filed);
    return failures.add_unseen(ticket, std::move(filed));
  }
  if (look_up)
    for (uint32_t i = 0; i < l.num_outputs; ++i)
      if (l.outputs[i]) failures.clear_poison(l.outputs[i], l.plan->written[i]);
}

void run_and_log(FailureLog& failures, LaunchSequence& sequence, uint64_t ticket) {
  sequence.prepare();
  const auto launches = sequence.launches();
  for (size_t i = 0; i < launches.size(); ++i) {
    if (failures.any()) [[unlikely]]
      sequence.forget(failures, i);
    run_and_log(failures, launches[i], sequence.path(i), ticket, nullptr);
  }
}

uint64_t DeviceStream::run_all(LaunchSequence& sequence) {
  sequence.prepare();
  const auto launches = sequence.launches();
  for (size_t i = 0; i < launches.size(); ++i) {
    if (failures.any()) [[unlikely]]
      sequence.forget(failures, i);
    const ModulePath queued_by(sequence.path(i));
    const uint64_t ticket = run(launches[i]);
    if (sync_mode()) wait_for_call(ticket);
  }
  return last();
}

void copy_and_log(FailureLog& own, const CopyTask& t, uint64_t ticket, tn_stream* stream) {
  auto& failures = t.target_failures ? *t.target_failures : own;
  if (t.source_failures && t.source_failures->any())
    if (auto f = t.source_failures->poisoned(t.copy.src, t.copy.bytes))
      return failures.poison(t.copy.dst, t.copy.bytes, f);
  if (tn_error* e = observe::run_copy(t, stream)) {
    auto f = failure_of(e, [&] {
      return std::pair(fmt::format("copy of {} bytes {} by the plugin {}: ", t.copy.bytes,
                                   copy_way(t.copy), t.api->name()),
                       "");
    });
    failures.poison(t.copy.dst, t.copy.bytes, f);
    own.add_unseen(ticket, f);
  } else if (failures.any()) {
    failures.clear_poison(t.copy.dst, t.copy.bytes);
  }
}

}  // namespace tenon
