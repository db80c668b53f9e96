// Work on the memory of devices that their own streams do not do, so that it overlaps with what
// they compute.
#pragma once

#include <span>

#include <tenon/core/dispatch/op.h>

namespace tenon {

class DeviceContext;
class DeviceStream;

// Whether a stream of one of the devices may compute with the memory of the others, as
// accumulate_beside does. They have to be logical devices of one plugin that computes on the thread
// of its caller, such as cpu:0 and cpu:1. In checked mode it may not, because memory is guarded.
bool share_memory(std::span<const Device> devices);
// Lets later work on the stream of `by` begin after all work that is queued on the devices.
void follow(DeviceContext& by, std::span<const Device> devices);
// Queues row[0] = op(row[0], row[i]) for each of the others on the stream of `by`. They are
// contiguous, of one dtype and shape. The caller has made an InPlaceChange of row[0], by `by` if
// that is a context of its device. If one of them was never computed, row[0] is not either. Returns
// false if nothing was queued, because no plugin offers the operator in place for this dtype.
//
// A `by` of another device follows all of them, and nothing changes them or reads row[0] before
// `await_beside`.
bool accumulate_beside(DeviceContext& by, const Op& op, std::span<const Tensor> row);
// Makes the device of `sum` wait for what the stream of `by` did to it.
void await_beside(DeviceStream& by, const Tensor& sum);

}  // namespace tenon
