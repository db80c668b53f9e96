// Calls that do not come from Tenon's public functions, such as those in a file.
#pragma once

#include <tenon/core/dispatch/descriptor.h>

namespace tenon {

// Public functions check the attributes of their calls, so shape rules and plugins rely on them: no
// stride is 0, and no dimension is the ninth. Throws a ValueError that names the attribute unless
// those of the call are in these ranges.
void require_sane_attributes(const CallDesc& call);

}  // namespace tenon
