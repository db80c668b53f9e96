// Opens what is checked.
#pragma once

#include <string>

#include <tenon/conformance/check.h>
#include <tenon/conformance/options.h>

namespace tenon::conformance {

struct Opened {
  Subject subject;
  std::string description;  // for people: which plugins it is, and what they are compared with
};

// Opens the reference device, the cpu without any overlay, and then the device that the options
// name, with its overlays. Decides which plugins this process has, so call it once, before any
// device is used. Throws a PluginError or DeviceError if they cannot be opened.
Opened open_subject(const Options& options);

}  // namespace tenon::conformance
