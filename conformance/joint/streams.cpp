#include <algorithm>
#include <atomic>
#include <thread>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>
#include <tenon/core/error.h>

namespace tenon::conformance::joint {

namespace {

void require_streams(const Bench& bench) {
  if (!bench.has_streams)
    throw UnsupportedError("the device computes on the caller's thread and has no streams");
}

constexpr size_t kWords = 1 << 18;

// Work that keeps a stream busy for a while and ends with `value` in the first word of `memory`.
struct Slow {
  explicit Slow(Bench& bench)
      : here(kWords), memory(bench, kWords * sizeof(float)), other(bench, kWords * sizeof(float)) {}
  void queue(Stream& stream, float value) {
    std::fill(here.begin(), here.end(), value);
    const uint64_t bytes = kWords * sizeof(float);
    stream.copy(other.data(), here.data(), bytes, true, false);
    for (int i = 0; i < 8; ++i) {
      stream.copy(memory.data(), other.data(), bytes, true, true);
      stream.copy(other.data(), memory.data(), bytes, true, true);
    }
    stream.copy(memory.data(), other.data(), bytes, true, true);
  }
  std::vector<float> here;
  Memory memory, other;
};

void never_recorded(Bench& bench) {
  require_streams(bench);
  Event event(bench);
  require(event.is_reached(), "an event that was never recorded does not count as reached");
  event.wait();
  Stream stream(bench);
  must("stream_wait", bench.api.stream_wait(stream.handle(), event.handle()));
  stream.wait();
}

void waited_for(Bench& bench) {
  require_streams(bench);
  Slow slow(bench);
  Stream stream(bench);
  for (float value = 1; value <= 10; ++value) {
    slow.queue(stream, value);
    Event event(bench);
    event.record(stream);
    event.wait();
    require(event.is_reached(), "after event_wait, event_query says that it is not reached");
    Stream reader(bench);
    require(reader.download(slow.memory, kWords)[kWords - 1] == value,
            "after event_wait, the work before the event is not done");
  }
}

// What a stream reads behind the event of another is what was written before it. The streams may be
// those of two devices.
void read_behind_events(Bench& writes, Bench& reads, int turns, const char* fault) {
  Slow slow(writes);
  Memory result(reads, kWords * sizeof(float));
  Stream writer(writes), reader(reads);  // they end first, and wait for their work
  Event written(writes), read(reads);
  for (int turn = 1; turn <= turns; ++turn) {
    const auto value = static_cast<float>(turn);
    must("stream_wait", writes.api.stream_wait(writer.handle(), read.handle()));
    slow.queue(writer, value);
    written.record(writer);
    must("stream_wait", writes.api.stream_wait(reader.handle(), written.handle()));
    reader.copy_from(writes, result.data(), slow.memory.data(), kWords * sizeof(float));
    read.record(reader);
    const auto found = reader.download(result, kWords);
    for (size_t i : {size_t{0}, kWords / 2, kWords - 1})
      require(found[i] == value, "{}: it read {}, expected {}", fault, found[i], value);
  }
}

void across_streams(Bench& bench) {
  require_streams(bench);
  read_behind_events(bench, bench, 20, "a stream did not wait for the event of another");
}

void recorded_again(Bench& bench) {
  require_streams(bench);
  Slow slow(bench);
  Stream stream(bench);
  Event event(bench);
  for (float value = 1; value <= 10; ++value) {
    slow.queue(stream, value);
    event.record(stream);
    event.wait();
    require(Stream(bench).download(slow.memory, 1)[0] == value,
            "an event that was recorded again counts as reached by its first recording");
  }
}

void comes_by_itself(Bench& bench) {
  require_streams(bench);
  Slow slow(bench);
  Stream stream(bench);
  for (float value = 1; value <= 3; ++value) {  // the memory may hold what an earlier check left
    slow.queue(stream, value);
    Event event(bench);
    event.record(stream);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!event.is_reached()) {
      require(std::chrono::steady_clock::now() < end,
              "an event is not reached although nothing but event_query was called for 30 s");
      std::this_thread::yield();
    }
    require(Stream(bench).download(slow.memory, 1)[0] == value,
            "event_query says that an event is reached, and the work before it is not done");
  }
}

void while_another_waits(Bench& bench) {
  require_streams(bench);
  Slow first(bench), second(bench);
  Stream stream(bench);
  first.queue(stream, 1);
  Event event(bench);
  event.record(stream);
  std::string failure;
  {
    std::jthread waiting([&] {
      try {
        event.wait();
      } catch (const std::exception& e) {
        failure = e.what();
      }
    });
    second.queue(stream, 2);
  }
  require(failure.empty(), failure);
  require(stream.download(second.memory, 1)[0] == 2,
          "work that was queued while a thread waited is lost");
}

// Streams and events of another device of the plugin: its second one.
void across_devices(Bench& bench) {
  require_streams(bench);
  uint32_t count = 0;
  must("device_count", bench.api.device_count(&count));
  const auto other = static_cast<uint32_t>(bench.subject.device.index() == 0 ? 1 : 0);
  if (other >= count && !(bench.info.flags & TN_DEVICE_LOGICAL))
    throw UnsupportedError("there is only one device");
  Bench second(bench.subject, other);
  if (!second.has_streams) throw UnsupportedError("the other device has no streams");
  read_behind_events(bench, second, 10,
                     "a stream did not wait for the event of another device, or the copy between "
                     "the devices is wrong");
}

void many_of_them(Bench& bench) {
  require_streams(bench);
  for (int turn = 0; turn < 20; ++turn) {
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<Event>> events;
    for (int i = 0; i < 8; ++i) {
      streams.push_back(std::make_unique<Stream>(bench));
      for (int k = 0; k < 16; ++k) events.push_back(std::make_unique<Event>(bench));
      events.back()->record(*streams.back());
    }
    for (auto& e : events) e->wait();
  }
}

void require_device_to_wait(Bench& bench) {
  require_streams(bench);
  if (!bench.api.table().drain) throw Skipped("because the plugin has no drain");
  Slow slow(bench);
  std::vector<float> here(kWords, 0);
  Stream stream(bench);
  for (float value = 1; value <= 3; ++value) slow.queue(stream, value);
  stream.copy(here.data(), slow.memory.data(), kWords * sizeof(float), false, true);
  bench.backend.drain();
  require(here[0] == 3 && here[kWords - 1] == 3,
          "drain returned while work was queued: a copy to the host was not done");
}

// An overlay has no queue of its own, but drain has to wait for its plans in the streams below.
void require_overlay_to_wait(Bench& bench) {
  require_streams(bench);
  if (!bench.planner.table().drain) throw Skipped("because the overlay has no drain");
  const Operator op = known_operator(bench);
  const auto count = static_cast<size_t>(op.count);
  Request request(op, op.count);
  Plan plan(bench, request.get());
  Memory in(bench, count * sizeof(float)), out(bench, count * sizeof(float));
  Slow slow(bench);
  Stream stream(bench);
  stream.upload(in, std::vector<float>(count, -2));
  stream.upload(out, std::vector<float>(count, 7));
  for (float value = 1; value <= 3; ++value) slow.queue(stream, value);
  plan.run(stream, in, out);
  bench.planning.drain();
  const auto found = Stream(bench).download(out, count);
  require(std::count(found.begin(), found.end(), op.of_minus_two) == op.count,
          "drain of the overlay returned while a plan of its own was queued: {} was not done",
          op.name);
}

}  // namespace

void require_drain_to_wait(Bench& bench) {
  bench.subject.overlay.empty() ? require_device_to_wait(bench) : require_overlay_to_wait(bench);
}

void add_stream_checks(const Add& add) {
  add("events", "one that was never recorded counts as reached", never_recorded);
  add("events", "after event_wait, the work before is done", waited_for);
  add("events", "a stream waits for the event of another", across_streams);
  add("events", "one that is recorded again is reached again", recorded_again);
  add("events", "one is reached without anybody waiting for it", comes_by_itself);
  add("events", "a thread waits while another queues on the stream", while_another_waits);
  add("events", "a stream waits for the event of another device, and copies from it",
      across_devices);
  add("streams", "many are made and destroyed", many_of_them);
}

}  // namespace tenon::conformance::joint
