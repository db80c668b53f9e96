// Measures of how good predictions are: functions of one batch, and classes that collect batches.
//
//   metrics::Accuracy right;
//   for (auto& [x, y] : loader) right.update(net(x), y);
//   double share = right.compute().item();
//
// Scores have shape (n, classes), the highest being the prediction; targets and classes are whole
// numbers of shape (n). Results are f64 scalars on the device of the inputs, and NaN where nothing
// was measured. Functions throw a ShapeError or a DTypeError for inputs that do not fit. The
// classes take batches from any device and add up on that of the first; update() waits for nothing.
// A target or a predicted class that does not exist is found on the device, so it is an IndexError
// of compute(), which names the first one and waits for it. Nothing is recorded for autograd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon::metrics {

// Returns the share of rows whose target has the highest score, of equal ones the first. A target
// that is no class, such as -100, is never right; it counts as a row nevertheless.
TENON_API Tensor accuracy(const Tensor& input, const Tensor& target);

// Returns the share of rows whose target is among the k highest scores, of equal ones the first.
// Throws a ValueError unless k is in [1, classes].
TENON_API Tensor top_k_accuracy(const Tensor& input, const Tensor& target, int64_t k);

// Returns how often each class was predicted for each other, in i64 of shape (num_classes,
// num_classes): row: target, column: prediction. `input` are predicted classes, or scores. A class
// outside [0, num_classes) is an IndexError of the queued work: whoever reads the values gets it.
TENON_API Tensor confusion_matrix(const Tensor& input, const Tensor& target, int64_t num_classes);

// Returns the F1 score, the harmonic mean of precision and recall: 2 hits / (predicted + true).
// `average` is "macro", the mean over the classes that occur among predictions or targets;
// "weighted", the same weighted by how often they are targets; "micro", of all classes together; or
// "none", which gives a score for each class, NaN where it does not occur. Throws a ValueError for
// another word.
TENON_API Tensor f1_score(const Tensor& input, const Tensor& target, int64_t num_classes,
                          std::string_view average = "macro");

// Returns the area under the receiver operating characteristic: the share of pairs of a target 1
// and a target 0 in which the 1 has the higher score, where equal scores count half. Scores have
// shape (n).
TENON_API Tensor auroc(const Tensor& input, const Tensor& target);

// What all classes have in common.
class TENON_API Metric {
 public:
  virtual ~Metric();
  // Returns the value for all batches since the start or the last reset.
  virtual Tensor compute() const = 0;
  // Forgets all batches.
  virtual void reset() = 0;

 protected:
  // Adds to a sum that may be undefined as yet.
  static void add_to(Tensor& sum, const Tensor& value);
};

namespace detail {
// The first class of all batches that does not exist. It is looked for on the device.
class FirstOutside {
 public:
  // Looks at a batch whose classes have to be in [0, num_classes), in i64 of shape (n).
  void look(const Tensor& classes, int64_t num_classes);
  // Throws an IndexError for what was found; `what` is "target" or "prediction". Waits.
  void require_none(const char* metric, const char* what) const;

 private:
  Tensor first_;  // i64 (4): the class, how many there are, its position, its batch
  int64_t batches_ = 0;
};
}  // namespace detail

// The mean of numbers, or of the elements of tensors: a loss over an epoch.
class TENON_API Mean final : public Metric {
 public:
  void update(const Tensor& values);
  // `weight`: of the value, as the size of a batch is for its mean.
  void update(const Tensor& value, double weight);
  void update(Number value, double weight = 1);
  Tensor compute() const override;
  void reset() override;

 private:
  Tensor sum_;
  double weight_ = 0;
};

struct AccuracyOptions {
  int64_t k = 1;  // a row is right if its target is among the k highest scores
};
// As accuracy and top_k_accuracy: Accuracy(), Accuracy({.k = 5}). The number of classes is that of
// the scores. Leave out rows whose target is none, such as -100, before update().
class TENON_API Accuracy final : public Metric {
 public:
  // Throws a ValueError unless k is at least 1.
  explicit Accuracy(const AccuracyOptions& options = {});
  void update(const Tensor& input, const Tensor& target);
  Tensor compute() const override;
  void reset() override;

 private:
  int64_t k_, count_ = 0;
  Tensor hits_;
  detail::FirstOutside targets_;
};

// As confusion_matrix and f1_score.
class TENON_API ConfusionMatrix final : public Metric {
 public:
  // Throws a ValueError unless there is a class.
  explicit ConfusionMatrix(int64_t num_classes);
  void update(const Tensor& input, const Tensor& target);
  Tensor compute() const override;
  Tensor f1_score(std::string_view average = "macro") const;
  void reset() override;

 private:
  friend class F1Score;
  ConfusionMatrix(const char* name, int64_t num_classes);

  const char* name_;  // of the metric, which errors tell
  int64_t num_classes_;
  Tensor matrix_;
  detail::FirstOutside targets_, predictions_;
};

class TENON_API F1Score final : public Metric {
 public:
  // Throws a ValueError unless there is a class, and for an average that f1_score does not know.
  explicit F1Score(int64_t num_classes, std::string average = "macro");
  void update(const Tensor& input, const Tensor& target) { matrix_.update(input, target); }
  Tensor compute() const override { return matrix_.f1_score(average_); }
  void reset() override { matrix_.reset(); }

 private:
  ConfusionMatrix matrix_;
  std::string average_;
};

// As auroc. It keeps all scores: the pairs are of different batches, too.
class TENON_API AUROC final : public Metric {
 public:
  void update(const Tensor& input, const Tensor& target);
  Tensor compute() const override;
  void reset() override;

 private:
  std::vector<Tensor> scores_, targets_;
};

}  // namespace tenon::metrics
