#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <ostream>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include <tenon/core/base/printable.h>
#include <tenon/core/error.h>
#include <tenon/core/runtime/profile_log.h>
#include <tenon/core/runtime/profiler.h>
#include <tenon/core/runtime/trace_file.h>

namespace tenon::profiler {

namespace {

// "12.3 us", in columns.
std::string text_of(double seconds) {
  const double us = seconds * 1e6;
  if (us < 1e3) return fmt::format("{:.1f} us", us);
  if (us < 1e6) return fmt::format("{:.2f} ms", us * 1e-3);
  return fmt::format("{:.2f} s", seconds);
}

// Sums up events under the keys that `each_key` calls its second argument with.
template <class F>
Averages averages_of(const std::vector<Event>& events, const char* title, F&& each_key) {
  std::map<std::string, Average> sums;
  for (auto& e : events)
    each_key(e, [&](const std::string& key) {
      auto& sum = sums[key];
      const double took = e.ended - e.began;
      ++sum.count;
      sum.total += took;
      sum.queued += e.began - e.queued;
      sum.longest = std::max(sum.longest, took);
    });
  Averages all;
  all.title = title;
  for (auto& [key, sum] : sums) {
    sum.key = key;
    all.push_back(std::move(sum));
  }
  std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return a.total > b.total; });
  return all;
}

bool is_work(const Event& e) {
  return e.kind == Kind::op || e.kind == Kind::copy || e.kind == Kind::collective;
}

// The lanes in the order in which they are shown: devices, then threads, "main" first.
std::map<std::string, int> lanes_of(const std::vector<Event>& events) {
  std::vector<std::string> devices, threads;
  for (auto& e : events)
    (!e.device.empty() && e.lane.starts_with(e.device) ? devices : threads).push_back(e.lane);
  std::sort(devices.begin(), devices.end());
  std::sort(threads.begin(), threads.end());
  std::map<std::string, int> lanes;
  for (auto* names : {&devices, &threads})
    for (auto& name : *names) lanes.try_emplace(name, static_cast<int>(lanes.size()) + 1);
  return lanes;
}

const char* category_of(Kind kind) {
  switch (kind) {
    case Kind::op:
      return "operator";
    case Kind::copy:
      return "copy";
    case Kind::collective:
      return "collective";
    case Kind::wait:
      return "wait";
    case Kind::gradient:
      return "gradient";
    case Kind::range:
      return "range";
  }
  return "";
}

std::string args_of(const Event& e) {
  std::string args;
  auto add = [&](const char* key, const std::string& json) {
    args += fmt::format("{}\"{}\":{}", args.empty() ? "" : ",", key, json);
  };
  for (auto& [key, text] : {std::pair{"device", &e.device},
                            {"by", &e.by},
                            {"module", &e.module},
                            {"part of", &e.part_of},
                            {"tensors", &e.tensors}})
    if (!text->empty()) add(key, tracing::json_text(*text));
  if (is_work(e)) {
    add("us in the queue", fmt::format("{:.3f}", (e.began - e.queued) * 1e6));
    if (!e.on_device) add("times", "\"of queueing it on the device\"");
  }
  if (e.bytes) add("bytes", std::to_string(e.bytes));
  if (e.failed) add("failed", "true");
  return "{" + args + "}";
}

