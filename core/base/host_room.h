// Whether memory of the host is worth asking for. The functions are defined with the tensors of the
// host (core/host_tensor.cpp), whose device knows how much there is.
#pragma once

#include <cstdint>
#include <string>

namespace tenon {

// Returns whether the memory of this machine could hold `count` elements of `element_bytes` bytes
// each. Ask this first, because Linux grants more memory than there is and kills the process later.
bool host_has_room(uint64_t count, uint64_t element_bytes);
// Throws the OutOfMemoryError "<what>cannot allocate …".
[[noreturn]] void refuse_host_room(uint64_t count, uint64_t element_bytes, const std::string& what);

}  // namespace tenon
