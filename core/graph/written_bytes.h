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

// Whether two tensors that begin at these bytes of a value may share some. They may not where one
// lies in gaps of the other that come again and again, such as the columns of a matrix.
bool may_share_bytes(uint64_t a_begin, const Footprint& a, uint64_t b_begin, const Footprint& b);

}  // namespace tenon::graph
