// Errors that name the example and its data set. Internal.
#pragma once

#include <exception>
#include <new>
#include <string>

#include <tenon/data/dataset.h>

namespace tenon::data {

// Throws the DataError "example <index> of <name>: <why>" with the exception that is being handled
// nested.
[[noreturn]] void rethrow_naming(const Dataset& dataset, int64_t index);

// Runs body(). Whatever it throws, except std::bad_alloc, becomes a DataError that names the
// example.
template <class Body>
decltype(auto) naming_example(const Dataset& dataset, int64_t index, Body&& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    throw;
  } catch (...) {
    rethrow_naming(dataset, index);
  }
}

// Returns what the exception that is being handled says.
std::string current_error_text();

}  // namespace tenon::data
