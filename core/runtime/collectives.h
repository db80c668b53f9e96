// Sums and broadcasts over devices of one plugin, where it offers them (the extension
// tn.collectives). Not installed.
#pragma once

#include <span>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

class Communicator;

// What joins `devices`, in this order; kept. Null where nothing does: fewer than two, given twice,
// of several plugins, or the plugin cannot. The reason is logged once, and whoever asked copies
// instead.
Communicator* communicator_for(std::span<const Device> devices);

// Member i is on device i of the communicator. Members have one dtype and shape, are contiguous,
// and share memory with nothing that is still needed.
using Members = std::vector<Tensor>;

// In place, asynchronously on the devices' streams, all rows as one launch: every member becomes
// the sum of its row. The same bits on all devices, and in each run. DeviceError where a device
// cannot be used.
void all_reduce(Communicator& communicator, std::span<const Members> rows);
// Every member becomes member 0 of its row. False where it could not be queued, which is filed with
// each device.
bool broadcast(Communicator& communicator, std::span<const Members> rows);

// At exit, when all streams have been waited for.
void close_communicators();

}  // namespace tenon
