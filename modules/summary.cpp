#include <algorithm>
#include <array>

#include <tenon/core/format.h>
#include <tenon/modules/attention.h>
#include <tenon/modules/conv.h>
#include <tenon/modules/summary.h>

namespace tenon::nn {

namespace {

int64_t bytes_of(const Tensor& t) { return t.numel() * static_cast<int64_t>(size_of(t.dtype())); }

// The parameters of a module itself.
struct OwnParameters : FieldVisitor {
  Tensor weight;
  int64_t in_matrices = 0;  // elements of those that have two dimensions or more
  LayerSummary* layer = nullptr;
  void parameter(std::string_view name, Tensor& t) override {
    if (name == "weight") weight = t;
    if (t.defined() && t.dim() >= 2) in_matrices += t.numel();
    if (!layer) return;
    layer->parameters += t.numel();
    layer->trainable += t.requires_grad() ? t.numel() : 0;
    layer->parameter_bytes += bytes_of(t);
  }
};

struct TrainingFlags : FieldVisitor {
  std::vector<std::pair<bool*, bool>>* flags = nullptr;
  void training(bool& flag) override { flags->emplace_back(&flag, flag); }
};

// Each element of the input is multiplied by all weights of its channel.
template <class Layer>
int64_t flops_of_transposed(const Layer& layer, const Tensor& output) {
  const Shape kernel = layer.kernel_size.shape(), stride = layer.options.stride.shape(),
              padding = layer.options.padding.shape(), dilation = layer.options.dilation.shape(),
              more = layer.options.output_padding.shape();
  int64_t positions = 1, outputs = layer.out_channels;
  for (size_t d = 0; d < kernel.size(); ++d) {
    const int64_t size =
        output.shape()[static_cast<int64_t>(d) - static_cast<int64_t>(kernel.size())];
    const int64_t whole = size + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1;
    positions *= (more[d] < stride[d] ? whole : whole - more[d]) / stride[d] + 1;
    outputs *= size;
  }
  return outputs == 0 ? 0 : 2 * layer.weight.numel() * positions * (output.numel() / outputs);
}

// Vectors along the last dimension.
int64_t rows_of(const Tensor& output) {
  return output.dim() == 0 || output.size(-1) == 0 ? 0 : output.numel() / output.size(-1);
}

// The projections of queries, keys, values and result, and two products of the attention, for as
// many keys as there are queries.
int64_t flops_of_attention(const MultiheadAttention& layer, const Tensor& output) {
  const int64_t width = layer.embed_dim, keys = layer.options.kdim.value_or(width),
                values = layer.options.vdim.value_or(width),
                length = output.size(output.dim() == 3 && layer.options.batch_first ? 1 : 0);
  return 2 * rows_of(output) * width * (2 * width + keys + values + 2 * length);
}

bool is_recurrent(std::string_view type) {
  for (std::string_view name : {"RNN", "LSTM", "GRU", "RNNCell", "LSTMCell", "GRUCell"})
    if (type == name) return true;
  return false;
}

// Each element of the output of a convolution or a Linear is a sum of products with the weights of
// its channel. Every step of a recurrent layer multiplies each of its matrices by a vector.
int64_t flops_of(ModuleRef module, const Tensor& output) {
  if (auto* layer = module.as<ConvTranspose1d>()) return flops_of_transposed(*layer, output);
  if (auto* layer = module.as<ConvTranspose2d>()) return flops_of_transposed(*layer, output);
  if (auto* layer = module.as<ConvTranspose3d>()) return flops_of_transposed(*layer, output);
  if (auto* layer = module.as<MultiheadAttention>()) return flops_of_attention(*layer, output);
  const std::string_view type = module.type->name;
  const bool convolution = type.starts_with("Conv") && !type.starts_with("ConvTranspose");
  const bool bilinear = type == "Bilinear", recurrent = is_recurrent(type);
  if (type != "Linear" && !convolution && !bilinear && !recurrent) return 0;
  OwnParameters own;
  module.type->visit(module.self, own);
  if (recurrent) return 2 * own.in_matrices * rows_of(output);
  // A matrix times x2 for each output, and that times x1.
  if (bilinear)
    return 2 * (own.weight.numel() + own.weight.size(0) * own.weight.size(1)) * rows_of(output);
  if (!own.weight.defined() || own.weight.dim() < 2 || own.weight.size(0) == 0) return 0;
  return 2 * own.weight.numel() / own.weight.size(0) * output.numel();
}

// "1,234,567".
std::string grouped(int64_t n) {
  std::string text = fmt::format("{}", n);
  for (size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string size_text(int64_t bytes) {
  return bytes < 1024 ? fmt::format("{} B", bytes)
                      : fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

}  // namespace

namespace detail {

SummaryRun::SummaryRun(ModuleRef model) : model_(model) {
  TrainingFlags flags;
  flags.flags = &training_;
  for (auto& [name, module] : named_modules(model)) {
    modules_.push_back(module);
    LayerSummary& layer = layers_.emplace_back();
    layer.name = name;
    layer.type = module.type->name;
    layer.is_leaf = named_children(module).empty();
    OwnParameters own;
    own.layer = &layer;
    module.type->visit(module.self, own);
    module.type->visit(module.self, flags);
  }
  nn::eval(model);
}

SummaryRun::~SummaryRun() {
  for (auto& [flag, value] : training_) *flag = value;
}

void SummaryRun::returned(ModuleRef module, const Tensor& output) {
  const auto found = std::find(modules_.begin(), modules_.end(), module);
  if (found == modules_.end()) return;  // a module that the model has in no field
  LayerSummary& layer = layers_[static_cast<size_t>(found - modules_.begin())];
  ++layer.calls;
  if (!output.defined()) return;
  layer.output = output.shape();
  layer.output_bytes += bytes_of(output);
  layer.flops += flops_of(module, output);
}

Summary SummaryRun::result() const {
  Summary summary;
  summary.layers = layers_;
  for (auto& p : nn::parameters(model_)) {
    summary.parameters += p.numel();
    summary.trainable += p.requires_grad() ? p.numel() : 0;
    summary.parameter_bytes += bytes_of(p);
  }
  for (auto& layer : layers_) {
    summary.flops += layer.flops;
    if (layer.is_leaf) summary.output_bytes += layer.output_bytes;
  }
  return summary;
}

}  // namespace detail

std::string Summary::str() const {
  std::vector<std::array<std::string, 4>> rows = {
      {"Layer (type)", "Output", "Parameters", "FLOPs"}};
  for (auto& layer : layers) {
    const std::string name = layer.name.empty() ? std::string(layer.type)
                                                : fmt::format("{} ({})", layer.name, layer.type);
    rows.push_back({name, layer.output ? layer.output->str() : "-", grouped(layer.parameters),
                    grouped(layer.flops)});
  }
  size_t widths[4] = {};
  for (auto& row : rows)
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (auto& row : rows)
    text += fmt::format("{:<{}}  {:<{}}  {:>{}}  {:>{}}\n", row[0], widths[0], row[1], widths[1],
                        row[2], widths[2], row[3], widths[3]);
  text += fmt::format("Parameters: {} ({}), trainable: {}\nFLOPs: {}\nOutputs of the layers: {}\n",
                      grouped(parameters), size_text(parameter_bytes), grouped(trainable),
                      grouped(flops), size_text(output_bytes));
  return text;
}

}  // namespace tenon::nn
