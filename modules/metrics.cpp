#include <limits>

#include <tenon/core/base/module_path.h>
#include <tenon/core/error.h>
#include <tenon/core/format.h>
#include <tenon/core/grad_mode.h>
#include <tenon/core/ops/indexing.h>
#include <tenon/core/ops/pointwise.h>
#include <tenon/core/ops/reduction.h>
#include <tenon/core/ops/shape.h>
#include <tenon/core/ops/sort.h>
#include <tenon/modules/metrics.h>

namespace tenon::metrics {

namespace {

bool is_whole(const Tensor& t) { return !is_floating_point(t.dtype()) && t.dtype() != boolean; }

void require_classes(const char* metric, const char* what, const Tensor& t) {
  if (!t.defined())
    throw ValueError(fmt::format("{}: the {} is an undefined tensor", metric, what));
  if (!is_whole(t))
    throw DTypeError(
        fmt::format("{}: the {} is of type {}; classes are whole numbers, so convert "
                    "it with .to(tenon::i64)",
                    metric, what, t.dtype()));
}

void require_shape(const char* metric, const Tensor& input, const Tensor& target, bool scores) {
  if (!input.defined())
    throw ValueError(fmt::format("{}: the input is an undefined tensor", metric));
  if (target.dim() != 1 || input.dim() != (scores ? 2 : 1) || input.size(0) != target.size(0))
    throw ShapeError(
        fmt::format("{}: an input of shape {} and a target of shape {} do not fit; "
                    "they have to have shapes {} and (n,)",
                    metric, input.shape(), target.shape(), scores ? "(n, classes)" : "(n,)"));
}

// How many rows are right, as i64.
Tensor hits_of(const char* metric, const Tensor& input, const Tensor& target, int64_t k) {
  require_classes(metric, "target", target);
  require_shape(metric, input, target, true);
  if (k < 1 || k > input.size(1))
    throw ValueError(
        fmt::format("{}: k is {}; it has to be at least 1 and at most {}, the number "
                    "of classes",
                    metric, k, input.size(1)));
  if (k == 1) return eq(argmax(input.detach(), 1), target.to(i64)).sum();
  const Tensor best = topk(input.detach(), k, 1).indices;
  return eq(best, target.to(i64).unsqueeze(1)).sum();
}

Tensor share(const Tensor& hits, int64_t count) {
  return hits.to(f64) / static_cast<double>(count);  // NaN if there are none
}

Tensor unmeasured(const Tensor& like) {
  return full({}, std::numeric_limits<double>::quiet_NaN(),
              {.dtype = f64, .device = like.defined() ? like.device() : default_device()});
}

Tensor f1_of(const Tensor& matrix, std::string_view average) {
  const int64_t n = matrix.size(0);
  const Tensor m = matrix.to(f64);
  const Tensor hits = m.reshape({n * n}).slice(0, 0, n * n, n + 1), of_target = m.sum(1),
               both = m.sum(0) + of_target;
  if (average == "micro") return hits.sum() * 2.0 / both.sum();
  const Tensor scores = hits * 2.0 / both;  // NaN where a class does not occur
  if (average == "none") return scores;
  const Tensor seen = both > 0, known = where(seen, scores, 0);
  if (average == "macro") return known.sum() / seen.sum().to(f64);
  if (average == "weighted") return (known * of_target).sum() / of_target.sum();
  throw ValueError(fmt::format(
      "f1_score: average is \"{}\"; it has to be \"macro\", \"weighted\", \"micro\" or \"none\"",
      average));
}

}  // namespace

Tensor accuracy(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  return share(hits_of("accuracy", input, target, 1), target.numel());
}

Tensor top_k_accuracy(const Tensor& input, const Tensor& target, int64_t k) {
  const NoGrad guard;
  return share(hits_of("top_k_accuracy", input, target, k), target.numel());
}

namespace {
void require_num_classes(const char* metric, int64_t num_classes) {
  if (num_classes < 1)
    throw ValueError(
        fmt::format("{}: num_classes is {}; it has to be at least 1", metric, num_classes));
}

// Targets and predicted classes, in i64.
struct Pairs {
  Tensor targets, predictions;
  bool of_scores;  // so that all predictions are classes, if there are as many scores
};
Pairs pairs_of(const char* metric, const Tensor& input, const Tensor& target) {
  require_classes(metric, "target", target);
  const bool scores = input.defined() && input.dim() == 2;
  if (!scores) require_classes(metric, "input", input);
  require_shape(metric, input, target, scores);
  return {target.to(i64), scores ? argmax(input.detach(), 1) : input.to(i64), scores};
}

Tensor count_pairs(const Tensor& targets, const Tensor& predictions, int64_t num_classes) {
  const TensorOptions options = {.dtype = i64, .device = predictions.device()};
  return index_put(zeros({num_classes, num_classes}, options), {targets, predictions},
                   ones({}, options), true);
}

// Counts one batch. The queued work refuses classes that do not exist; its error tells the path.
Tensor count_batch(const char* function, const Tensor& input, const Tensor& target,
                   int64_t num_classes) {
  require_num_classes(function, num_classes);
  const ModulePath place(function);
  const Pairs pairs = pairs_of(function, input, target);
  auto checked = [&](const char* what, const Tensor& classes) {
    const ModulePath part(what);
    const Tensor all = arange(0, num_classes, {.dtype = i64, .device = classes.device()});
    return index_select(all, 0, classes);  // which does not count negative ones from the end
  };
  return count_pairs(checked("target", pairs.targets), checked("prediction", pairs.predictions),
                     num_classes);
}
}  // namespace

Tensor confusion_matrix(const Tensor& input, const Tensor& target, int64_t num_classes) {
  const NoGrad guard;
  return count_batch("confusion_matrix", input, target, num_classes);
}

Tensor f1_score(const Tensor& input, const Tensor& target, int64_t num_classes,
                std::string_view average) {
  const NoGrad guard;
  return f1_of(count_batch("f1_score", input, target, num_classes), average);
}

Tensor auroc(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  require_classes("auroc", "target", target);
  require_shape("auroc", input, target, false);
  if (input.numel() == 0) return unmeasured(input);
  // The sum of the ranks of the ones (Mann and Whitney 1947), where equal scores share the mean of
  // their ranks.
  const Tensor scores = input.detach(), sorted = sort(scores).values;
  const Tensor below = searchsorted(sorted, scores).to(f64),
               up_to = searchsorted(sorted, scores, SearchOptions{.right = true}).to(f64);
  const Tensor rank = (below + up_to + 1) / 2.0, is_one = eq(target, 1).to(f64);
  const Tensor ones = is_one.sum(), others = static_cast<double>(target.numel()) - ones;
  return ((rank * is_one).sum() - ones * (ones + 1) / 2.0) / (ones * others);
}

// ---- over batches

Metric::~Metric() = default;

void Metric::add_to(Tensor& sum, const Tensor& value) {
  const NoGrad guard;
  sum = sum.defined() ? sum + value.to(sum.device()) : value;
}

namespace detail {

void FirstOutside::look(const Tensor& classes, int64_t num_classes) {
  const int64_t batch = batches_++;
  if (classes.numel() == 0) return;
  auto outside = [](const Tensor& value, auto&& bound) {
    return logical_or(value < 0, value >= bound);
  };
  // argmax gives the first of equal ones, so this is 0 if all are classes.
  const Tensor position = argmax(outside(classes, num_classes).to(f32), 0, true);
  auto number = [&](int64_t n) { return full({1}, n, {.dtype = i64, .device = classes.device()}); };
  const Tensor found =
      cat({index_select(classes, 0, position), number(num_classes), position, number(batch)});
  if (!first_.defined()) {
    first_ = found;
    return;
  }
  const Tensor is_known = outside(first_.slice(0, 0, 1), first_.slice(0, 1, 2));
  first_ = where(is_known, first_, found.to(first_.device()));
}

void FirstOutside::require_none(const char* metric, const char* what) const {
  if (!first_.defined()) return;
  const std::vector<int64_t> first = first_.to_vector<int64_t>();
  const int64_t value = first[0], bound = first[1], position = first[2], batch = first[3];
  if (value >= 0 && value < bound) return;
  const std::string which =
      batches_ > 1 ? fmt::format(" of batch {} (of {}, counted from 0)", batch, batches_) : "";
  throw IndexError(
      fmt::format("{}: {} {} at position {}{} is outside [0, {}), the classes; leave out rows that "
                  "have no class before update(), and begin again with reset()",
                  metric, what, value, position, which, bound));
}

}  // namespace detail

void Mean::update(const Tensor& values) {
  add_to(sum_, values.detach().to(f64).sum());
  weight_ += static_cast<double>(values.numel());
}
void Mean::update(const Tensor& value, double weight) {
  if (value.numel() != 1)
    throw ShapeError(fmt::format(
        "Mean: a value with a weight has one element; found one of shape {}", value.shape()));
  add_to(sum_, value.detach().to(f64).reshape({}) * weight);
  weight_ += weight;
}
void Mean::update(Number value, double weight) {
  update(scalar(value, {.dtype = f64, .device = sum_.defined() ? sum_.device() : default_device()}),
         weight);
}
Tensor Mean::compute() const { return sum_.defined() ? sum_ / weight_ : unmeasured(sum_); }
void Mean::reset() { sum_ = Tensor(), weight_ = 0; }

Accuracy::Accuracy(const AccuracyOptions& options) : k_(options.k) {
  if (k_ < 1) throw ValueError(fmt::format("Accuracy: k is {}; it has to be at least 1", k_));
}
void Accuracy::update(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  add_to(hits_, hits_of("Accuracy", input, target, k_));
  targets_.look(target.to(i64), input.size(1));
  count_ += target.numel();
}
Tensor Accuracy::compute() const {
  targets_.require_none("Accuracy", "target");
  return hits_.defined() ? share(hits_, count_) : unmeasured(hits_);
}
void Accuracy::reset() { hits_ = Tensor(), count_ = 0, targets_ = {}; }

ConfusionMatrix::ConfusionMatrix(const char* name, int64_t num_classes)
    : name_(name), num_classes_(num_classes) {
  require_num_classes(name, num_classes);
}
ConfusionMatrix::ConfusionMatrix(int64_t num_classes)
    : ConfusionMatrix("ConfusionMatrix", num_classes) {}
void ConfusionMatrix::update(const Tensor& input, const Tensor& target) {
  const NoGrad guard;
  const ModulePath place(name_);
  const Pairs pairs = pairs_of(name_, input, target);
  // What is outside is told by compute(): here, it only must not stop the queued work.
  auto inside = [&](const Tensor& classes) { return clamp(classes, 0, num_classes_ - 1); };
  add_to(matrix_, count_pairs(inside(pairs.targets), inside(pairs.predictions), num_classes_));
  targets_.look(pairs.targets, num_classes_);
  if (!pairs.of_scores || input.size(1) > num_classes_)
    predictions_.look(pairs.predictions, num_classes_);
}
Tensor ConfusionMatrix::compute() const {
  targets_.require_none(name_, "target");
  predictions_.require_none(name_, "prediction");
  return matrix_.defined() ? matrix_ : zeros({num_classes_, num_classes_}, {.dtype = i64});
}
Tensor ConfusionMatrix::f1_score(std::string_view average) const {
  const NoGrad guard;
  return f1_of(compute(), average);
}
void ConfusionMatrix::reset() { matrix_ = Tensor(), targets_ = predictions_ = {}; }

F1Score::F1Score(int64_t num_classes, std::string average)
    : matrix_("F1Score", num_classes), average_(std::move(average)) {
  matrix_.f1_score(average_);  // which refuses a word that it does not know
}

void AUROC::update(const Tensor& input, const Tensor& target) {
  require_classes("AUROC", "target", target);
  require_shape("AUROC", input, target, false);
  scores_.push_back(input.detach());
  targets_.push_back(target.detach());
}
Tensor AUROC::compute() const {
  const NoGrad guard;
  if (scores_.empty()) return unmeasured(Tensor());
  std::vector<Tensor> scores, targets;
  DType type = scores_[0].dtype();  // in which scores that differ in any batch still do
  for (auto& batch : scores_) type = promote(type, batch.dtype());
  for (size_t i = 0; i < scores_.size(); ++i) {
    scores.push_back(scores_[i].to(scores_[0].device()).to(type));
    targets.push_back(targets_[i].to(scores_[0].device()).to(i64));
  }
  return auroc(cat(scores), cat(targets));
}
void AUROC::reset() { scores_.clear(), targets_.clear(); }

}  // namespace tenon::metrics
