// Runs the reference cases (tests/reference/cases) for every operator that the library has, against
// PyTorch's results and gradients. Tolerances: in f32 those of the case; in f64 1e-9 relative, and
// 1e-9 of the largest value absolute.
#pragma once

#include <map>

#include <tenon/core/device.h>
#include <tenon/core/ops/convolution.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/linalg.h>
#include <tenon/core/ops/loss.h>
#include <tenon/core/ops/normalization.h>
#include <tenon/core/ops/optimizer.h>
#include <tenon/core/ops/pooling.h>
#include <tenon/core/ops/shape.h>

#include "check.h"
#include "places.h"
#include "reference/hdf5_case.h"

namespace tenon::test {

using nlohmann::json;

using List = std::vector<Tensor>;
using Runner = std::function<List(const json& args, const List& in)>;

inline Shape shape_of(const json& j) {
  if (j.is_number()) return {j.get<int64_t>()};
  auto list = j.get<std::vector<int64_t>>();
  return Shape(std::span<const int64_t>(list));
}
// Reductions without "dim" are over everything.
inline Shape dims_of(const json& args) {
  return args.contains("dim") ? shape_of(args["dim"]) : Shape{};
}
inline bool keeps(const json& args) { return args.value("keepdim", false); }
inline Tensor at(const List& in, size_t i) { return i < in.size() ? in[i] : Tensor(); }
inline Tensor like(const json& values, const Tensor& x) {
  return tensor(values.get<std::vector<double>>()).to(x.dtype()).to(x.device());
}

// Plain functions of one and two tensors.
inline Runner unary(Tensor (*f)(const Tensor&)) {
  return [f](const json&, const List& in) -> List { return {f(in[0])}; };
}
inline Runner binary(Tensor (*f)(const Tensor&, const Tensor&)) {
  return [f](const json&, const List& in) -> List { return {f(in[0], in[1])}; };
}
inline Runner reduction(Tensor (*f)(const Tensor&, const Shape&, bool)) {
  return [f](const json& a, const List& in) -> List { return {f(in[0], dims_of(a), keeps(a))}; };
}
inline Runner along(Tensor (*f)(const Tensor&, int64_t)) {
  return [f](const json& a, const List& in) -> List { return {f(in[0], a["dim"])}; };
}

inline void add_pointwise(std::map<std::string, Runner>& t) {
  for (auto& [name, f] : std::initializer_list<std::pair<const char*, Tensor (*)(const Tensor&)>>{
           {"abs", abs},
           {"neg", neg},
           {"exp", exp},
           {"log", log},
           {"sqrt", sqrt},
           {"rsqrt", rsqrt},
           {"sin", sin},
           {"cos", cos},
           {"tanh", tanh},
           {"sigmoid", sigmoid},
           {"erf", erf},
           {"reciprocal", reciprocal},
           {"square", square},
           {"sign", sign},
           {"floor", floor},
           {"ceil", ceil},
           {"round", round},
           {"relu", relu},
           {"silu", silu}})
    t[name] = unary(f);
  for (auto& [name, f] :
       std::initializer_list<std::pair<const char*, Tensor (*)(const Tensor&, const Tensor&)>>{
           {"add", add},
           {"sub", sub},
           {"mul", mul},
           {"div", div},
           {"maximum", maximum},
           {"minimum", minimum},
           {"pow", pow},
           {"eq", eq},
           {"ne", ne},
           {"lt", lt},
           {"le", le},
           {"gt", gt},
           {"ge", ge},
           {"logical_and", logical_and},
           {"logical_or", logical_or},
           {"logical_xor", logical_xor},
           {"matmul", matmul},
           {"bmm", bmm}})
    t[name] = binary(f);
  t["where"] = [](const json&, const List& in) -> List { return {where(in[0], in[1], in[2])}; };
  t["gelu"] = [](const json& a, const List& in) -> List {
    return {gelu(in[0], a["approximate"].get<std::string>())};
  };
  t["clamp"] = [](const json& a, const List& in) -> List {
    return {clamp(in[0], a["min"].get<double>(), a["max"].get<double>())};
  };
  t["pow_scalar"] = [](const json& a, const List& in) -> List {
    return {pow(in[0], a["exponent"].get<double>())};
  };
}

inline void add_reductions(std::map<std::string, Runner>& t) {
  t["sum"] = reduction(sum);
  t["mean"] = reduction(mean);
  t["prod"] = reduction(prod);
  t["amax"] = reduction(amax);
  t["amin"] = reduction(amin);
  t["any"] = reduction(any);
  t["all"] = reduction(all);
  t["logsumexp"] = reduction(logsumexp);
  t["var"] = [](const json& a, const List& in) -> List {
    return {var(in[0], dims_of(a), a["unbiased"] ? 1 : 0, keeps(a))};
  };
  t["std"] = [](const json& a, const List& in) -> List {
    return {tenon::std(in[0], dims_of(a), a["unbiased"] ? 1 : 0, keeps(a))};
  };
  t["norm"] = [](const json& a, const List& in) -> List {
    return {norm(in[0], a["p"], dims_of(a), keeps(a))};
  };
  t["argmax"] = [](const json& a, const List& in) -> List {
    return {argmax(in[0], a["dim"], a["keepdim"])};
  };
  t["argmin"] = [](const json& a, const List& in) -> List {
    return {argmin(in[0], a["dim"], a["keepdim"])};
  };
  t["softmax"] = along(softmax);
  t["log_softmax"] = along(log_softmax);
}

inline void add_shapes(std::map<std::string, Runner>& t) {
  t["reshape"] = [](const json& a, const List& in) -> List {
    return {reshape(in[0], shape_of(a["shape"]))};
  };
  t["permute"] = [](const json& a, const List& in) -> List {
    return {permute(in[0], shape_of(a["dims"]))};
  };
  t["transpose"] = [](const json& a, const List& in) -> List {
    return {transpose(in[0], a["dim0"], a["dim1"])};
  };
  t["flatten"] = [](const json& a, const List& in) -> List {
    return {flatten(in[0], a["start_dim"], a["end_dim"])};
  };
  t["expand"] = [](const json& a, const List& in) -> List {
    return {expand(in[0], shape_of(a["shape"]))};
  };
  t["unsqueeze"] = along(unsqueeze);
  t["squeeze"] = along([](const Tensor& x, int64_t dim) { return squeeze(x, dim); });
  t["cat"] = [](const json& a, const List& in) -> List { return {cat(in, a["dim"])}; };
  t["stack"] = [](const json& a, const List& in) -> List { return {stack(in, a["dim"])}; };
  t["split"] = [](const json& a, const List& in) {
    return split(in[0], a["split_size"].get<int64_t>(), a["dim"]);
  };
  t["chunk"] = [](const json& a, const List& in) { return chunk(in[0], a["chunks"], a["dim"]); };
  t["narrow"] = [](const json& a, const List& in) -> List {
    return {narrow(in[0], a["dim"], a["start"], a["length"])};
  };
  t["slice"] = [](const json& a, const List& in) -> List {
    return {slice(in[0], a["dim"], a["start"], a["end"], a["step"])};
  };
  t["index_select"] = [](const json& a, const List& in) -> List {
    return {index_select(in[0], a["dim"], in[1])};
  };
  t["gather"] = [](const json& a, const List& in) -> List {
    return {gather(in[0], a["dim"], in[1])};
  };
  t["embedding"] = [](const json&, const List& in) -> List { return {embedding(in[0], in[1])}; };
}

inline void add_layers(std::map<std::string, Runner>& t) {
  t["linear"] = [](const json&, const List& in) -> List {
    return {linear(in[0], in[1], at(in, 2))};
  };
  t["conv2d"] = [](const json& a, const List& in) -> List {
    return {conv2d(
        in[0], in[1], at(in, 2),
        {shape_of(a["stride"]), shape_of(a["padding"]), shape_of(a["dilation"]), a["groups"]})};
  };
  t["max_pool2d"] = [](const json& a, const List& in) -> List {
    return {max_pool2d(
        in[0], shape_of(a["kernel_size"]),
        {shape_of(a["stride"]), shape_of(a["padding"]), shape_of(a["dilation"]), a["ceil_mode"]})};
  };
  t["avg_pool2d"] = [](const json& a, const List& in) -> List {
    return {avg_pool2d(in[0], shape_of(a["kernel_size"]),
                       {shape_of(a["stride"]),
                        shape_of(a["padding"]),
                        {1, 1},
                        a["ceil_mode"],
                        a["count_include_pad"]})};
  };
  t["adaptive_avg_pool2d"] = [](const json& a, const List& in) -> List {
    return {adaptive_avg_pool2d(in[0], shape_of(a["output_size"]))};
  };
  t["batch_norm"] = [](const json& a, const List& in) -> List {
    return {batch_norm(in[0], like(a["running_mean"], in[0]), like(a["running_var"], in[0]),
                       at(in, 1), at(in, 2), a["training"], a["momentum"], a["eps"])};
  };
  t["layer_norm"] = [](const json& a, const List& in) -> List {
    return {layer_norm(in[0], shape_of(a["normalized_shape"]), at(in, 1), at(in, 2), a["eps"])};
  };
  t["cross_entropy"] = [](const json& a, const List& in) -> List {
    return {cross_entropy(in[0], in[1],
                          {at(in, 2), a["reduction"], a["ignore_index"], a["label_smoothing"]})};
  };
  t["nll_loss"] = [](const json& a, const List& in) -> List {
    return {nll_loss(in[0], in[1], {at(in, 2), a["reduction"]})};
  };
  t["mse_loss"] = [](const json& a, const List& in) -> List {
    return {mse_loss(in[0], in[1], a["reduction"])};
  };
  t["l1_loss"] = [](const json& a, const List& in) -> List {
    return {l1_loss(in[0], in[1], a["reduction"])};
  };
}

inline const std::map<std::string, Runner>& runners() {
  static const auto table = [] {
    std::map<std::string, Runner> t;
    add_pointwise(t);
    add_reductions(t);
    add_shapes(t);
    add_layers(t);
    return t;
  }();
  return table;
}

inline void compare(const Tensor& found, const Tensor& expected, const Case& c, DType dtype,
                    const std::string& what) {
  BOOST_REQUIRE_MESSAGE(found.shape() == expected.shape(), what << ": shape " << found.shape().str()
                                                                << ", expected "
                                                                << expected.shape().str());
  auto values = expected.to_vector<double>();
  double rtol = c.rtol, atol = c.atol;
  if (dtype == f64) {
    double largest = 0;
    for (double v : values) largest = std::max(largest, std::isfinite(v) ? std::abs(v) : 0);
    rtol = 1e-9;
    atol = 1e-9 * std::max(largest, 1.0);
  }
  require_close(found.to_vector<double>(), values, rtol, atol, what);
}

inline void run_case(const Case& c, const Runner& runner, DType dtype, Device device) {
  std::string what = c.name + " in " + std::string(name_of(dtype));
  BOOST_TEST_CONTEXT(what) {
    List in;
    for (size_t i = 0; i < c.in.size(); ++i) {
      in.push_back(
          (is_floating_point(c.in[i].dtype()) ? c.in[i].to(dtype).clone() : c.in[i]).to(device));
      if (c.gin[i].defined()) in.back().requires_grad_();
    }
    List out = runner(c.args, in);
    BOOST_REQUIRE_EQUAL(out.size(), c.out.size());
    List sources, upstream;
    for (size_t i = 0; i < out.size(); ++i) {
      compare(out[i], c.out[i], c, dtype, what + ", output " + std::to_string(i));
      if (!c.gout[i].defined()) continue;
      sources.push_back(out[i]);
      upstream.push_back(c.gout[i].to(dtype).to(device));
    }
    List wanted, expected;
    for (size_t i = 0; i < in.size(); ++i)
      if (c.gin[i].defined()) {
        wanted.push_back(in[i]);
        expected.push_back(c.gin[i]);
      }
    if (wanted.empty()) return;
    // Once with the fused backward operators, once with the rules that can be differentiated again.
    for (bool again : {false, true}) {
      auto found = grad(sources, wanted, upstream, {.retain_graph = true, .create_graph = again});
      for (size_t i = 0; i < found.size(); ++i)
        compare(found[i], expected[i], c, dtype,
                what + ", gradient " + std::to_string(i) + (again ? ", composed" : ""));
    }
  }
}

// ---- optimizers: `steps` holds the parameter after each step ----

struct Stepper {
  std::vector<Tensor> state[3];

