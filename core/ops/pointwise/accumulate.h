// Sums in place that the streams of other devices compute (core/dispatch/beside.h).
#pragma once

#include <span>

#include <tenon/core/tensor.h>

namespace tenon {

class DeviceContext;

// Adds all others to row[0], as accumulate_beside does.
bool accumulate(DeviceContext& by, std::span<const Tensor> row);

}  // namespace tenon
