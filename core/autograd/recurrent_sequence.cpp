// The loop over a sequence, as one node of the graph: steps that were recorded one by one would
// each add to gradients of the whole input and of the weights.
#include <algorithm>
#include <string_view>

#include <tenon/core/autograd/function.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/recurrent/loop.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>

namespace tenon {

namespace {

// Null where the tensor is undefined.
std::vector<const Tensor*> inputs_of(std::span<const Tensor> tensors) {
  std::vector<const Tensor*> inputs;
  for (auto& t : tensors) inputs.push_back(t.defined() ? &t : nullptr);
  return inputs;
}

struct Sequence {
  // What the operator of all steps returns, without what only its gradient reads unless that is
  // `wanted`; nothing where the kind has none. Half types take the single steps, whose products may
  // be made in the half type.
  static std::vector<Tensor> at_once(const RecurrentKind& kind, std::span<const Tensor> arguments,
                                     bool reverse, bool wanted) {
    const DType type = dtype_of(arguments[0]);
    if (!kind.sequence || (type != f32 && type != f64)) return {};
    const auto inputs = inputs_of(arguments);
    const Attrs attrs = Attrs().set("reverse", reverse);
    const uint32_t results = (2u << kind.states) - 1;
    return run_all({*kind.sequence, inputs, attrs, {}, wanted ? ~0u : results});
  }

  // Returns the outputs and the states after the last step.
  static std::vector<Tensor> forward(autograd::Context& context, const RecurrentKind* kind,
                                     bool reverse, const Tensor& input_gates,
                                     const Tensor& weight_hh, const Tensor& bias_hh,
                                     const std::vector<Tensor>& states) {
    bool wanted = false;  // any gradient: of the tensors behind kind and reverse
    for (size_t i = 0; i < 3 + states.size(); ++i) wanted |= context.needs_input_grad(2 + i);
    context.set_materialize_grads(false);
    context.save("kind", kind);
    context.save("reverse", reverse);
    std::vector<Tensor> saved = {input_gates, weight_hh, bias_hh};
    saved.insert(saved.end(), states.begin(), states.end());
    if (auto all = at_once(*kind, saved, reverse, wanted); !all.empty()) {
      context.save("at_once", true);
      const size_t results = 1 + kind->states;
      saved.insert(saved.end(), all.begin() + static_cast<std::ptrdiff_t>(results), all.end());
      if (wanted) context.save_for_backward(std::move(saved));
      all.resize(results);
      return all;
    }
    context.save("at_once", false);
    RecurrentLoop loop{*kind, input_gates, weight_hh, bias_hh, reverse};
    std::vector<Tensor> results = {Tensor()};
    for (auto& state : loop.run(states, wanted)) results.push_back(state);
    results[0] = by_time(loop.outputs, loop.reverse);
    if (!wanted) return results;
    for (size_t i = 0; i < loop.steps.size(); ++i) {
      saved.push_back(loop.steps[i].hidden_gates);
      saved.insert(saved.end(), loop.next[i].begin(), loop.next[i].end());
    }
    context.save_for_backward(std::move(saved));
    return results;
  }

  // The steps as they were made; while gradients are recorded, made again from the arguments, whose
  // history is known.
  static RecurrentLoop loop_of(autograd::Context& context) {
    const RecurrentKind& kind = *context.get<const RecurrentKind*>("kind");
    auto saved = context.saved_tensors().begin();
    RecurrentLoop loop{kind, saved[0], saved[1], saved[2], context.get<bool>("reverse")};
    const auto count = static_cast<std::ptrdiff_t>(kind.states);
    std::vector<Tensor> states(saved + 3, saved + 3 + count);
    if (grad_enabled()) {
      loop.run(std::move(states), true);
      return loop;
    }
    for (auto at = saved + 3 + count; at != context.saved_tensors().end(); at += 1 + count) {
      const auto i = static_cast<int64_t>(loop.steps.size());
      const Tensor input = kind.adds_gates ? *at : loop.input_gates.select(0, loop.time_of(i));
      loop.steps.push_back({input, *at, std::move(states)});
      states.assign(at + 1, at + 1 + count);
      loop.next.push_back(states);
    }
    return loop;
  }

  // The gradient of at_once().
  static std::vector<Tensor> backward_at_once(autograd::Context& context,
                                              std::span<const Tensor> grads) {
    const RecurrentKind& kind = *context.get<const RecurrentKind*>("kind");
    const bool reverse = context.get<bool>("reverse");
    auto saved = context.saved_tensors().begin();
    const auto of_steps = saved + 3 + static_cast<std::ptrdiff_t>(kind.states);
    const Tensor &weight_hh = saved[1], &h = saved[3], &c = saved[4], &cells = of_steps[0],
                 &gates = of_steps[1];
    std::vector<Tensor> arguments;  // of one layout, or all of them would be copied
    for (auto& g : grads) arguments.push_back(g.defined() ? g.contiguous() : g);
    arguments.insert(arguments.end(), {gates, cells, c, weight_hh, h});
    const auto inputs = inputs_of(arguments);
    const Attrs attrs = Attrs().set("reverse", reverse);
    const auto g = run_all({*kind.sequence_backward, inputs, attrs});
    return {Tensor(),
            Tensor(),
            g[0],
            weight_grad(g[0], g[3]),
            saved[2].defined() ? sum(g[0], {0, 1}) : Tensor(),
            g[1],
            g[2]};
  }

  static std::vector<Tensor> backward(autograd::Context& context, std::span<const Tensor> grads) {
    if (context.get<bool>("at_once") && !grad_enabled()) return backward_at_once(context, grads);
    const RecurrentLoop loop = loop_of(context);
    const auto g = loop.backward(grads);
    std::vector<Tensor> result = {Tensor(), Tensor(), g.input_gates,
                                  weight_grad(g.hidden_gates, loop.hidden_before()),
                                  loop.bias_hh.defined() ? sum(g.hidden_gates, {0, 1}) : Tensor()};
    result.insert(result.end(), g.states.begin(), g.states.end());
    return result;
  }

  // One product over all steps.
  static Tensor weight_grad(const Tensor& gates, const Tensor& hidden) {
    const int64_t rows = gates.size(0) * gates.size(1);
    return matmul(gates.reshape({rows, gates.size(2)}).t(), hidden.reshape({rows, hidden.size(2)}));
  }
};

// The same under the names that users know from errors.
struct Rnn : autograd::Function<Rnn>, Sequence {
  static constexpr const char* name = "rnn";
};
struct Lstm : autograd::Function<Lstm>, Sequence {
  static constexpr const char* name = "lstm";
};
struct Gru : autograd::Function<Gru>, Sequence {
  static constexpr const char* name = "gru";
};

}  // namespace

Tensor run_sequence(const RecurrentKind& kind, const Tensor& input_gates, const Tensor& weight_hh,
                    const Tensor& bias_hh, bool reverse, std::vector<Tensor>& states) {
  const auto apply = [&]<class Function>(Function) {
    return Function::apply(&kind, reverse, input_gates, weight_hh, bias_hh, states);
  };
  const std::string_view name = kind.name;
  auto results = name == "lstm" ? apply(Lstm{}) : name == "gru" ? apply(Gru{}) : apply(Rnn{});
  states.assign(results.begin() + 1, results.end());
  return results[0];
}

}  // namespace tenon
