// The commands of `tenon`. Each prints to stdout and throws tenon::Error where it fails.
#pragma once

#include <string>

namespace tenon::tools {

// Every plugin that was found, loaded or refused and why; then the devices, with memory and
// threads. False where there is none.
bool list_devices();

// Keys, shapes, dtypes and wrappers of a checkpoint.
void show_checkpoint(const std::string& path);
// Reads every byte and compares the checksums.
void verify_checkpoint(const std::string& path);

// Fetches a data set by name into `folder`, made where it is not there; files that are there
// already are kept.
void fetch_data(const std::string& name, const std::string& folder);

// 1536 -> "1.5 KiB".
std::string human_bytes(uint64_t bytes);

}  // namespace tenon::tools
