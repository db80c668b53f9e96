// Work on the memory of devices that their own streams do not do, so that it overlaps with what
// they compute.
#pragma once

#include <span>

#include <tenon/core/dispatch/op.h>

namespace tenon {

class DeviceContext;
class Stream;

// Returns the context whose stream works beside those of the devices; null if there is none. It
// needs memory that any thread may use, so the devices have to be logical ones of one plugin that
// computes on the thread of its caller, such as cpu:0 and cpu:1. In checked mode there is none,
// because memory is guarded then.
DeviceContext* context_beside(std::span<const Device> devices);
// What is queued on the stream of `by` from now on comes after all that is queued on the devices.
void follow(DeviceContext& by, std::span<const Device> devices);
// Queues row[0] = op(row[0], row[i]) for each of the others on the stream of `by`, which follows
// their devices. They are contiguous, of one dtype and shape, and nothing else changes them or
// reads row[0] before `await_beside`. If one of them was never computed, row[0] is not either.
// Returns false if nothing was queued, because no plugin offers the operator in place for this
// dtype.
bool accumulate_beside(DeviceContext& by, const Op& op, std::span<const Tensor> row);
// Makes the device of `sum` wait for what the stream of `by` did to it.
void await_beside(Stream& by, const Tensor& sum);

}  // namespace tenon
