// Looks at the elements of tensors as bytes. All functions take the bytes from the first element
// on, and count elements in the order of memory.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <tenon/core/dtype.h>
#include <tenon/core/runtime/check/patterns.h>
#include <tenon/core/runtime/poison_map.h>

namespace tenon::checked {

// Returns a number that differs if any one byte of the elements changes.
uint64_t hash_of(const unsigned char* bytes, const Footprint& footprint);

// Returns the first element that is a NaN; nothing if there is none, or if the type has none.
std::optional<uint64_t> first_nan(const unsigned char* bytes, const Footprint& footprint,
                                  DType type);

// Returns for each element whether all of it has the pattern; an empty list if that is true for
// none. `address` is that of the first element on its device.
std::vector<bool> with_pattern(const unsigned char* bytes, uintptr_t address,
                               const Footprint& footprint, uint64_t item_bytes, Pattern pattern);

}  // namespace tenon::checked
