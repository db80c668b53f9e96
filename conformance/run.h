// One call of a line's operator on both sides: on the subject's device from inputs in awkward
// layouts, and on the reference device from contiguous ones.
#pragma once

#include <functional>
#include <random>
#include <string>
#include <vector>

#include <tenon/conformance/case.h>
#include <tenon/conformance/check.h>
#include <tenon/conformance/layout.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

// How the inputs of the shape, dtype and kind of the first share memory with it.
enum class Alias {
  none,
  same,         // one tensor several times
  overlapping,  // each begins one element behind the one before
};

// A variant in a dtype, with a layout for each input. The seed decides on the values.
struct Run {
  const Line* line;
  Variant variant;
  DType dtype;
  std::vector<const Layout*> layout;
  size_t seed = 0;
  Alias alias = Alias::none;
  bool awkward = false;  // NaN and infinities also where the line's values have none
  bool wide = false;     // compared with results in f64

  // "{'dim': 1} of [2, 3] transposed, [4] contiguous"
  std::string describe() const;
};

struct Sides {
  List found, expected;  // on the device in their layouts; contiguous on the reference device
};

// `ordinary`: neither NaN nor infinities. `wide`: the expected ones in f64.
Sides inputs_of(const Run& run, const Subject& subject, bool ordinary, bool wide);

// The gradients of the first floating output with respect to the inputs that have one, seeded with
// values that are the same on both sides.
List gradients(const Run& run, const Subject& subject, const json& args, List in);

// What a call gives, or what it throws, at once or when its results are waited for.
struct Answer {
  List results;
  std::string refusal;  // "" if nothing was thrown
};

// All results are waited for: an error that nobody hears is told at the end of the process.
// Throws what is not offered, an UnsupportedError.
Answer answer_of(const std::function<List()>& call);

// Returns what `call` does on the reference device. What that does not offer says nothing about the
// subject: an UnsupportedError becomes a Skipped. Ask the subject before.
template <class F>
auto from_reference(const Subject& subject, F&& call) {
  try {
    return call();
  } catch (const UnsupportedError& e) {
    throw Skipped("because " + subject.reference.str() +
                  ", which it is compared with, does not offer it: " + e.what());
  }
}

// Throws a Skipped if no tensor of the lists has an element.
void require_elements(const List& outputs, const List& gradients);

// Throws a Mismatch unless values (and gradients) on both sides are the same, and a Skipped if
// there are none.
void compare_sides(const Run& run, const Subject& subject, bool wide, bool with_gradients);
// The same of results that are there already.
void compare_results(const Run& run, const Subject& subject, bool wide, bool with_gradients,
                     const List& found, const List& expected);

// The variant's arguments.
json parsed(const Variant& variant);
// The arguments, as in the variant, with `changed` in place of each extent above 1 that they
// repeat.
std::string with_extents(const Variant& variant, const std::function<int64_t(int64_t)>& changed);
// The kind of values of an input, which the line says where the input does not.
Values kind_of(const Line& line, const In& in);
// Values of this kind are never differentiated by.
bool is_fixed(Values kind);
// How the results of a line in a dtype are compared: with those in f64 (`wide`).
bool compared_in_f64(const Line& line, DType dtype, const Subject& subject);
// Whether the gradients of a line in a dtype are compared with those of the reference device.
inline bool compares_gradients(const Line& line, DType dtype) {
  return line.difference > 0 && contains(kReals | line.types_of_cpu, dtype);
}
// The dtypes in which a line is looked at on the subject.
inline Types types_for(const Line& line, const Subject& subject) {
  return line.types | (subject.device.type() == "cpu" ? line.types_of_cpu : kNoTypes);
}

// Values for the inputs of a line.
class Random {
 public:
  Random(const Line& line, size_t run);
  Tensor values(const In& in, Values kind, DType dtype, const Shape& shape, Device device);
  int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  double value(const In& in, Values kind, DType dtype);
  std::mt19937 engine_;
};

}  // namespace tenon::conformance
