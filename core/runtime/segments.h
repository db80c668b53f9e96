// What a backend has allocated, by address: memory that it gives twice would belong to two tensors,
// and be freed twice.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

namespace tenon {

class Segments {
  using Map = std::map<uintptr_t, uint64_t>;

 public:
  // A place for a segment, which is made before it is allocated, as nothing may fail afterwards.
  using Place = Map::node_type;
  static Place make_place() {
    Map map{{0, 0}};
    return map.extract(map.begin());
  }
  void add(Place place, const void* data, uint64_t bytes) {
    place.key() = address(data);
    place.mapped() = bytes;
    map_.insert(std::move(place));
  }
  void remove(const void* data) { map_.erase(address(data)); }

  // Returns the address and the bytes of one that shares memory with this; null if none does.
  const Map::value_type* overlapping(const void* data, uint64_t bytes) const {
    auto other = map_.lower_bound(address(data) + bytes);
    if (other == map_.begin()) return nullptr;
    --other;
    return other->first + other->second > address(data) ? &*other : nullptr;
  }

 private:
  static uintptr_t address(const void* data) { return reinterpret_cast<uintptr_t>(data); }
  Map map_;
};

}  // namespace tenon
