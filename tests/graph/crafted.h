// Files of programs whose description can be changed at will, with the right checksums.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include <tenon/serialization/tensor_copy.h>
#include <tenon/tenon.h>

#include "../files.h"

namespace tenon::test::crafted {

using nlohmann::json;

struct Net : nn::Module<Net> {
  nn::Conv2d conv{1, 2, 3};
  nn::Linear fc{2 * 3 * 3, 3};
  nn::Dropout drop{0.2};
  Tensor forward(const Tensor& x) { return fc(drop(max_pool2d(relu(conv(x)), 2).flatten(1))); }
};

// Writes a program that trains a small net.
inline void save_small_program(const std::filesystem::path& path) {
  manual_seed(3);
  Net net;
  optim::Adam optimizer(net.parameters(), {.lr = 0.01});
  auto step = compile([&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss = cross_entropy(net(x), y);
    loss.backward();
    optimizer.step();
    return loss;
  });
  for (int i = 0; i < 3; ++i) step(randn({2, 1, 8, 8}), randint(0, 3, {2}));
  step.save(path, {.inputs = {"x", "y"}, .outputs = {"loss"}});
}

// A file of a program, of which the description can be changed; checksums are right again then.
class Crafted {
 public:
  explicit Crafted(void (*save)(const std::filesystem::path& path) = save_small_program)
      : file_(folder_ / "crafted.tenon") {
    save(folder_ / "small.tenon");
    all_ = open_all_tensors(folder_ / "small.tenon", "", true);
    for (size_t i = 0; i < all_.tensors.size(); ++i) {
      source_.tensors.push_back(
          {all_.tensors[i].key, all_.tensors[i].shape, all_.tensors[i].dtype});
      values_.push_back(all_.read(i));
      if (all_.tensors[i].key == "@program/graph") place_ = i;
    }
    const auto bytes = values_[place_].to_vector<uint8_t>();
    graph = json::parse(bytes.begin(), bytes.end());
  }

  // Where the node of an operator is.
  json& node(const std::string& op) {
    for (auto& node : graph["nodes"])
      if (node["op"] == op) return node;
    BOOST_FAIL("there is no " << op);
    return graph;
  }

  const std::filesystem::path& write(const json& changed) { return write_text(changed.dump()); }
  const std::filesystem::path& write_text(const std::string& text) {
    values_[place_] =
        from_host(text.data(), u8, {static_cast<int64_t>(text.size())}, {.dtype = u8});
    source_.tensors[place_].shape = values_[place_].shape();
    source_.read = [&](size_t i) { return values_[i]; };
    write_tensors(file_, FileFormat::tenon, source_);
    return file_;
  }

  // The error of a load after `change` was made; the description is as before then.
  std::string refusal(const std::function<void(Crafted&)>& change) {
    const json before = graph;
    change(*this);
    std::string text = "it was loaded";
    try {
      Program::load(write(graph));
    } catch (const Error& error) {
      text = error.what();
    }
    graph = before;
    return text;
  }

  json graph;

 private:
  TempFolder folder_;
  std::filesystem::path file_;
  TensorFile all_;
  TensorSource source_;
  std::vector<Tensor> values_;
  size_t place_ = 0;
};

inline bool is_refused(const std::filesystem::path& path) {
  try {
    Program::load(path);
  } catch (const CheckpointError&) {
    return true;
  }
  return false;
}

}  // namespace tenon::test::crafted
