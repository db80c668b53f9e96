// An operator of the plugin's own library, with which plans are tried.
#include <charconv>
#include <map>
#include <mutex>
#include <sstream>
#include <variant>

#include <tenon/conformance/joint/bench.h>
#include <tenon/conformance/joint/joint.h>
#include <tenon/core/dispatch/custom_op.h>
#include <tenon/core/error.h>

namespace tenon::conformance {

namespace joint {

namespace {

// "mylib::swish2(beta=1.5)". Plans and operators refer to it as long as the process lives.
struct Tried {
  std::string name;
  custom::Attributes attributes;
  std::vector<tn_attr> raw;
};

custom::Attributes::Value value_of(const std::string& text) {
  const char *begin = text.data(), *end = begin + text.size();
  int64_t whole = 0;
  double number = 0;
  if (text == "true" || text == "false") return text == "true";
  if (const auto [at, error] = std::from_chars(begin, end, whole);
      at == end && error == std::errc())
    return whole;
  if (const auto [at, error] = std::from_chars(begin, end, number);
      at == end && error == std::errc())
    return number;
  return text;
}

Tried parse(const std::string& text) {
  Tried tried;
  const size_t open = text.find('(');
  tried.name = text.substr(0, open);
  const bool closed = open == text.npos || (text.back() == ')' && open + 1 < text.size());
  std::stringstream items(
      open == text.npos || !closed ? "" : text.substr(open + 1, text.size() - open - 2));
  bool good = closed && tried.name.find("::") != tried.name.npos;
  for (std::string item; std::getline(items, item, ',');) {
    const size_t equals = item.find('='), first = item.find_first_not_of(' ');
    good = good && equals != item.npos && first < equals && equals + 1 < item.size();
    if (!good) break;
    std::visit(
        [&](const auto& value) {
          using V = std::decay_t<decltype(value)>;
          const std::string name = item.substr(first, equals - first);
          if constexpr (std::is_same_v<V, std::string>)
            tried.attributes.set(name, value.c_str());
          else
            tried.attributes.set(name, value);
        },
        value_of(item.substr(equals + 1)));
  }
  if (!good)
    throw ValueError(
        fmt::format("--try {}: has the form \"mylib::swish2\" or \"mylib::swish2(beta=1.5)\", an "
                    "operator and its attributes",
                    text));
  return tried;
}

const Tried& tried_of(const std::string& text) {
  static std::map<std::string, Tried> all;
  static std::mutex mutex;
  std::lock_guard lock(mutex);
  auto [it, fresh] = all.try_emplace(text);
  Tried& tried = it->second;
  if (!fresh) return tried;
  tried = parse(text);
  for (auto& [name, value] : tried.attributes.all()) {
    tn_attr attr{};
    attr.struct_size = sizeof attr;
    attr.name = name.c_str();
    if (auto* truth = std::get_if<bool>(&value))
      attr.kind = TN_ATTR_BOOL, attr.i = *truth;
    else if (auto* whole = std::get_if<int64_t>(&value))
      attr.kind = TN_ATTR_INT, attr.i = *whole;
    else if (auto* number = std::get_if<double>(&value))
      attr.kind = TN_ATTR_FLOAT, attr.f = *number;
    else
      attr.kind = TN_ATTR_STRING, attr.s = std::get<std::string>(value).c_str();
    tried.raw.push_back(attr);
  }
  return tried;
}

// What the core calls: the plugin is the only one that has a kernel of it.
Tensor call_tried(const Tried& tried, const Tensor& x) {
  static const custom::Op op(
      {.name = tried.name,
       .infer = [](const custom::InferContext& call) { return std::vector{call.input(0)}; },
       .pointwise = true});
  return op({x}, tried.attributes);
}

// What it makes of -2 and of 0 is what it makes of them first.
void measure(Bench& bench, Operator& op) {
  Request request(op, op.count);
  Plan plan(bench, request.get());
  Stream stream(bench);
  const auto count = static_cast<size_t>(op.count);
  Memory x(bench, count * sizeof(float)), y(bench, count * sizeof(float));
  std::vector<float> values(count, 0);
  values[0] = -2;
  stream.upload(x, values);
  plan.run(stream, x, y);
  const auto found = stream.download(y, count);
  op.of_minus_two = found[0];
  op.of_zero = found[1];
}

}  // namespace

Operator tried_operator(Bench& bench) {
  const Tried& tried = tried_of(bench.subject.tried);
  std::string reason;
  for (int64_t count : {1031, 70001}) {
    Operator op{tried.name.c_str(), 0, [&tried](const Tensor& x) { return call_tried(tried, x); }};
    op.count = count;
    op.attrs = tried.raw;
    Request request(op, count);
    tn_error* no = bench.planner.supports(bench.planner_device, request.get());
    if (!no) {
      measure(bench, op);
      return op;
    }
    reason = plugins::take_message(no);  // of the larger one in the end
  }
  throw UnsupportedError(
      fmt::format("the operator {} of f32, with which plans are to be tried, is not offered: {}",
                  bench.subject.tried, reason));
}

}  // namespace joint

void require_readable(const std::string& tried) {
  if (!tried.empty()) joint::parse(tried);
}

}  // namespace tenon::conformance
