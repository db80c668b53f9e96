// How long operators take: beside the reference device, and beside a copy of as many bytes.
#pragma once

#include <vector>

#include <tenon/conformance/check.h>
#include <tenon/conformance/options.h>

namespace tenon::conformance {

// A check for each line of the table that the options leave in, of its largest variant; in f32
// unless they name a dtype. None fails because of its time, which is its note.
std::vector<Check> speed_checks(const Options& options, const Subject& subject);

// The heads of the columns of the notes.
const char* speed_heading();

}  // namespace tenon::conformance
