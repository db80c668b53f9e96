#include <cstring>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/base/environment.h>
#include <tenon/core/base/log.h>
#include <tenon/core/format.h>
#include <tenon/core/runtime/check/access.h>
#include <tenon/core/runtime/context.h>

namespace tenon::checked {

// Returns whether a call succeeded. An error of a check does not fail the user's work, but it is
// logged: otherwise a user would take it that the memory was checked and nothing was found.
bool Access::succeeded(tn_error* error) noexcept try {
  if (!error) return true;
  const bool lost = error->code == TN_CODE_DEVICE_LOST;  // the user's work reports that
  const std::string reason = plugins::take_message(error);
  if (!lost && !std::exchange(told_, true))
    log_message(TN_LOG_WARNING, context_.backend.name(),
                fmt::format("checked mode (TENON_CHECK) cannot look at memory of {}: {}; what is "
                            "written outside of buffers there may not be found",
                            context_.device, reason));
  return false;
} catch (const std::bad_alloc&) {  // there is no memory for the text
  return false;
}

Access::Access(DeviceContext& context, bool host_visible)
    : host_visible(host_visible), context_(context) {}

bool Access::usable() const {
  return !closed_ && !context_.stream->closed() && !context_.stream->capturing() &&
         !(context_.stream->failures.any() && context_.stream->failures.lost());
}

bool Access::read(std::span<const Piece> pieces) { return copy(pieces, false); }
bool Access::write(std::span<const Piece> pieces) { return copy(pieces, true); }

const unsigned char* Access::look(const void* data, uint64_t bytes,
                                  std::vector<unsigned char>& room) {
  if (host_visible) return static_cast<const unsigned char*>(data);
  room.resize(bytes);
  const Piece piece{room.data(), const_cast<void*>(data), bytes};
  return read({&piece, 1}) ? room.data() : nullptr;
}

bool Access::copy_here(const Piece& p, bool to_device) {
  tn_copy copy{sizeof(tn_copy), p.host, p.memory, p.bytes, nullptr, context_.handle};
  if (to_device) copy = {sizeof(tn_copy), p.memory, p.host, p.bytes, context_.handle, nullptr};
  return succeeded(context_.backend.api().copy(context_.handle, &copy, stream_));
}

bool Access::copy(std::span<const Piece> pieces, bool to_device) {
  if (host_visible) {
    for (auto& p : pieces)
      if (p.host != p.memory)
        to_device ? std::memcpy(p.memory, p.host, p.bytes) : std::memcpy(p.host, p.memory, p.bytes);
    return true;
  }
  std::lock_guard lock(mutex_);
  if (gave_up_ || !usable() || !succeeded(prepare())) return false;
  bool all = true;
  for (auto& p : pieces) all = (p.bytes == 0 || copy_here(p, to_device)) && all;
  // Waits even if one copy was not queued, because the others use memory of the caller.
  if (context_.caller_thread) return all;
  tn_error* error = await(stream_);
  // No later check should wait for such a device again.
  if (error && error->code == TN_CODE_DEVICE_LOST) gave_up_ = true;
  return succeeded(error) && all;
}

tn_error* Access::finish(tn_stream* stream, bool& done) {
  std::lock_guard lock(mutex_);
  done = !stream || usable();
  if (!stream || !done) return nullptr;
  tn_error* error = prepare();
  return error ? error : await(stream);
}

// The stream and the event are made when they are first needed.
tn_error* Access::prepare() {
  if (context_.caller_thread) return nullptr;
  auto& api = context_.backend.api();
  if (!stream_)
    if (tn_error* error = api.stream_create(context_.handle, &stream_)) return error;
  return event_ ? nullptr : api.event_create(context_.handle, &event_);
}

tn_error* Access::await(tn_stream* stream) {
  auto& api = context_.backend.api();
  if (tn_error* error = api.event_record(event_, stream)) {
    // Without the event, nothing tells when work that uses memory of the caller has ended, unless
    // the device rests.
    if (error->code == TN_CODE_DEVICE_LOST || api.rests()) return error;
    error->destroy(error);
    return api.without_end();
  }
  return api.event_wait_at_most(event_, check_settings().seconds);
}

void Access::close() {
  std::lock_guard lock(mutex_);
  if (closed_) return;
  closed_ = true;
  if (context_.stream->closed()) return;  // in the child of a fork, or it was closed before
  auto& api = context_.backend.api();
  if (event_) api.event_destroy(event_);
  if (stream_) api.stream_destroy(stream_);
}

}  // namespace tenon::checked
