// Optimizer steps: inputs are a parameter and its gradients, one a step; the result is the
// parameter after each step.
#pragma once

#include <algorithm>
#include <cmath>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>
#include <tenon/core/ops/optimizer.h>

namespace tenon::conformance {

inline Tensor zeros_beside(const Tensor& x) { return zero_bytes(x.shape(), x.dtype(), x.device()); }

// `step(parameters, gradients, number of the step, which counts from 1)`. Ten steps at most: what
// half types lose by rounding their state grows with each.
inline List after_each_step(const List& in, const auto& step) {
  const List p = {copied(in[0])};
  const auto steps = std::min<int64_t>(in[1].size(0), 10);
  std::vector<unsigned char> values;
  for (int64_t k = 0; k < steps; ++k) {
    step(p, List{copied(in[1][k])}, k + 1);
    const auto now = bytes_of(p[0]);
    values.insert(values.end(), now.begin(), now.end());
  }
  Shape shape = {steps};
  for (int64_t n : in[0].shape()) shape.push_back(n);
  return {from_host(values.data(), in[0].dtype(), shape, {.device = in[0].device()})};
}
inline List call_sgd(const json& a, const List& in) {
  const double momentum = a.value("momentum", 0.0);
  const List buffers = momentum == 0 ? List{} : List{zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    sgd_step(
        p, g, buffers,
        {a.value("lr", 1e-3), momentum, a.value("dampening", 0.0), a.value("weight_decay", 0.0),
         a.value("nesterov", false), a.value("maximize", false), k == 1});
  });
}
inline List adam_steps(const json& a, const List& in, bool decoupled) {
  const auto betas = a.value("betas", std::vector<double>{0.9, 0.999});
  const bool amsgrad = a.value("amsgrad", false);
  const List mean = {zeros_beside(in[0])}, square = {zeros_beside(in[0])},
             largest = amsgrad ? List{zeros_beside(in[0])} : List{};
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    adam_step(p, g, mean, square, largest,
              {a.value("lr", 1e-3), betas[0], betas[1], a.value("eps", 1e-8),
               a.value("weight_decay", decoupled ? 0.01 : 0.0), amsgrad, decoupled,
               a.value("maximize", false), k});
  });
}
inline List call_adam(const json& a, const List& in) { return adam_steps(a, in, false); }
inline List call_adamw(const json& a, const List& in) { return adam_steps(a, in, true); }

inline std::vector<double> pair_of_numbers(const json& a, const char* name, double x, double y) {
  return a.value(name, std::vector<double>{x, y});
}
inline bool maximizes(const json& a) { return a.value("maximize", false); }
inline double decay_of(const json& a) { return a.value("weight_decay", 0.0); }

inline List call_rmsprop(const json& a, const List& in) {
  const bool centered = a.value("centered", false);
  const double momentum = a.value("momentum", 0.0);
  const List square = {zeros_beside(in[0])}, mean = centered ? List{zeros_beside(in[0])} : List{},
             buffer = momentum == 0 ? List{} : List{zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t) {
    rmsprop_step(p, g, square, mean, buffer,
                 {a.value("lr", 1e-2), a.value("alpha", 0.99), a.value("eps", 1e-8), decay_of(a),
                  momentum, centered, maximizes(a)});
  });
}
inline List call_adagrad(const json& a, const List& in) {
  const List sum = {copied_to(full(in[0].shape(), a.value("initial_accumulator_value", 0.0),
                                   {.dtype = in[0].dtype(), .device = Device()}),
                              in[0].device())};
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    adagrad_step(p, g, sum,
                 {a.value("lr", 1e-2), a.value("lr_decay", 0.0), decay_of(a), a.value("eps", 1e-10),
                  maximizes(a), k});
  });
}
inline List call_adadelta(const json& a, const List& in) {
  const List square = {zeros_beside(in[0])}, delta = {zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t) {
    adadelta_step(
        p, g, square, delta,
        {a.value("lr", 1.0), a.value("rho", 0.9), a.value("eps", 1e-6), decay_of(a), maximizes(a)});
  });
}
inline List call_adamax(const json& a, const List& in) {
  const auto betas = pair_of_numbers(a, "betas", 0.9, 0.999);
  const List mean = {zeros_beside(in[0])}, norm = {zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    adamax_step(p, g, mean, norm,
                {a.value("lr", 2e-3), betas[0], betas[1], a.value("eps", 1e-8), decay_of(a),
                 maximizes(a), k});
  });
}
inline List call_nadam(const json& a, const List& in) {
  const auto betas = pair_of_numbers(a, "betas", 0.9, 0.999);
  const double momentum_decay = a.value("momentum_decay", 4e-3);
  const List mean = {zeros_beside(in[0])}, square = {zeros_beside(in[0])};
  double product = 1;
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    nadam_step(
        p, g, mean, square,
        {a.value("lr", 2e-3), betas[0], betas[1], a.value("eps", 1e-8), decay_of(a), momentum_decay,
         product, a.value("decoupled_weight_decay", false), maximizes(a), k});
    product *= nadam_mu(betas[0], momentum_decay, k);
  });
}
inline List call_radam(const json& a, const List& in) {
  const auto betas = pair_of_numbers(a, "betas", 0.9, 0.999);
  const List mean = {zeros_beside(in[0])}, square = {zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    radam_step(p, g, mean, square,
               {a.value("lr", 1e-3), betas[0], betas[1], a.value("eps", 1e-8), decay_of(a),
                a.value("decoupled_weight_decay", false), maximizes(a), k});
  });
}
inline List call_lion(const json& a, const List& in) {
  const auto betas = pair_of_numbers(a, "betas", 0.9, 0.99);
  const List mean = {zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t) {
    lion_step(p, g, mean, {a.value("lr", 1e-4), betas[0], betas[1], decay_of(a), maximizes(a)});
  });
}
inline List call_asgd(const json& a, const List& in) {
  const double lr = a.value("lr", 1e-2), lambd = a.value("lambd", 1e-4),
               alpha = a.value("alpha", 0.75), t0 = a.value("t0", 1e6);
  const List mean = {zeros_beside(in[0])};
  float eta = static_cast<float>(lr), mu = 1;  // which PyTorch keeps in f32
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    asgd_step(p, g, mean, {eta, lambd, mu, decay_of(a), maximizes(a)});
    eta = static_cast<float>(lr / std::pow(1 + lambd * lr * static_cast<double>(k), alpha));
    mu = static_cast<float>(1 / std::max(1.0, static_cast<double>(k) - t0));
  });
}
inline List call_rprop(const json& a, const List& in) {
  const auto etas = pair_of_numbers(a, "etas", 0.5, 1.2),
             sizes = pair_of_numbers(a, "step_sizes", 1e-6, 50);
  const List last = {zeros_beside(in[0])},
             size = {copied_to(full(in[0].shape(), a.value("lr", 1e-2),
                                    {.dtype = in[0].dtype(), .device = Device()}),
                               in[0].device())};
  return after_each_step(in, [&](const List& p, const List& g, int64_t) {
    rprop_step(p, g, last, size, {etas[0], etas[1], sizes[0], sizes[1], maximizes(a)});
  });
}

