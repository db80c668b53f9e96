// The checks of a line of the table. Each function returns what there is to look at; nothing runs
// before a check is run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <tenon/conformance/case.h>
#include <tenon/conformance/check.h>

namespace tenon::conformance {

// How much is done. What is left out is spread, so that each dtype of a line, and over a family's
// lines each variant, has its turn.
struct Effort {
  static constexpr size_t kAll = std::numeric_limits<size_t>::max();
  size_t runs = 24;           // combinations of variant and dtype of a line
  size_t differences = kAll;  // variants of a line that are differentiated
  bool elsewhere = false;     // dtypes that devices with units for them have as well
  bool optional = false;      // dtypes that are looked at on the cpu alone otherwise
  bool strided_cases = true;  // reference cases also from inputs that are not contiguous
  bool rounded_cases = true;  // reference cases also in the half types that a line takes
  size_t shapes = 24;         // of a line, that the table does not have
  size_t repeats = 4;         // of a line
  uint64_t seed = 0;          // of the shapes
};

struct CaseFolder;
struct ReferenceCase;

// Values and gradients of the reference cases of this operator, in f32 and f64, from contiguous
// inputs and from others. Lines with `no_reference` have none.
std::vector<Check> case_checks(const Line& line, const Subject& subject, const CaseFolder& folder,
                               const Effort& effort);
// A case of promotion.
Check promotion_check(const std::shared_ptr<const ReferenceCase>& c, const Subject& subject);
// Names in the files whose cases no line of the table runs, with how many cases each: " atan2(2)".
std::string cases_beside_the_table(const CaseFolder& folder);

// Values and gradients of each variant in each dtype, in changing memory layouts, against the
// reference device on contiguous inputs. `number`: of the line in its family.
std::vector<Check> layout_checks(const Line& line, const Subject& subject, size_t number,
                                 const Effort& effort);

// Values and gradients of each dtype from contiguous inputs of more than 10 000 elements.
std::vector<Check> large_checks(const Line& line, const Subject& subject);

// Values and gradients of each dtype for multiples of the sizes of vectors, blocks and tiles, where
// the subject is an overlay that takes them.
std::vector<Check> size_checks(const Line& line, const Subject& subject);

// Values and gradients for random shapes that the table does not have: no element, one element,
// extents around the sizes of vectors and blocks, shapes that broadcast; with NaN and infinities,
// and inputs that share memory.
std::vector<Check> shape_checks(const Line& line, const Subject& subject, size_t number,
                                const Effort& effort);

// The same call twice gives the same bits.
std::vector<Check> repeat_checks(const Line& line, const Subject& subject, size_t number,
                                 const Effort& effort);

// Gradients of first and second order against finite differences in f64, for the variants that are
// small.
std::vector<Check> gradient_checks(const Line& line, const Subject& subject, size_t number,
                                   const Effort& effort);
// Calls look(results) and look(gradients) for each variant that all gradient checks differentiate:
// what computed them is what these checks show to be right.
void for_each_differentiated(const Line& line, const Subject& subject,
                             const std::function<void(const std::vector<Tensor>&)>& look);

}  // namespace tenon::conformance
