// Giving up what the reader does not need, before it reads anything in a file.
#pragma once

#include <cstdint>

namespace tenon::reader {

// Closes all files but 0, the socket, and 3, the file to read.
void close_other_files();

// Limits the memory of this process to what it has now and `more` bytes, its time on a processor to
// `seconds`, and the files that it may open to none.
void limit_resources(uint64_t more, uint64_t seconds);

// Forbids all system calls but those that allocate memory, read and write files that are open, and
// end the process. Returns false where the system does not offer that.
bool forbid_system_calls();

}  // namespace tenon::reader
