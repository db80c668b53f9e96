#include <tenon/conformance/joint/checks.h>
#include <tenon/conformance/joint/joint.h>

namespace tenon::conformance {

std::vector<Check> joint_checks(const Subject& subject) {
  std::vector<Check> checks;
  const joint::Add add = [&](const char* about, const char* name, void (*look)(joint::Bench&)) {
    checks.push_back({"joint", about, name, f32, [subject, look] {
                        joint::Bench bench(subject);
                        look(bench);
                        // An overlay that refuses everything has shown nothing.
                        if (!subject.overlay.empty()) joint::known_operator(bench);
                      }});
  };
  // First: a thread on which the plugin has run before may have changed already.
  joint::add_neighbour_checks(add);
  const bool is_device = subject.overlay.empty();
  if (is_device) {
    joint::add_memory_checks(add);
    joint::add_shortage_checks(add);
    joint::add_device_checks(add);
  }
  joint::add_request_checks(add);
  joint::add_plan_checks(add);
  if (is_device) joint::add_stream_checks(add);
  return checks;
}

}  // namespace tenon::conformance