inline std::vector<Variant> steps_of(std::initializer_list<const char*> options) {
  std::vector<Variant> variants;
  for (const char* args : options)
    for (const Shape& shape : {Shape{4, 3}, Shape{0}, Shape{1031}, Shape{12007}}) {
      Shape gradients = {3};
      for (int64_t n : shape) gradients.push_back(n);
      variants.push_back({args, {In(shape), In(gradients)}});
    }
  return variants;
}

inline std::vector<Line> optimizer_cases() {
  // clang-format off
  return {
      {"SGD", call_sgd, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.2}", "{'lr': 0.1, 'momentum': 0.9, 'dampening': 0.1}", "{'lr': 0.1, 'momentum': 0.9, 'nesterov': true}", "{'lr': 0.1, 'maximize': true}"}),
       kSums, {.difference = 0, .types_of_cpu = kHalves, .values = Values::ordinary, .op = "sgd_step"}},
      {"Adam", call_adam, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'amsgrad': true}", "{'lr': 0.1, 'betas': [0.5, 0.9], 'maximize': true}"}),
       kSums, {.difference = 0, .types_of_cpu = set_of({bf16}), .values = Values::ordinary, .op = "adam_step"}},
      {"AdamW", call_adamw, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}"}), kSums, {.difference = 0, .types_of_cpu = set_of({bf16}), .values = Values::ordinary, .op = "adam_step"}},
      {"RMSprop", call_rmsprop, kReals, steps_of({"{'lr': 0.02, 'weight_decay': 0.1}", "{'lr': 0.02, 'alpha': 0.8, 'centered': true, 'eps': 1e-3}", "{'lr': 0.02, 'momentum': 0.9, 'maximize': true}", "{'lr': 0.02, 'centered': true, 'momentum': 0.7, 'eps': 1e-3}"}),
       kSums, {.difference = 0, .values = Values::ordinary, .op = "rmsprop_step"}},
      {"Adagrad", call_adagrad, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'lr_decay': 0.2, 'initial_accumulator_value': 0.3, 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary, .op = "adagrad_step"}},
      {"NAdam", call_nadam, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'weight_decay': 0.1, 'decoupled_weight_decay': true}", "{'lr': 0.1, 'momentum_decay': 0.1, 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary, .op = "nadam_step"}},
      {"RAdam", call_radam, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'betas': [0.8, 0.5], 'weight_decay': 0.1, 'decoupled_weight_decay': true}", "{'lr': 0.1, 'betas': [0.8, 0.9], 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary, .op = "radam_step"}},
      {"Lion", call_lion, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'betas': [0.5, 0.9], 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary, .no_reference = "PyTorch has no Lion", .op = "lion_step"}},
      {"Adadelta", call_adadelta, kReals, steps_of({"{'lr': 0.5, 'weight_decay': 0.1}", "{'rho': 0.8, 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary}},
      {"Adamax", call_adamax, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'betas': [0.5, 0.9], 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary}},
      {"ASGD", call_asgd, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'lambd': 0.1, 't0': 1, 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary}},
      {"Rprop", call_rprop, kReals, steps_of({"{'lr': 0.1}", "{'etas': [0.4, 1.5], 'step_sizes': [0.02, 0.1], 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
