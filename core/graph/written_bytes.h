// Which bytes of a value the nodes of a file have written, so far as that is cheaply known.
#pragma once

#include <cstdint>
#include <map>

#include <tenon/core/runtime/poison_map.h>

namespace tenon::graph {

class WrittenBytes {
 public:
  // Notes that a node writes the tensor that begins at this byte. A tensor of very many pieces
  // counts as not written.
  void add(uint64_t offset, const Footprint& tensor);
  // Whether all bytes of such a tensor were noted. If it has very many pieces, the bytes between
  // them have to be written too.
  bool cover(uint64_t offset, const Footprint& tensor) const;

 private:
  bool covers(uint64_t begin, uint64_t end) const;

  std::map<uint64_t, uint64_t> ends_;  // by their begins, apart from each other
};

}  // namespace tenon::graph
