// How checked mode reads and writes the memory of a device: directly, or through copies of its
// plugin.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <tenon/core/base/fork.h>
#include <tenon/plugins/abi/abi.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon {
class DeviceContext;
}

namespace tenon::checked {

// Bytes that are copied from or to a device at once.
constexpr uint64_t kMaxAtOnce = 4 << 20;

// Part of a device's memory and where it is, or will be, in memory of the host.
struct Piece {
  void* host;
  void* memory;
  uint64_t bytes;
};

// A device with streams gets one more of them for this, so that nothing has to be queued on the
// stream of the user.
class Access {
 public:
  Access(DeviceContext& context, bool host_visible);
  ~Access() { close(); }
  Access(const Access&) = delete;

  // If true, the memory needs no copies: `host` and `memory` of a piece can be the same.
  const bool host_visible;

  // These return when it is done, or false if the device does not do it. What was queued on other
  // streams before must be finished.
  bool read(std::span<const Piece> pieces);
  bool write(std::span<const Piece> pieces);

  // Returns where the host can read these bytes, which may be in `room`; null if it cannot.
  const unsigned char* look(const void* data, uint64_t bytes, std::vector<unsigned char>& room);

  // Waits until the device has done what is queued on `stream`, at most as long as
  // TENON_CHECK_TIMEOUT says, and returns the error of that work. `done` is false if nothing could
  // wait for it, as while the process ends.
  tn_error* finish(tn_stream* stream, bool& done);

  // Called at exit, before the device is closed. Nothing is read or written afterwards.
  void close();

 private:
  bool copy(std::span<const Piece> pieces, bool to_device);
  bool copy_here(const Piece& piece, bool to_device);
  bool usable() const;
  tn_error* prepare();
  tn_error* await(tn_stream* stream);
  bool succeeded(tn_error* error) noexcept;

  DeviceContext& context_;
  ForkMutex mutex_{ForkOrder::tables};
  bool closed_ = false, gave_up_ = false, told_ = false;
  tn_stream* stream_ = nullptr;
  tn_event* event_ = nullptr;
};

}  // namespace tenon::checked
