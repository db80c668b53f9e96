// The names of a plugin's copies in messages and in the trace.
#pragma once

#include <tenon/plugins/abi/abi.h>

namespace tenon {

// "copy from the host", "copy to the host" or "copy between devices", which lives for ever.
inline const char* copy_name(const tn_copy& copy) {
  return !copy.src_device   ? "copy from the host"
         : !copy.dst_device ? "copy to the host"
                            : "copy between devices";
}
// The same without its first word.
inline const char* copy_way(const tn_copy& copy) { return copy_name(copy) + sizeof "copy"; }

}  // namespace tenon
