// The signals with which a training is asked to save, and to end. Internal to serialization.
#pragma once

namespace tenon {

// The handlers set a flag and nothing else, so they are safe at any moment. In a forked child,
// which nobody would ask for the flags, a signal does what it did before.
class StopSignals {
 public:
  // Begins to listen to SIGTERM and SIGUSR1. A second SIGTERM does what it did before. Throws a
  // ValueError if somebody listens already.
  static void watch();
  // Ends it: the handlers of before are back, and get a SIGTERM of which stop() has told nobody.
  static void leave();
  // Returns whether SIGUSR1 has come since the last call.
  static bool take_save();
  // Returns whether SIGTERM has come.
  static bool stop();
};

}  // namespace tenon
