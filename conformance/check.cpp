#include <exception>

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
  } catch (const std::exception& e) {
    end(Status::failed, e.what());
  } catch (...) {
    end(Status::failed, "an exception of unknown type");
  }
  return result;
}

}  // namespace tenon::conformance
