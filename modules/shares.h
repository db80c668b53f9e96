// How a batch is shared out among devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tenon::nn::detail {

// Returns where each of `parts` parts of `size` elements ends, the last one at `size`: parts are
// equal, the first ones larger by one, or in proportion to the weights, rounded.
std::vector<int64_t> share_ends(int64_t size, size_t parts, const std::vector<double>& weights);

// Throws a ValueError unless there are no weights or one for each device, finite numbers of at
// least 0 with a sum above 0. `function` is named in the text.
void check_weights(const char* function, const std::vector<double>& weights, size_t devices);

}  // namespace tenon::nn::detail
