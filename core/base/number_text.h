// Numbers in messages. Not installed.
#pragma once

#include <string>

#include <tenon/core/api.h>

namespace tenon {

// "0.5", "1e+300", "nan": short, whatever it is.
TENON_API std::string number_text(double value);
// ValueError "<op>: <what> must be finite and at least 0, found <value>" unless it is.
void require_not_negative(const char* op, const char* what, double value);

}  // namespace tenon
