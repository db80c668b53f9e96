// The signals with which a training is asked to save, and to end.
#pragma once

namespace tenon {

// The handlers are safe at any moment: they set a flag, and call only what may be called in a
// handler. That of SIGTERM puts back what the signal did before, for a second one. In a forked
// child, which nobody would ask for the flags, they do so at once and raise the signal again.
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
