// Sums and broadcasts over several devices of one plugin that offers the extension tn.collectives.
#pragma once

#include <span>
#include <vector>

#include <tenon/core/tensor.h>

namespace tenon {

class Communicator;

// Returns the communicator for `devices` in this order, which is created once. Returns null if they
// cannot be joined: if there are fewer than two, if one is given twice, if they belong to several
// plugins, or if the plugin cannot do it. The reason is logged once; the caller then uses copies.
Communicator* communicator_for(std::span<const Device> devices);

// Rows on the same devices, by their places, which are launched together.
struct JoinedRows {
  Communicator* communicator;
  std::vector<size_t> rows;
};
// Groups rows by the devices of their members. Rows whose devices cannot be joined are in no group.
// The groups are in the same order in every run.
std::vector<JoinedRows> joined_rows(std::span<const std::vector<Device>> devices_of_rows);

// Member i is on device i of the communicator. All members of a row have the same dtype and shape,
// are contiguous, and share memory with nothing that is still needed.
using Members = std::vector<Tensor>;

// Replaces every member of a row by the sum of the row. It works in place and asynchronously on the
// streams of the devices, and launches all rows together. The result has the same bits on all
// devices and in every run. Returns the rows, by their places, that are unchanged because the
// plugin does not sum their dtype: add them up by copies. Throws a DeviceError if a device cannot
// be used.
[[nodiscard]] std::vector<size_t> all_reduce(Communicator& communicator,
                                             std::span<const Members> rows);
// The same on further streams of the devices, so that only what reads the sums waits for them. All
// that was queued on the devices before comes first.
[[nodiscard]] std::vector<size_t> all_reduce_beside(Communicator& communicator,
                                                    std::span<const Members> rows);
// Copies member 0 of each row to the other members. Returns false if it could not be queued; the
// failure is then in the log of each device.
bool broadcast(Communicator& communicator, std::span<const Members> rows);

// Called at exit, after all streams were waited for.
void close_communicators();

}  // namespace tenon
