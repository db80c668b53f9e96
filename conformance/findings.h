// All that one check finds wrong, so that the first wrong value does not hide the others.
#pragma once

#include <exception>
#include <string>

#include <tenon/conformance/compare.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

class Findings {
 public:
  // Runs `look` and keeps the text of what it throws.
  template <class F>
  void look(F&& look) {
    try {
      look();
    } catch (const UnsupportedError&) {
      not_offered_ = std::current_exception();
    } catch (const std::exception& e) {
      text_ += (text_.empty() ? "" : "\n  ") + std::string(e.what());
    }
  }
  // Throws a Mismatch with all texts, a line each. Without any, throws what was not offered.
  void require_none() const {
    if (!text_.empty()) throw Mismatch(text_);
    if (not_offered_) std::rethrow_exception(not_offered_);
  }

 private:
  std::string text_;
  std::exception_ptr not_offered_;
};

}  // namespace tenon::conformance
