// How a checkpoint is written.
#pragma once

#include <cstdint>

namespace tenon {

struct SaveOptions {
  // How many bytes of values one file holds at most. If there are more, the path becomes an index,
  // and the values lie beside it in files "<name>.<letters>-00001-of-00003.h5"; load, inspect and
  // the rest take the path of the index. A tensor that is larger has a file to itself. 0: there is
  // one file, whatever its size.
  uint64_t max_shard_size = 0;
};

}  // namespace tenon
