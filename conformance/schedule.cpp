#include <stdexcept>

#include <tenon/conformance/cases/optimizer_schedule.h>

namespace tenon::conformance {

namespace {

using namespace optim;

std::shared_ptr<LRScheduler> make_cycle(const std::string& op, const json& a, Optimizer& o) {
  if (op == "OneCycleLR")
    return std::make_shared<OneCycleLR>(
        o, a.at("max_lr").get<double>(),
        OneCycleOptions{.total_steps = a.value("total_steps", int64_t{0}),
                        .epochs = a.value("epochs", int64_t{0}),
                        .steps_per_epoch = a.value("steps_per_epoch", int64_t{0}),
                        .pct_start = a.value("pct_start", 0.3),
                        .anneal_strategy = a.value("anneal_strategy", "cos"),
                        .cycle_momentum = a.value("cycle_momentum", true),
                        .base_momentum = a.value("base_momentum", 0.85),
                        .max_momentum = a.value("max_momentum", 0.95),
                        .div_factor = a.value("div_factor", 25.0),
                        .final_div_factor = a.value("final_div_factor", 1e4),
                        .three_phase = a.value("three_phase", false)});
  if (op == "CyclicLR")
    return std::make_shared<CyclicLR>(
        o, a.at("base_lr"), a.at("max_lr"),
        CyclicOptions{.step_size_up = a.value("step_size_up", int64_t{2000}),
                      .step_size_down = a.value("step_size_down", int64_t{0}),
                      .mode = a.value("mode", "triangular"),
                      .gamma = a.value("gamma", 1.0),
                      .cycle_momentum = a.value("cycle_momentum", true),
                      .base_momentum = a.value("base_momentum", 0.8),
                      .max_momentum = a.value("max_momentum", 0.9)});
  throw std::invalid_argument("no scheduler is called " + op);
}

PlateauOptions plateau_options(const json& a) {
  return {.mode = a.value("mode", "min"),
          .factor = a.value("factor", 0.1),
          .patience = a.value("patience", int64_t{10}),
          .threshold = a.value("threshold", 1e-4),
          .threshold_mode = a.value("threshold_mode", "rel"),
          .cooldown = a.value("cooldown", int64_t{0}),
          .min_lr = a.value("min_lr", 0.0),
          .eps = a.value("eps", 1e-8)};
}

}  // namespace

std::shared_ptr<LRScheduler> make_scheduler(const json& node, Optimizer& o) {
  const std::string op = node.at("op");
  const json& a = node.at("args");
  const int64_t total = a.value("total_iters", int64_t{5});
  if (op == "StepLR")
    return std::make_shared<StepLR>(o, a.at("step_size").get<int64_t>(), a.value("gamma", 0.1));
  if (op == "MultiStepLR")
    return std::make_shared<MultiStepLR>(o, a.at("milestones").get<std::vector<int64_t>>(),
                                         a.value("gamma", 0.1));
  if (op == "ConstantLR") return std::make_shared<ConstantLR>(o, a.value("factor", 1.0 / 3), total);
  if (op == "LinearLR")
    return std::make_shared<LinearLR>(o, a.value("start_factor", 1.0 / 3),
                                      a.value("end_factor", 1.0), total);
  if (op == "ExponentialLR") return std::make_shared<ExponentialLR>(o, a.at("gamma").get<double>());
  if (op == "PolynomialLR") return std::make_shared<PolynomialLR>(o, total, a.value("power", 1.0));
  if (op == "CosineAnnealingLR")
    return std::make_shared<CosineAnnealingLR>(o, a.at("T_max").get<int64_t>(),
                                               a.value("eta_min", 0.0));
  if (op == "CosineAnnealingWarmRestarts")
    return std::make_shared<CosineAnnealingWarmRestarts>(
        o, a.at("T_0").get<int64_t>(), a.value("T_mult", int64_t{1}), a.value("eta_min", 0.0));
  if (op != "SequentialLR") return make_cycle(op, a, o);
  std::vector<std::shared_ptr<LRScheduler>> parts;
  for (const json& part : a.at("schedulers")) parts.push_back(make_scheduler(part, o));
  return std::make_shared<SequentialLR>(o, std::move(parts),
                                        a.at("milestones").get<std::vector<int64_t>>());
}

List call_schedule(const json& node, const List& in) {
  const json& args = node.at("args");
  const int64_t steps = node.at("steps");
  SGD optimizer({zeros({1}, {.device = Device("cpu")})}, {.lr = args.at("lr")});
  std::shared_ptr<LRScheduler> scheduler;
  std::unique_ptr<ReduceLROnPlateau> plateau;
  if (node.at("op") == "ReduceLROnPlateau")
    plateau = std::make_unique<ReduceLROnPlateau>(optimizer, plateau_options(args));
  else
    scheduler = make_scheduler(node, optimizer);
  const auto metric = plateau ? in[0].to_vector<double>() : std::vector<double>();
  std::vector<double> rates;
  for (int64_t i = 0; i < steps; ++i) {
    rates.push_back(optimizer.lr());
    if (i + 1 == steps) break;  // a cycle has no more steps
    if (plateau)
      plateau->step(metric.at(static_cast<size_t>(i)));
    else
      scheduler->step();
  }
  return {tensor(rates, rates.size(), {.device = Device("cpu")})};
}

}  // namespace tenon::conformance
