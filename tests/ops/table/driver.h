// Runs a line of an operator table on a device. Every failure names the operator, its arguments,
// dtype and memory layout.
#pragma once

#include <string>

#include <tenon/core/device.h>

#include "ops/table/case.h"

namespace tenon::test {

// Values and gradients of every reference case of this operator, in f32 and f64. A line without a
// case and without a reason for that is a failure. Returns how many cases were run.
size_t check_reference(const Line& line, Device device);

// First and second order against finite differences in f64, for the variants that are small; on the
// emulated device two of them, over a family's lines each in turn. `number`: as below.
void check_differences(const Line& line, Device device, size_t number);

// Values and gradients of every variant in each dtype, in changing memory layouts, against the cpu
// on contiguous inputs. Where a device or a sanitizer is slow, some of the combinations: each dtype
// of a line, and over a family's lines each variant. `number`: of the line in its table.
void check_agreement(const Line& line, Device device, size_t number);

// Cases in all files.
size_t reference_count();
// Names in the reference files whose cases no line of `lines` runs, with how many cases each.
std::string reference_names_beside(const std::vector<const Line*>& lines);

}  // namespace tenon::test
