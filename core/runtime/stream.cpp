#include <tenon/core/error.h>
#include <tenon/core/runtime/plan_cache.h>
#include <tenon/core/runtime/stream.h>

#include <cstdlib>
#include <string_view>

namespace tenon {

bool sync_mode() {
  static const bool on = [] {
    const char* v = std::getenv("TENON_SYNC");
    return v && std::string_view(v) != "" && std::string_view(v) != "0";
  }();
  return on;
}

void Stream::wait_and_throw(uint64_t ticket) {
  wait(ticket);
  if (failures.any())
    if (auto f = failures.take_unseen(ticket)) throw_failure(*f);
}

void Stream::refuse(const char* what) const {
  if (own_capture())
    throw DeviceError(std::string(what) + " while a stream graph of " + name_ +
                      " is captured: only operators on tensors of that device can be recorded; do it before or after the capture");
  throw DeviceError(std::string(what) + " while another thread captures a stream graph of " + name_ +
                    ": until that ends, nothing else can use the device");
}

namespace {

// Off the hot path: outputs of work that failed, or whose inputs were never made, are poisoned.
void file_failure(FailureLog& failures, const Launch& l, uint64_t ticket, FailureLog::Pointer failure, bool is_new) {
  for (uint32_t i = 0; i < l.num_outputs; ++i) failures.poison(l.outputs[i], l.entry->outputs[i].bytes, failure);
  if (is_new) failures.add_unseen(ticket, std::move(failure));
}

FailureLog::Pointer poisoned_input(FailureLog& failures, const Launch& l) {
  for (uint32_t i = 0; i < l.num_inputs; ++i)
    if (l.inputs[i])
      if (auto f = failures.poisoned(l.inputs[i])) return f;
  return nullptr;
}

}  // namespace

void run_and_file(FailureLog& failures, const Launch& l, const PathNode* path, uint64_t ticket, tn_stream* stream) {
  const bool look_up = failures.any();
  if (look_up) {
    if (auto f = poisoned_input(failures, l)) return file_failure(failures, l, ticket, f, false);
  }
  static_assert(sizeof(Scalar) == sizeof(tn_scalar));
  tn_run args{sizeof(tn_run), l.inputs, l.outputs, reinterpret_cast<const tn_scalar*>(l.scalars), l.workspace, stream};
  if (tn_error* e = l.entry->plan->run(l.entry->plan, &args)) {
    auto where = path_string(path);
    auto failure = take_failure(e, "", "\n  in " + l.entry->describe() + (where.empty() ? "" : ", queued by module " + where));
    return file_failure(failures, l, ticket, std::make_shared<const Failure>(std::move(failure)), true);
  }
  if (look_up)
    for (uint32_t i = 0; i < l.num_outputs; ++i)
      if (l.outputs[i]) failures.heal(l.outputs[i], l.entry->outputs[i].bytes);
}

void copy_and_file(FailureLog& own, const CopyTask& t, uint64_t ticket, tn_stream* stream) {
  auto& failures = t.target_failures ? *t.target_failures : own;
  if (t.source_failures && t.source_failures->any())
    if (auto f = t.source_failures->poisoned(t.copy.src, t.copy.bytes)) return failures.poison(t.copy.dst, t.copy.bytes, f);
  if (tn_error* e = t.api->copy(t.device, &t.copy, stream)) {
    auto f =
        std::make_shared<const Failure>(take_failure(e, "copy of " + std::to_string(t.copy.bytes) + " bytes between devices: "));
    failures.poison(t.copy.dst, t.copy.bytes, f);
    own.add_unseen(ticket, f);
  } else if (failures.any()) {
    failures.heal(t.copy.dst, t.copy.bytes);
  }
}

}  // namespace tenon
