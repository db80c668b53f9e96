#include <algorithm>
#include <cstring>

#include <tenon/conformance/joint/bench.h>
#include <tenon/plugins/host/host_version.h>
#include <tenon/plugins/host/registry.h>

namespace tenon::conformance::joint {

void must(const char* call, tn_error* error) {
  if (error) throw Mismatch(fmt::format("{} failed: {}", call, plugins::take_message(error)));
}

std::string must_fail(const char* call, tn_error* error, tn_code code) {
  if (!error) throw Mismatch(fmt::format("{} reported success", call));
  const tn_code found = error->code;
  const bool silent = !error->message || !*error->message;
  const std::string message = plugins::take_message(error);
  require(found == code, "{} failed with code {} instead of {}: {}", call, found, code, message);
  require(!silent, "{} failed without saying why: the message is empty", call);
  return message;
}

// ---- the device

namespace {

plugins::Backend& planning_for(const Subject& subject, plugins::Backend& below) {
  if (subject.overlay.empty()) return below;
  for (auto* overlay : plugins::registry().overlays(subject.device.type()))
    if (overlay->name() == subject.overlay) return *overlay;
  throw Mismatch(fmt::format("the overlay {} is not used any more", subject.overlay));
}

}  // namespace

Bench::Bench(const Subject& s, std::optional<uint32_t> index)
    : subject(s),
      backend(plugins::registry().load(s.device.type())),
      api(backend.api()),
      device(backend.open_device(index.value_or(static_cast<uint32_t>(s.device.index())))),
      planning(planning_for(s, backend)),
      planner(planning.api()),
      planner_device(planning.open_device(index.value_or(static_cast<uint32_t>(s.device.index())))),
      info(backend.device_info(device)),
      has_streams(!(info.flags & TN_DEVICE_CALLER_THREAD)) {
  const tn_memory_kind* const* table = nullptr;
  size_t count = 0;
  must("memory_kinds", api.memory_kinds(device, &table, &count));
  kinds.assign(table, table + count);
}

Memory::Memory(Bench& bench, uint64_t bytes, uint32_t kind)
    : bench_(bench), bytes_(bytes), kind_(kind) {
  must("memory_alloc",
       bench.api.memory_alloc(bench.device, kind, bytes, bench.kinds[kind]->alignment, &data_));
}
Memory::~Memory() { bench_.api.memory_free(bench_.device, kind_, data_, bytes_); }

// ---- streams and events

Stream::Stream(Bench& bench) : bench_(bench) {
  if (bench.has_streams) must("stream_create", bench.api.stream_create(bench.device, &handle_));
}
Stream::~Stream() {
  if (!handle_) return;
  try {
    wait();
  } catch (const Mismatch&) {
    // What went wrong was said before.
  }
  bench_.api.stream_destroy(handle_);
}

void Stream::copy(void* to, const void* from, uint64_t bytes, bool to_device, bool from_device) {
  const tn_copy copy{sizeof copy,
                     to,
                     from,
                     bytes,
                     to_device ? bench_.device : nullptr,
                     from_device ? bench_.device : nullptr};
  must("copy", bench_.api.copy(bench_.device, &copy, handle_));
}

void Stream::copy_from(const Bench& other, void* to, const void* from, uint64_t bytes) {
  const tn_copy copy{sizeof copy, to, from, bytes, bench_.device, other.device};
  must("copy", bench_.api.copy(bench_.device, &copy, handle_));
}

void Stream::upload(const Memory& to, const std::vector<float>& values) {
  const auto& kept = kept_.emplace_back(values);
  copy(to.data(), kept.data(), kept.size() * sizeof(float), true, false);
  wait();
}

std::vector<float> Stream::download(const Memory& from, size_t count) {
  auto& kept = kept_.emplace_back(count);
  copy(kept.data(), from.data(), count * sizeof(float), false, true);
  wait();
  return kept;
}

void Stream::wait() {
  if (!handle_) return;
  Event event(bench_);
  event.record(*this);
  event.wait();
}

Event::Event(Bench& bench) : bench_(bench) {
  must("event_create", bench.api.event_create(bench.device, &handle_));
}
Event::~Event() { bench_.api.event_destroy(handle_); }
void Event::record(const Stream& stream) {
  must("event_record", bench_.api.event_record(handle_, stream.handle()));
}
bool Event::is_reached() {
  int32_t done = 0;
  must("event_query", bench_.api.event_query(handle_, &done));
  return done != 0;
}
void Event::wait() { must("event_wait", bench_.api.event_wait(handle_)); }

// ---- plans

Plan::Plan(Bench& bench, const tn_op_request* request) : bench_(bench) {
  must("plan_create", bench.planner.plan_create(bench.planner_device, request, &plan_));
  if (plan_->workspace_bytes) workspace_ = std::make_unique<Memory>(bench, plan_->workspace_bytes);
  if (request->num_inputs == 1) return;
  const auto unit = unit_matrix();
  factor_ = std::make_unique<Memory>(bench, unit.size() * sizeof(float));
  Stream(bench).upload(*factor_, unit);
}
Plan::~Plan() { bench_.planner.destroy(plan_); }

void Plan::run(Arguments& own, const Stream& stream, void* in, void* out) {
  // What this version of the host has is zero where it is not set below; what a newer one has, any
  // bytes.
  std::memset(&own, 0xa5, sizeof own);
  tn_run& args = own.run;
  std::memset(&args, 0, std::min(sizeof args, plugins::host_version().run_bytes));
  own.inputs[0] = in;
  own.inputs[1] = factor_ ? factor_->data() : nullptr;
  own.outputs[0] = out;
  args.struct_size = plugins::host_version().run_bytes;
  args.inputs = own.inputs;
  args.outputs = own.outputs;
  args.workspace = workspace_ ? workspace_->data() : nullptr;
  args.stream = stream.handle();
  if (TN_HAS(tn_run, &args, num_outputs)) args.num_inputs = factor_ ? 2 : 1, args.num_outputs = 1;
  must("run", bench_.planner.run(plan_, &args));
}

}  // namespace tenon::conformance::joint
