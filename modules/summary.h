// A summary of what the layers of a model compute for a given input, and of what they cost.
//
//   std::cout << nn::summary(net, x).str();
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <tenon/core/grad_mode.h>
#include <tenon/modules/module.h>

namespace tenon::nn {

// The summary of one module of a model.
struct LayerSummary {
  std::string name;       // "body.0"; empty for the model itself
  std::string_view type;  // "Linear"
  bool is_leaf = true;    // whether it has no modules below it
  int64_t calls = 0;      // how often it returned a tensor, or a pair or tuple that begins with one
  std::optional<Shape> output;  // the shape of the first tensor that its last call returned
  int64_t parameters = 0;       // the elements of its own parameters, not of those below it
  int64_t trainable = 0;        // those of them that require a gradient
  // The floating operations of Linear, Bilinear, convolutions (Conv…), recurrent layers and cells,
  // and MultiheadAttention: those of their products of matrices, where a multiplication and an
  // addition count as two. Attention counts as many keys as queries. 0 for all other modules.
  int64_t flops = 0;
  int64_t parameter_bytes = 0;  // the bytes of its own parameters
  int64_t output_bytes = 0;     // the bytes of the first tensors that all calls returned
};

// The summary of a model.
struct TENON_API Summary {
  std::vector<LayerSummary> layers;  // in the order of named_modules
  // Sums for the whole model: a shared parameter counts once, and outputs are those of modules
  // without children, which is what training keeps of them.
  int64_t parameters = 0, trainable = 0, flops = 0, parameter_bytes = 0, output_bytes = 0;

  // Returns a table with a line for each module, and the sums below it.
  std::string str() const;
};

namespace detail {

// Notes the calls of a model's modules on this thread until the end of the scope, in eval mode and
// without recording for autograd.
class TENON_API SummaryRun final : CallWatcher {
 public:
  explicit SummaryRun(ModuleRef model);
  ~SummaryRun() override;
  // Returns what was noted.
  Summary result() const;

 private:
  void returned(ModuleRef module, const Tensor& output) override;

  ModuleRef model_;
  NoGrad guard_;
  std::vector<std::pair<bool*, bool>> training_;
  std::vector<ModuleRef> modules_;
  std::vector<LayerSummary> layers_;
};

}  // namespace detail

// Calls the model with these inputs, in eval mode, which is undone afterwards, and without
// recording for autograd, and returns what each module did. Throws the errors of the call.
template <class M, class... A>
Summary summary(M& model, const A&... inputs) {
  detail::SummaryRun run{ModuleRef(model)};
  model(inputs...);
  return run.result();
}

}  // namespace tenon::nn
