// Giving up what the reader does not need, before it reads anything in a file.
#pragma once

#include <cstdint>

namespace tenon::reader {

// Closes 1 and 2, and all files from `first` on, which is 3 or less where no file is to be read.
void close_other_files(int first);

// Limits the memory of this process to what it has now and `more` bytes, its time on a processor to
// `seconds`, and the files that it may open to none.
void limit_resources(uint64_t more, uint64_t seconds);

// Forbids all system calls but those that allocate memory, read and write files that are open, and
// end the process. Returns false where the system does not offer that.
bool forbid_system_calls();

}  // namespace tenon::reader
