// Several elements at a time between memory and registers.
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <cuda_runtime.h>

namespace tenon::cuda {

// V elements in registers.
template <class T, int V>
struct Pack {
  T at[V];
};

// What one load or store instruction moves. Elements of 8 bytes stay whole: nvcc splits stores of
// them in halves.
template <int Bytes, int Element>
struct WordOf;
template <int Element>
struct WordOf<16, Element> {
  using type = uint4;
};
template <>
struct WordOf<16, 8> {
  using type = ulonglong2;
};
template <int Element>
struct WordOf<8, Element> {
  using type = uint2;
};
template <>
struct WordOf<8, 8> {
  using type = uint64_t;
};
template <int Element>
struct WordOf<4, Element> {
  using type = uint32_t;
};
template <int Element>
struct WordOf<2, Element> {
  using type = uint16_t;
};
template <int Element>
struct WordOf<1, Element> {
  using type = uint8_t;
};

// `p` is aligned to sizeof(T) * V bytes, of which there are at most 16.
template <int V, class T>
__device__ inline Pack<T, V> load_pack(const T* p) {
  using Word = typename WordOf<V * sizeof(T), sizeof(T)>::type;
  assert(reinterpret_cast<uintptr_t>(p) % sizeof(Word) == 0);
  Word word = *reinterpret_cast<const Word*>(p);
  Pack<T, V> pack;
  memcpy(static_cast<void*>(&pack), &word, sizeof(pack));
  return pack;
}
template <int V, class T>
__device__ inline void store_pack(T* p, const Pack<T, V>& pack) {
  using Word = typename WordOf<V * sizeof(T), sizeof(T)>::type;
  assert(reinterpret_cast<uintptr_t>(p) % sizeof(Word) == 0);
  Word word;
  memcpy(&word, &pack, sizeof(pack));
  *reinterpret_cast<Word*>(p) = word;
}

inline bool aligned(const void* p, size_t bytes) {
  return reinterpret_cast<uintptr_t>(p) % bytes == 0;
}

}  // namespace tenon::cuda