  void step(const Case& c, const List& p, const List& g, int64_t k) {
    const json& a = c.args;
    auto zeros_once = [&](std::vector<Tensor>& s) -> std::vector<Tensor>& {
      if (s.empty()) s = {zeros_like(p[0])};
      return s;
    };
    if (c.op == "SGD") {
      double momentum = a.value("momentum", 0.0);
      SgdArgs args{a["lr"],
                   momentum,
                   a.value("dampening", 0.0),
                   a.value("weight_decay", 0.0),
                   a.value("nesterov", false),
                   a.value("maximize", false),
                   k == 1};
      sgd_step(p, g, momentum != 0 ? zeros_once(state[0]) : std::vector<Tensor>{}, args);
      return;
    }
    auto betas = a.value("betas", std::vector<double>{0.9, 0.999});
    bool amsgrad = a.value("amsgrad", false), decoupled = c.op == "AdamW";
    AdamArgs args{a["lr"],
                  betas[0],
                  betas[1],
                  a.value("eps", 1e-8),
                  a.value("weight_decay", decoupled ? 0.01 : 0.0),
                  amsgrad,
                  decoupled,
                  a.value("maximize", false),
                  k};
    adam_step(p, g, zeros_once(state[0]), zeros_once(state[1]),
              amsgrad ? zeros_once(state[2]) : std::vector<Tensor>{}, args);
  }
};

inline void run_optimizer(const Case& c, DType dtype, Device device) {
  Stepper stepper;
  List p = {c.in[0].to(dtype).clone().to(device)};
  for (int64_t k = 0; k < c.in[1].size(0); ++k) {
    stepper.step(c, p, {c.in[1][k].to(dtype).contiguous().to(device)}, k + 1);
    compare(p[0], c.out[0][k], c, dtype,
            c.name + " in " + std::string(name_of(dtype)) + ", step " + std::to_string(k + 1));
  }
}

// Runs what there is and reports what is missing. `expected` is how many cases are covered: it
// falls only by intention.
inline void run_file(const std::string& file, size_t expected, Device device = Device()) {
  size_t covered = 0;
  std::map<std::string, size_t> missing;
  auto cases = read_cases(reference_dir() + "/cases", file);
  for (auto& c : cases) {
    bool optimizer = c.op == "SGD" || c.op == "Adam" || c.op == "AdamW";
    auto runner = runners().find(c.op);
    if (!optimizer && runner == runners().end()) {
      ++missing[c.op];
      continue;
    }
    for (DType dtype : {f32, f64}) {
      if (optimizer)
        run_optimizer(c, dtype, device);
      else
        run_case(c, runner->second, dtype, device);
    }
    ++covered;
  }
  std::string names;
  for (auto& [op, n] : missing) names += " " + op + "(" + std::to_string(n) + ")";
  BOOST_TEST_MESSAGE(file << " on " << device.str() << ": " << covered << " of " << cases.size()
                          << " cases run" << (names.empty() ? "" : "; not in the library:")
                          << names);
  BOOST_CHECK_EQUAL(covered, expected);
}

// Every file, with how many of its cases the library covers.
inline void run_all_files(Device device = Device()) {
  const std::pair<const char*, size_t> files[] = {
      {"binary.h5", 46}, {"unary.h5", 46}, {"reduce.h5", 46}, {"linalg.h5", 42}, {"conv.h5", 18},
      {"norm.h5", 28},   {"loss.h5", 60},  {"shape.h5", 34},  {"optim.h5", 16}};
  for (auto& [file, covered] : files) BOOST_TEST_CONTEXT(file) {
      run_file(file, covered, device);
    }
}

}  // namespace tenon::test
