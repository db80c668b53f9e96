// Error objects of the host's own.
#pragma once

#include <string>

#include <tenon/plugins/abi/abi.h>

namespace tenon::plugins {

// Returns an error that says `message`. Where there is no memory for it, the error says that,
// with the code TN_CODE_OUT_OF_MEMORY.
tn_error* host_error(tn_code code, std::string message) noexcept;

// What host_error returns where there is no memory. It is never freed.
tn_error* error_without_memory() noexcept;

// Returns an error that has the code, the message and the details of an error that can be read. It
// keeps the code even where there is no memory for the rest.
tn_error* copy_of(const tn_error& error) noexcept;

}  // namespace tenon::plugins
