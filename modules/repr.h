// Values as Python prints them, for extra_repr, and checks of the options of layers.
#pragma once

#include <string>

#include <tenon/core/pair.h>

namespace tenon::nn {

std::string repr(double value);  // "0.1", "1e-05", "2.0", "inf"
inline const char* repr(bool value) { return value ? "True" : "False"; }
std::string repr(const Single& size);  // "2"
std::string repr(const Pair& size);    // "2" or "(2, 3)"
std::string repr(const Triple& size);  // "2" or "(2, 3, 4)"

// Throws the ValueError "<layer>: <what> is <value>; it has to be <wanted>" unless `ok`.
void require(bool ok, const char* layer, const char* what, double value, const char* wanted);
// Throws the same unless the value is finite and at least 0, as eps, learning rates and decays must
// be.
void require_not_negative(double value, const char* layer, const char* what);
// Throws the same unless all numbers of the size are from `least` to 2^31 - 1.
void require_size(const Single& size, int64_t least, const char* layer, const char* what);
void require_size(const Pair& size, int64_t least, const char* layer, const char* what);
void require_size(const Triple& size, int64_t least, const char* layer, const char* what);

}  // namespace tenon::nn
