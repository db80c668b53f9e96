// Formats numbers for messages.
#pragma once

#include <string>

#include <tenon/core/api.h>

namespace tenon {

// Returns a short text such as "0.5", "1e+300" or "nan".
TENON_API std::string number_text(double value);
// Throws the ValueError "<op>: <what> must be finite and at least 0, found <value>" unless it is.
void require_not_negative(const char* op, const char* what, double value);

}  // namespace tenon
