// Metric: a named number that cannot exist without provenance.
//
//   Metric time = *Metric::Measure(catalogue, "kernel_time", 100350, scope, measured);
//   MetricSet set;
//   const Metric& t = set.Add(std::move(time));            // gets key "m1"
//   ASSIGN_OR_RETURN(Metric mfu, Metric::Derive(catalogue, "mfu_of_kernel", scope,
//                                               {{"flops", &f}, {"time", &t}, {"peak", &p}}));
#ifndef SOLWARD_COMMON_METRIC_H_
#define SOLWARD_COMMON_METRIC_H_

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/metric_catalogue.h"
#include "solward/v1/metric.pb.h"

namespace solward {

// Scopes in short.
v1::Scope RunScope(int device = -1, int rank = -1);
v1::Scope StepScope(int device = -1, int rank = -1);
v1::Scope KernelScope(absl::string_view kernel, int device = -1, int rank = -1);
v1::Scope DeviceScope(int device);
bool SameScope(const v1::Scope& a, const v1::Scope& b);

// Immutable value. Every factory checks that the id is in the catalogue, the
// value is finite and the provenance is complete (INVALID_ARGUMENT otherwise).
class Metric {
 public:
  static absl::StatusOr<Metric> Measure(const MetricCatalogue& catalogue, absl::string_view id,
                                        double value, v1::Scope scope, v1::Measured provenance);
  static absl::StatusOr<Metric> Give(const MetricCatalogue& catalogue, absl::string_view id,
                                     double value, v1::Scope scope, v1::Given provenance);
  static absl::StatusOr<Metric> Refer(const MetricCatalogue& catalogue, absl::string_view id,
                                      double value, v1::Scope scope, v1::Reference provenance);
  // Computes the value by the formula; every input must have a key (be in a set).
  static absl::StatusOr<Metric> Derive(
      const MetricCatalogue& catalogue, absl::string_view formula_id, v1::Scope scope,
      const std::vector<std::pair<std::string, const Metric*>>& inputs);
  // A metric received from another process: same checks.
  static absl::StatusOr<Metric> FromProto(const MetricCatalogue& catalogue, v1::Metric proto);

  const std::string& key() const { return proto_.key(); }
  const std::string& id() const { return proto_.id(); }
  double value() const { return proto_.value(); }
  const std::string& unit() const { return proto_.unit(); }
  const v1::Scope& scope() const { return proto_.scope(); }
  const v1::Provenance& provenance() const { return proto_.provenance(); }
  const v1::Metric& proto() const { return proto_; }

 private:
  friend class MetricSet;
  explicit Metric(v1::Metric proto) : proto_(std::move(proto)) {}
  v1::Metric proto_;
};

// An ordered set of metrics with unique keys. References stay valid while the
// set lives. Not thread-safe.
class MetricSet {
 public:
  MetricSet() = default;
  MetricSet(MetricSet&&) = default;
  MetricSet& operator=(MetricSet&&) = default;
  MetricSet(const MetricSet&) = delete;
  MetricSet& operator=(const MetricSet&) = delete;

  // Adds a metric made here and gives it the next key ("m<N>").
  const Metric& Add(Metric metric);

  // Adds all metrics of another message under new keys, derived inputs
  // rewritten. Returns old key -> new key. INVALID_ARGUMENT when a metric has
  // no valid provenance or a derived input is missing; then nothing is added.
  absl::StatusOr<std::map<std::string, std::string>> Merge(
      const MetricCatalogue& catalogue,
      const google::protobuf::RepeatedPtrField<v1::Metric>& metrics);

  const Metric* FindKey(absl::string_view key) const;
  // First metric of this id and scope; nullptr when there is none.
  const Metric* Find(absl::string_view id, const v1::Scope& scope) const;
  // Every metric of this id, in order of adding.
  std::vector<const Metric*> FindAll(absl::string_view id) const;

  const std::deque<Metric>& metrics() const { return metrics_; }
  size_t size() const { return metrics_.size(); }

 private:
  std::deque<Metric> metrics_;
  std::map<std::string, const Metric*, std::less<>> by_key_;
  std::map<std::string, std::vector<const Metric*>, std::less<>> by_id_;
  uint64_t next_key_ = 1;
};

}  // namespace solward

#endif  // SOLWARD_COMMON_METRIC_H_
