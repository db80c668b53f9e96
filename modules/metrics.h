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
// Nothing is recorded for autograd.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <tenon/core/number.h>
#include <tenon/core/tensor.h>

namespace tenon::metrics {

// Returns the share of rows whose target has the highest score, of equal ones the first. A target
// that is no class, such as -100, is never right.
TENON_API Tensor accuracy(const Tensor& input, const Tensor& target);

// Returns the share of rows whose target is among the k highest scores, of equal ones the first.
// Throws a ValueError unless k is in [1, classes].
TENON_API Tensor top_k_accuracy(const Tensor& input, const Tensor& target, int64_t k);

// Returns how often each class was predicted for each other, in i64 of shape (num_classes,
// num_classes): row: target, column: prediction. `input` are predicted classes, or scores. A class
// outside [0, num_classes) is an IndexError of the queued work.
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
// the scores.
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
  int64_t num_classes_;
  Tensor matrix_;
};

class TENON_API F1Score final : public Metric {
 public:
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
