#include <algorithm>
#include <bit>
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

// In bytes; what is left over after copies of vectors is shorter.
constexpr uint64_t kWidestVector = 64;

template <class T>
T element_of(const unsigned char* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}
std::string text_of_element(const unsigned char* bytes, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return fmt::format("{}", element_of<float>(bytes));
    case DType::f64:
      return fmt::format("{}", element_of<double>(bytes));
    case DType::f16:
      return fmt::format("{}", static_cast<float>(element_of<_Float16>(bytes)));
    case DType::bf16:
      return fmt::format("{}", std::bit_cast<float>(uint32_t{element_of<uint16_t>(bytes)} << 16));
    case DType::i64:
      return fmt::format("{}", element_of<int64_t>(bytes));
    case DType::i32:
      return fmt::format("{}", element_of<int32_t>(bytes));
    default:
      return fmt::format("{}", *bytes);
  }
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

std::optional<CopyCheck::Difference> CopyCheck::find_difference() {
  std::vector<unsigned char> rooms[2];
  const auto *from = static_cast<const char*>(task_.copy.src),
             *to = static_cast<const char*>(task_.copy.dst);
  Difference found;
  for (uint64_t at = 0; at < task_.copy.bytes; at += kMaxAtOnce) {
    const uint64_t bytes = std::min(kMaxAtOnce, task_.copy.bytes - at);
    const auto* source = fetch(task_.source, from + at, bytes, rooms[0]);
    const auto* copied = fetch(task_.target, to + at, bytes, rooms[1]);
    if (!source || !copied) break;  // what was found before counts
    if (std::memcmp(source, copied, bytes) == 0) continue;
    for (uint64_t i = 0; i < bytes; ++i)
      if (source[i] != copied[i] && found.bytes++ == 0) found.at = at + i;
  }
  return found.bytes ? std::optional(found) : std::nullopt;
}

// "element 5 (f32) is -2 in the source and 0 in the destination, that byte 0xc0 and 0x00".
std::string CopyCheck::values_at(uint64_t byte) {
  const uint64_t size = size_of(task_.asked.dtype), element = byte / size, begin = element * size;
  std::vector<unsigned char> rooms[2];
  const auto* source =
      fetch(task_.source, static_cast<const char*>(task_.copy.src) + begin, size, rooms[0]);
  const auto* copied =
      fetch(task_.target, static_cast<const char*>(task_.copy.dst) + begin, size, rooms[1]);
  if (!source || !copied) return "";
  return fmt::format(
      "element {} ({}) is {} in the source and {} in the destination, that byte {:#04x} and "
      "{:#04x}",
      element, name_of(task_.asked.dtype), text_of_element(source, task_.asked.dtype),
      text_of_element(copied, task_.asked.dtype), source[byte - begin], copied[byte - begin]);
}

// What it was a copy of, for whoever looks for it in a program, and what differs.
std::string CopyCheck::difference() {
  const auto found = find_difference();
  if (!found) return "";
  const auto& asked = task_.asked;
  const auto side = [](const std::optional<Device>& device) {
    return device ? device->str() : std::string("host memory");
  };
  const std::string made_by = task_.source ? task_.source->owner_of(task_.copy.src) : "",
                    module = path_string(asked.path);
  const bool is_tail = found->at > 0 && task_.copy.bytes - found->at < kWidestVector;
  return fmt::format(
      "changed {} of {} bytes on the way from {} to {}, byte {} first: {}. What was copied is "
      "{}{}. "
      "{}",
      found->bytes, task_.copy.bytes, side(asked.from), side(asked.to), found->at,
      values_at(found->at), made_by.empty() ? "memory that no operator wrote" : made_by,
      module.empty() ? "" : ", for module " + module,
      is_tail ? "Look at what is left over after the last wide copy"
              : "The copy may have begun before its source was written, or its event have come "
                "before its end: look at the order of the stream that it is queued on, and at "
                "events that are not waited for. TENON_SYNC=1 makes the host wait after each call, "
                "and shows whether it is the order");
}

}  // namespace tenon::checked
