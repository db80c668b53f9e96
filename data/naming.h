// Errors that name the example and its data set.
#pragma once

#include <exception>
#include <new>
#include <span>
#include <string>

#include <tenon/core/error.h>
#include <tenon/data/dataset.h>

namespace tenon::data {

// The DataError of one example, which its text names.
struct ExampleError : DataError {
  using DataError::DataError;
};

// Throws the ExampleError "example <index> of <name>: <why>" with the exception that is being
// handled nested.
[[noreturn]] void rethrow_naming(const Dataset& dataset, int64_t index);

// Runs body(). Whatever it throws, except std::bad_alloc, becomes an ExampleError.
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

// Does as collate(examples); errors name them as the examples of the data set with these indices.
Batch collate(std::span<const Example> examples, std::span<const int64_t> indices,
              const Dataset& dataset);

// Returns what the exception that is being handled says.
std::string current_error_text();

}  // namespace tenon::data
