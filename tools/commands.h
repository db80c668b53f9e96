// The commands of `tenon`. Each prints to the standard output and throws a tenon::Error if it
// fails.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace tenon {
struct CheckpointInfo;
}

namespace tenon::tools {

struct DevicesOptions {
  bool as_json = false;  // one JSON object
  bool strict = false;   // plugins that are refused or have remarks count as failures
  unsigned limit = 60;   // seconds in which a backend has to open its devices
};

// Prints every plugin that was found, whether it was loaded, and why not, and then the devices with
// their memory and threads. Returns false if there is no device, and if `strict`, also if a plugin
// is refused, has remarks, or finds no device. Throws a ValueError if a variable of the environment
// makes no sense, as every program that opens a device would.
bool list_devices(const DevicesOptions& options);

// Prints what is right and wrong about a plugin, of which nothing is run. Returns false if it
// cannot be used.
bool check_plugin_file(const std::string& path);

// Adds the command that checks a backend (conformance/), which sets `good` to whether it passed.
void add_conformance(CLI::App& app, bool& good);

// Adds the commands of `tenon checkpoint`; `diff` sets the exit status.
void add_checkpoint(CLI::App& app, int& status);

// Adds the commands of `tenon program`.
void add_program(CLI::App& app);

struct FileChoice;
// Prints the keys, shapes, dtypes and wrappers of a checkpoint, and the parts of a training run.
void show_checkpoint(const FileChoice& file, bool as_json);
// Prints the parts, some lines each.
void show_checkpoint_parts(const CheckpointInfo& info);
// Reads every byte and compares the checksums. As JSON, a file that is wrong is described before
// its error is thrown.
void verify_checkpoint(const FileChoice& file, bool as_json);

// Downloads a data set into `folder`, which is made if it does not exist. Files that exist already
// are kept.
void fetch_data(const std::string& name, const std::string& folder);

// Returns a size for people: 1536 gives "1.5 KiB".
std::string human_bytes(uint64_t bytes);

}  // namespace tenon::tools
