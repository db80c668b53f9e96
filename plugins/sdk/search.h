// Search in sorted sequences, alike on every device.
#pragma once

#include <cstdint>

#include <tenon/plugins/sdk/host_device.h>

namespace tenon::sdk {

// Returns the first place in [0, size] of the ascending `row` before which all elements are less
// than `value`, or not greater if `right`. NaN counts as greater than all numbers.
template <class T>
TN_HD int64_t place_in_sorted(const T* row, int64_t size, T value, bool right) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const T at = row[middle];
    const bool behind =
        right ? at > value || (at != at && value == value) : at >= value || at != at;
    if (behind)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

}  // namespace tenon::sdk
