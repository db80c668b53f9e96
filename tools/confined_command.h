// A command that reads a file of somebody else, in a process without privileges.
#pragma once

#include <filesystem>
#include <functional>

namespace tenon::tools {

// Runs a command in a process that is confined (confined.h), prints what it has printed, and
// returns its exit status: 1 if it has thrown, and then the error is printed. Throws an Error that
// names the file if the process dies, or takes longer than TENON_HDF5_TIMEOUT seconds and one for
// each MiB of the file. Call it while this process has one thread.
int run_confined(const std::filesystem::path& file, const std::function<void()>& command);

}  // namespace tenon::tools
