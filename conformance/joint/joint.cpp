#include <tenon/conformance/joint/checks.h>
#include <tenon/conformance/joint/joint.h>

namespace tenon::conformance {

std::vector<Check> joint_checks(const Subject& subject) {
  std::vector<Check> checks;
  const joint::Add add = [&](const char* about, const char* name, void (*look)(joint::Bench&)) {
    checks.push_back({"joint", about, name, f32, [subject, look] {
                        joint::Bench bench(subject);
                        look(bench);
                      }});
  };
  joint::add_memory_checks(add);
  joint::add_shortage_checks(add);
  joint::add_request_checks(add);
  joint::add_plan_checks(add);
  joint::add_stream_checks(add);
  joint::add_neighbour_checks(add);
  return checks;
}

}  // namespace tenon::conformance
