// The part of PluginStream that makes one call for several streams, such as a collective.
#include <algorithm>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include <fmt/core.h>

#include <tenon/core/runtime/plugin_stream.h>

namespace tenon {

PluginStream::LockedStreams::LockedStreams(std::span<PluginStream* const> streams)
    : streams_(streams), locked_(streams.begin(), streams.end()) {
  if (observe::watched()) [[unlikely]]
    for (auto* s : streams) {
      std::unique_lock lock(s->mutex_);
      s->start_clock(lock);
    }
  std::sort(locked_.begin(), locked_.end(), std::less<>());
  for (auto* s : locked_) s->mutex_.lock();
}

PluginStream::LockedStreams::~LockedStreams() {
  for (auto* s : locked_) s->mutex_.unlock();
}

void PluginStream::LockedStreams::prepare(size_t num_read, const char* what) {
  for (auto* s : streams_) {
    if (s->capturing()) s->refuse(fmt::format("{} is not possible", what).c_str());
    s->require_usable();
    handles.push_back(s->stream_);
  }
  // A source ends before the call itself. If it included the call, two streams would each wait
  // until the other one has checked its sources.
  for (auto* s : streams_)
    for (auto* read : streams_.first(num_read))
      if (s != read) s->add_source(*read, read->submitted_, s->submitted_ + 1);
  if (observe::watched()) [[unlikely]]
    for (auto* s : streams_) works_.push_back(s->begin_times());
  for (auto* s : streams_) s->next_ticket(nullptr, what);
}

FailureLog::Pointer PluginStream::LockedStreams::finish(tn_error* error, const char* what,
                                                        const Watched& watched) {
  for (size_t i = 0; i < works_.size(); ++i) {
    watched(i, works_[i].get(), error != nullptr);
    if (works_[i]) streams_[i]->end_times(streams_[i]->submitted_, std::move(works_[i]));
  }
  if (!error) return nullptr;
  auto failure = failure_of(error, [&] {
    std::string devices;
    for (auto* s : streams_) devices += (devices.empty() ? "" : ", ") + s->name_;
    return std::pair(fmt::format("{} over {}: ", what, devices), "");
  });
  for (auto* s : streams_) s->failures.add_unseen(s->submitted_, failure);
  return failure;
}

}  // namespace tenon
