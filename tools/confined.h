// Takes the privileges of a process away before it reads a file that somebody may have made to
// break it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

namespace tenon::tools {

struct Confinement {
  std::filesystem::path file;  // what is read; its folder stays readable
  uint64_t bytes = 0;          // its size, with that of its shards
  uint64_t seconds = 0;        // of a processor
};

// Limits memory and time of this process, which must have one thread, and of all that it starts,
// and forbids what reading a file does not need: the network, changes of files, other processes,
// and reading outside of the folder of the file and of what Tenon is made of. Where the system
// lacks one of these means, the others hold. It is one way. docs/checkpoints.md lists all.
void confine(const Confinement& confinement);

// The files beside `file` that it may list, if it is an index: by their names.
std::vector<std::filesystem::path> shards_beside(const std::filesystem::path& file);

// Whether memory is limited in this process, so that a lack of it tells about the file.
bool has_limited_memory();

}  // namespace tenon::tools
