// Numbers in messages. Not installed.
#pragma once

#include <string>

#include <tenon/core/api.h>

namespace tenon {

// "0.5", "1e+300", "nan": short, whatever it is.
TENON_API std::string number_text(double value);

}  // namespace tenon
