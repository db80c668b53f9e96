#include <utility>

#include <tenon/core/base/environment.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/stream_guard.h>

namespace tenon {

namespace {
std::shared_ptr<DeviceContext> take_context(Device device) {
  DeviceContext& main = context_of(device);
  main.stream->require_open();
  main.stream->require_device();
  if (check_settings().on) return {&main, [](DeviceContext*) {}};
  return {&main.take_stream(), [](DeviceContext* taken) { taken->main.release_stream(*taken); }};
}
}  // namespace

Stream::Stream(Device device) : context_(take_context(device)) {}
Device Stream::device() const { return context_->device; }
bool Stream::query() const { return context_->stream->reached(context_->stream->last()); }
void Stream::synchronize() const {
  context_->stream->wait_for_all();
  context_->stream->require_device();
}

StreamGuard::StreamGuard(Stream stream) : stream_(std::move(stream)) {
  scope_.device = stream_.device();
  scope_.stream = stream_.context_.get();
  enter_scope(scope_);
}
StreamGuard::~StreamGuard() { leave_scope(scope_); }

}  // namespace tenon