void write_trace(std::ostream& out, const std::vector<Event>& events) {
  const auto lanes = lanes_of(events);
  const int process = getpid();
  const char* separator = "[\n";
  auto line = [&](const std::string& json) {
    out << separator << json;
    separator = ",\n";
  };
  for (auto& [name, lane] : lanes) {
    line(fmt::format(R"({{"name":"thread_name","ph":"M","pid":{},"tid":{},"args":{{"name":{}}}}})",
                     process, lane, tracing::json_text(name)));
    line(fmt::format(
        R"({{"name":"thread_sort_index","ph":"M","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        process, lane, lane));
  }
  for (auto& e : events) {
    line(fmt::format(
        R"({{"name":{},"cat":"{}","ph":"X","pid":{},"tid":{},"ts":{:.3f},"dur":{:.3f},"args":{}}})",
        tracing::json_text(e.name), category_of(e.kind), process, lanes.at(e.lane), e.began * 1e6,
        (e.ended - e.began) * 1e6, args_of(e)));
    if (e.allocated)
      line(fmt::format(
          R"({{"name":"memory of {}","ph":"C","pid":{},"ts":{:.3f},"args":{{"allocated":{}}}}})",
          e.device, process, e.ended * 1e6, e.allocated));
  }
  out << (events.empty() ? "[]\n" : "\n]\n");
}

}  // namespace

Profiler::Profiler(const Options& options) {
  if (options.max_events == 0)
    throw ValueError("Profiler: max_events is 0, so nothing would be kept; give at least 1");
  profiling::begin(options);
}

Profiler::~Profiler() {
  try {
    if (recording_) finish();
  } catch (const std::bad_alloc&) {  // nobody will ask for the events
  }
}

void Profiler::finish() {
  recording_ = false;
  auto recorded = profiling::end();
  events_ = std::move(recorded.events);
  lost_ = recorded.lost;
  seconds_ = recorded.seconds;
}

void Profiler::stop() {
  if (!recording_) return;
  try {
    synchronize();
  } catch (...) {
    finish();
    throw;
  }
  finish();
}

Averages Profiler::key_averages() const {
  return averages_of(events_, "operator", [](const Event& e, auto&& add) {
    if (is_work(e)) add(e.name);
  });
}

Averages Profiler::module_averages() const {
  return averages_of(events_, "module", [](const Event& e, auto&& add) {
    if (!is_work(e)) return;
    if (e.module.empty()) return add("(no module)");
    for (size_t end = 0; end != e.module.npos;) {
      end = e.module.find('.', end ? end + 1 : 0);
      add(e.module.substr(0, end));
    }
  });
}

Averages Profiler::range_averages() const {
  return averages_of(events_, "range", [](const Event& e, auto&& add) {
    if (e.kind == Kind::range || e.kind == Kind::wait) add(e.name);
  });
}

void Profiler::export_chrome_trace(const std::string& path) const {
  if (recording_)
    throw ValueError("export_chrome_trace: the profiler still records; stop() it first");
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (out) write_trace(out, events_);
  out.close();
  if (!out)
    throw Error(fmt::format("export_chrome_trace: the file {} cannot be written{}", printable(path),
                            errno ? fmt::format(": {}", std::strerror(errno)) : ""));
}

std::ostream& operator<<(std::ostream& out, const Averages& averages) {
  double sum = 0;
  size_t width = averages.title.size();
  // A module holds the time of those in it, so the whole is not the sum of the lines.
  for (auto& a : averages) {
    if (averages.title != "module" || a.key.find('.') == a.key.npos) sum += a.total;
    width = std::max(width, a.key.size());
  }
  out << fmt::format("{:<{}}  {:>7} {:>9} {:>11} {:>11} {:>11} {:>11}\n", averages.title, width,
                     "share", "calls", "total", "mean", "longest", "queued");
  for (auto& a : averages) {
    const auto count = static_cast<double>(a.count);
    out << fmt::format("{:<{}}  {:>5.1f} % {:>9} {:>11} {:>11} {:>11} {:>11}\n", printable(a.key),
                       width, sum > 0 ? 100 * a.total / sum : 0, a.count, text_of(a.total),
                       text_of(a.total / count), text_of(a.longest), text_of(a.queued / count));
  }
  return out;
}

Range::Range(std::string_view name) : began_(profiling::queued_now()) {
  if (began_) name_ = name;
}
Range::~Range() {
  if (began_) profiling::add_range(name_, began_);
}

}  // namespace tenon::profiler
