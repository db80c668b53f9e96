#include <tenon/conformance/joint/checks.h>
#include <tenon/conformance/joint/joint.h>

namespace tenon::conformance {

std::vector<Check> joint_checks(const Device& device) {
  std::vector<Check> checks;
  const joint::Add add = [&](const char* about, const char* name, void (*look)(joint::Bench&)) {
    checks.push_back({"joint", about, name, f32, [device, look] {
                        joint::Bench bench(device);
                        look(bench);
                      }});
  };
  joint::add_memory_checks(add);
  joint::add_request_checks(add);
  joint::add_plan_checks(add);
  joint::add_stream_checks(add);
  return checks;
}

}  // namespace tenon::conformance
