#include <cstring>
#include <numeric>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/checks.h>

namespace tenon::conformance::joint {

namespace {

void allocations(Bench& bench) {
  for (uint32_t kind = 0; kind < bench.kinds.size(); ++kind) {
    std::vector<std::unique_ptr<Memory>> all;
    std::vector<std::pair<uintptr_t, uintptr_t>> ranges;
    for (uint64_t bytes : {uint64_t{1}, uint64_t{63}, uint64_t{64}, uint64_t{65}, uint64_t{4096},
                           uint64_t{1} << 20}) {
      all.push_back(std::make_unique<Memory>(bench, bytes, kind));
      const auto begin = reinterpret_cast<uintptr_t>(all.back()->data());
      for (auto& [from, to] : ranges)
        require(begin + bytes <= from || to <= begin,
                "memory_alloc of {} bytes of kind {} gave memory that overlaps an "
                "earlier allocation",
                bytes, kind);
      ranges.emplace_back(begin, begin + bytes);
    }
  }
}

void too_much(Bench& bench) {
  void* memory = nullptr;
  for (uint64_t bytes : {uint64_t{1} << 60, ~uint64_t{0} - 63, ~uint64_t{0}})
    must_fail(fmt::format("memory_alloc of {} bytes", bytes).c_str(),
              bench.api.memory_alloc(bench.device, 0, bytes, bench.kinds[0]->alignment, &memory),
              TN_CODE_OUT_OF_MEMORY);
  Memory works(bench, 4096);
}

std::vector<unsigned char> pattern(size_t bytes, unsigned salt) {
  std::vector<unsigned char> values(bytes);
  for (size_t i = 0; i < bytes; ++i)
    values[i] = static_cast<unsigned char>((i * 131 + i / 251 + salt) & 255);
  return values;
}

// Host to device, there and back between two places that are not aligned, and back.
void copies(Bench& bench) {
  Stream stream(bench);
  for (size_t bytes : {1u, 3u, 63u, 64u, 65u, 4095u, 4097u, 1u << 20, (8u << 20) + 5u}) {
    const auto sent = pattern(bytes, static_cast<unsigned>(bytes));
    std::vector<unsigned char> got(bytes, 0);
    Memory one(bench, bytes + 8), two(bench, bytes + 8);
    stream.copy(one.data() + 1, sent.data(), bytes, true, false);
    stream.copy(two.data() + 3, one.data() + 1, bytes, true, true);
    stream.copy(got.data(), two.data() + 3, bytes, false, true);
    stream.wait();
    for (size_t i = 0; i < bytes; ++i)
      require(got[i] == sent[i],
              "of {} bytes copied to the device, within it and back, byte {} is {}, "
              "expected {}",
              bytes, i, got[i], sent[i]);
  }
}

// A copy touches nothing beside its bytes.
void copies_beside(Bench& bench) {
  Stream stream(bench);
  constexpr size_t room = 256, begin = 65, count = 67;
  const auto before = pattern(room, 1), inner = pattern(count, 99);
  Memory memory(bench, room);
  stream.copy(memory.data(), before.data(), room, true, false);
  stream.copy(memory.data() + begin, inner.data(), count, true, false);
  std::vector<unsigned char> got(room);
  stream.copy(got.data(), memory.data(), room, false, true);
  stream.wait();
  for (size_t i = 0; i < room; ++i) {
    const bool inside = i >= begin && i < begin + count;
    require(got[i] == (inside ? inner[i - begin] : before[i]),
            "a copy of {} bytes to offset {} {} byte {}", count, begin,
            inside ? "did not write" : "also changed", i);
  }
}

}  // namespace

void add_memory_checks(const Add& add) {
  add("memory", "every size is given, aligned, and apart from the others", allocations);
  add("memory", "more than there can be is TN_CODE_OUT_OF_MEMORY, and then it works on", too_much);
  add("memory", "copies of any size and alignment arrive", copies);
  add("memory", "copies change nothing beside their bytes", copies_beside);
}

}  // namespace tenon::conformance::joint
