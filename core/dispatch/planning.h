// Lets forks wait for plans that are being made.
#pragma once

namespace tenon {

// While one exists, this thread asks a plugin for a plan, and a fork in another thread waits for
// its end. A library beneath a plugin may be locked meanwhile (a cache of compiled code), and would
// stay locked in the child. The plugin cannot keep forks away itself: its handlers run before those
// of the host, so a lock of its own would be taken before those under which plans are made.
class Planning {
 public:
  Planning();
  ~Planning();
  Planning(const Planning&) = delete;
  Planning& operator=(const Planning&) = delete;
};

}  // namespace tenon
