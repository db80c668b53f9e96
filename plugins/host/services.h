// What the host does for plugins: it writes their messages and lends them its threads.
#pragma once

#include <cstdint>
#include <string>

#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// The threads that plugins share. Without them the loops of plugins run on the thread of the
// caller.
struct Threads {
  uint32_t (*count)() noexcept = nullptr;
  void (*parallel_for)(int64_t n, int64_t grain, tn_loop_body body, void* context) = nullptr;
};
// Gives plugins threads from now on.
void lend_threads(const Threads& threads);

// Returns the table of services for one plugin, which exists as long as the process, as the ABI
// promises.
const tn_host* make_host_services(const std::string& name, const std::string& library);

}  // namespace tenon::plugins
