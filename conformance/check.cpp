#include <algorithm>
#include <exception>
#include <string_view>

#include <tenon/conformance/check.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

std::string_view name_of(Status status) {
  switch (status) {
    case Status::passed:
      return "passed";
    case Status::failed:
      return "failed";
    case Status::not_offered:
      return "not offered";
    case Status::skipped:
      return "skipped";
  }
  return "";
}

namespace {

// What no plugin offers, of the text of an UnsupportedError: the operator that the call or one of
// its decompositions needs, with the dtypes of a conversion. The functions that called it stand
// before it: "kl_div: mul: (2, 3) on npu:0: no plugin of …".
std::string refused_in(const std::string& text) {
  const std::string line = text.substr(0, text.find('\n'));
  const size_t end = std::min(line.find(": no plugin of"), line.find(", which no plugin of"));
  if (end == line.npos) return "";
  constexpr std::string_view kNeeds = " needs ";
  const size_t needs = line.rfind(kNeeds, end),
               begin = needs == line.npos ? 0 : needs + kNeeds.size();
  const std::string call = line.substr(begin, end - begin);
  const size_t types = call.rfind(" from ");
  const std::string names = call.substr(
      0, std::min({call.find(": ("), call.find(" on "), call.find(" from "), call.size()}));
  const size_t outer = names.rfind(": ");
  const std::string name = outer == names.npos ? names : names.substr(outer + 2);
  return name.substr(0, name.find_first_of(": ")) + (types == call.npos ? "" : call.substr(types));
}

}  // namespace

Result result_of(const Check& check) {
  Result result{
      check.section, check.op,       std::string(check.op.empty() ? "" : name_of(check.dtype)),
      check.name,    Status::passed, ""};
  const auto end = [&](Status status, std::string detail) {
    result.status = status;
    result.detail = std::move(detail);
  };
  try {
    check.run();
    if (check.note) result.detail = *check.note;
  } catch (const Skipped& e) {
    end(Status::skipped, e.what());
  } catch (const UnsupportedError& e) {
    end(check.promised ? Status::failed : Status::not_offered, e.what());
    result.refused = refused_in(e.what());
  } catch (const std::exception& e) {
    end(Status::failed, e.what());
  } catch (...) {
    end(Status::failed, "an exception of unknown type");
  }
  return result;
}

}  // namespace tenon::conformance
