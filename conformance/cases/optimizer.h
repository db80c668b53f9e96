// Optimizer steps: inputs are a parameter and its gradients, one a step; the result is the
// parameter after each step.
#pragma once

#include <tenon/core/ops/optimizer.h>

#include <tenon/conformance/bytes.h>
#include <tenon/conformance/case.h>

namespace tenon::conformance {

inline Tensor zeros_beside(const Tensor& x) { return zero_bytes(x.shape(), x.dtype(), x.device()); }

// `step(parameters, gradients, number of the step, which counts from 1)`.
inline List after_each_step(const List& in, const auto& step) {
  const List p = {copied(in[0])};
  std::vector<unsigned char> values;
  for (int64_t k = 0; k < in[1].size(0); ++k) {
    step(p, List{copied(in[1][k])}, k + 1);
    const auto now = bytes_of(p[0]);
    values.insert(values.end(), now.begin(), now.end());
  }
  Shape shape = {in[1].size(0)};
  for (int64_t n : in[0].shape()) shape.push_back(n);
  return {from_host(values.data(), in[0].dtype(), shape, {.device = in[0].device()})};
}
inline List call_sgd(const json& a, const List& in) {
  const double momentum = a.value("momentum", 0.0);
  const List buffers = momentum == 0 ? List{} : List{zeros_beside(in[0])};
  return after_each_step(in, [&](const List& p, const List& g, int64_t k) {
    sgd_step(p, g, buffers,
             {a.at("lr"), momentum, a.value("dampening", 0.0), a.value("weight_decay", 0.0),
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
              {a.at("lr"), betas[0], betas[1], a.value("eps", 1e-8),
               a.value("weight_decay", decoupled ? 0.01 : 0.0), amsgrad, decoupled,
               a.value("maximize", false), k});
  });
}
inline List call_adam(const json& a, const List& in) { return adam_steps(a, in, false); }
inline List call_adamw(const json& a, const List& in) { return adam_steps(a, in, true); }

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
       kSums, {.difference = 0, .values = Values::ordinary, .op = "sgd_step"}},
      {"Adam", call_adam, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}", "{'lr': 0.1, 'amsgrad': true}", "{'lr': 0.1, 'betas': [0.5, 0.9], 'maximize': true}"}),
       kSums, {.difference = 0, .values = Values::ordinary, .op = "adam_step"}},
      {"AdamW", call_adamw, kReals, steps_of({"{'lr': 0.1, 'weight_decay': 0.1}"}), kSums, {.difference = 0, .values = Values::ordinary, .op = "adam_step"}},
  };
  // clang-format on
}

}  // namespace tenon::conformance
