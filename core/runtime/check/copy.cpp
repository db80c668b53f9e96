#include <algorithm>
#include <cstring>
#include <vector>

#include <fmt/core.h>

#include <tenon/core/runtime/check/copy.h>
#include <tenon/core/runtime/check/findings.h>
#include <tenon/core/runtime/context.h>
#include <tenon/core/runtime/copy_name.h>

namespace tenon::checked {

namespace {
std::string text_of(const CopyTask& t) {
  return fmt::format("a copy of {} bytes {}", t.copy.bytes, copy_way(t.copy));
}
}  // namespace

// A side that is host memory of the user has no guards.
CopyCheck::CopyCheck(const CopyTask& t, tn_stream* stream)
    : task_(t), stream_(stream), memory_(t.copy.dst_device == t.device ? t.target : t.source) {}

template <class F>
void CopyCheck::each_spoilt(F&& visit) {
  const struct {
    Memory* memory;
    const void* data;
    const char* name;
  } sides[] = {{task_.target, task_.copy.dst, "its destination"},
               {task_.source, task_.copy.src, "its source"}};
  for (auto& side : sides) {
    if (!side.memory) continue;
    const auto spoilt = side.memory->spoilt_guards({&side.data, 1});
    if (!spoilt[0].empty()) visit(*side.memory, side.name, spoilt[0]);
  }
}

tn_error* CopyCheck::before() {
  if (memory_)
    if (tn_error* lost = memory_->finish_earlier(stream_)) return lost;
  each_spoilt([&](Memory& memory, const char* name, const std::string& what) {
    memory.report(
        fmt::format("something wrote outside of {}, before {}: {}. Look at the copies "
                    "and operators before it",
                    name, text_of(task_), what));
  });
  if (task_.target) task_.target->label(task_.copy.dst, "the destination of " + text_of(task_));
  return nullptr;
}

tn_error* CopyCheck::after(tn_error* error) {
  if (memory_ && !memory_->finish(error, stream_)) return error;
  Findings found;
  each_spoilt([&](Memory&, const char* name, const std::string& what) {
    found.add(fmt::format(
        "wrote outside of {}: {}. Look for a copy of more bytes than tn_copy.bytes says", name,
        what));
  });
  if (!error)
    if (const auto what = difference(); !what.empty()) found.add(what);
  return found.tell(error, *task_.api, "copy", text_of(task_));
}

const unsigned char* CopyCheck::fetch(Memory* memory, const void* data, uint64_t bytes,
                                      std::vector<unsigned char>& room) {
  return memory ? memory->access().look(data, bytes, room)
                : static_cast<const unsigned char*>(data);
}

std::string CopyCheck::difference() {
  std::vector<unsigned char> rooms[2];
  const auto *from = static_cast<const char*>(task_.copy.src),
             *to = static_cast<const char*>(task_.copy.dst);
  for (uint64_t at = 0; at < task_.copy.bytes; at += kMostAtOnce) {
    const uint64_t bytes = std::min(kMostAtOnce, task_.copy.bytes - at);
    const auto* source = fetch(task_.source, from + at, bytes, rooms[0]);
    const auto* copied = fetch(task_.target, to + at, bytes, rooms[1]);
    if (!source || !copied) return "";
    if (std::memcmp(source, copied, bytes) != 0) {
      const auto [here, there] = std::mismatch(source, source + bytes, copied);
      return fmt::format(
          "changed byte {} of {} on the way: the source has {:#04x} there, the destination "
          "{:#04x}. "
          "Look at what is left over after the last wide copy, and at events that were not waited "
          "for",
          at + static_cast<uint64_t>(here - source), task_.copy.bytes, *here, *there);
    }
  }
  return "";
}

}  // namespace tenon::checked
