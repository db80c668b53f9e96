// The options of a save.
#pragma once

#include <cstdint>

namespace tenon {

// Says how a save divides its values among files.
struct SaveOptions {
  // Limits the bytes of values that one file holds. If there are more, the path becomes an index,
  // and the values lie beside it in files "<name>.<letters>-00001-of-00003.h5"; load, inspect and
  // the rest take the path of the index. A tensor that is larger has a file to itself. With 0 there
  // is one file, whatever its size.
  uint64_t max_shard_size = 0;
};

}  // namespace tenon
