// Values as Python prints them, for extra_repr. Not installed.
#pragma once

#include <string>

#include <tenon/modules/pair.h>

namespace tenon::nn {

std::string repr(double value);  // "0.1", "1e-05", "2.0", "inf"
inline const char* repr(bool value) { return value ? "True" : "False"; }
std::string repr(const Shape& shape);  // "(2, 3)", "(2,)"
std::string repr(const Pair& pair);    // "2" or "(2, 3)"

// "<layer>: <what> is <value>; it has to be <wanted>" as a ValueError unless `ok`.
void require(bool ok, const char* layer, const char* what, double value, const char* wanted);
// A number that is finite and at least 0: what eps, rates and decays have to be.
void require_not_negative(double value, const char* layer, const char* what);
// Both numbers of a size from `least` to 2^31 - 1.
void require_size(const Pair& size, int64_t least, const char* layer, const char* what);

}  // namespace tenon::nn
