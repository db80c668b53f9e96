// A filter of system calls (seccomp) for a process that reads a file.
#pragma once

namespace tenon::tools {

struct Exceptions {
  bool signals = false;    // to other processes
  bool debugging = false;  // ptrace
};

// Forbids this process, which must have one thread, and all that it starts what reading a file does
// not need: sockets other than a pair, changes of files, signals, debugging, namespaces, and what
// only an administrator does. They fail with EPERM. Does nothing where there are no filters, and on
// processors whose system calls have not been looked at.
void forbid_system_calls(const Exceptions& exceptions);

}  // namespace tenon::tools
