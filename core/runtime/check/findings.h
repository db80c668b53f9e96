// What checked mode (TENON_CHECK) finds wrong with one call of a plugin.
#pragma once

#include <string>

#include <tenon/core/base/log.h>
#include <tenon/plugins/host/checked_api.h>

namespace tenon::checked {

class Findings {
 public:
  // "wrote outside of output 0: …", once for each text.
  void add(const std::string& what) {
    if (text_.find(what) == text_.npos) text_ += (text_.empty() ? "" : ";\n  and it ") + what;
  }

  // Tells them in the log, "copy <findings>\n  in a copy of 8 bytes". Returns `error`, that of the
  // call, or else one of `function` with all that was found; null if nothing is wrong.
  tn_error* tell(tn_error* error, const plugins::CheckedApi& api, const char* function,
                 const std::string& where) const {
    if (text_.empty()) return error;
    log_message(TN_LOG_ERROR, api.name(), std::string(function) + " " + text_ + "\n  in " + where);
    return error ? error : api.broken(function, text_);
  }

 private:
  std::string text_;
};

}  // namespace tenon::checked
