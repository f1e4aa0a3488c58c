#include "coordinator/report/legend.h"

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "common/status.h"

namespace solward::report {
namespace {

// From so many on, numbers of one kind for several kernels share a line.
constexpr size_t kTogether = 3;

using Metrics = std::vector<const v1::Metric*>;

// "m12" -> 12, to sort keys as people read them.
uint64_t KeyNumber(absl::string_view key) {
  uint64_t number = 0;
  absl::ConsumePrefix(&key, "m");
  return absl::SimpleAtoi(key, &number) ? number : UINT64_MAX;
}

bool ByKey(const v1::Metric* a, const v1::Metric* b) {
  return std::pair(KeyNumber(a->key()), a->key()) < std::pair(KeyNumber(b->key()), b->key());
}

// "[m4], [m7] to [m9]", the order kept.
std::string KeyList(const std::vector<std::string>& keys, absl::string_view to) {
  std::vector<std::string> parts;
  for (size_t i = 0; i < keys.size();) {
    size_t end = i + 1;
    while (end < keys.size() && KeyNumber(keys[end]) == KeyNumber(keys[end - 1]) + 1) ++end;
    if (end - i >= 3) {
      parts.push_back(absl::StrCat("[", keys[i], "] ", to, " [", keys[end - 1], "]"));
      i = end;
    } else {
      parts.push_back(absl::StrCat("[", keys[i++], "]"));
    }
  }
  return absl::StrJoin(parts, ", ");
}

class Legend {
 public:
  Legend(const v1::Report& report, const ProvenanceText& provenance, TextWriter& writer)
      : report_(report), provenance_(provenance), writer_(writer), cited_(writer.cited()) {}

  absl::StatusOr<std::string> Write() {
    ASSIGN_OR_RETURN(const Metrics metrics, ToExplain());
    std::vector<std::string> order;
    std::map<std::string, Metrics> by_source;
    for (const v1::Metric* metric : metrics) {
      if (metric->provenance().source_case() == v1::Provenance::SOURCE_NOT_SET) {
        return MakeError(absl::StatusCode::kInternal, "REPORT_PROVENANCE_MISSING",
                         absl::StrCat("report: metric \"", metric->key(), "\" has no provenance"));
      }
      const std::string source =
          IsSum(*metric) ? writer_.Label("provenance.sum_of") : provenance_.Source(*metric);
      Metrics& group = by_source[source];
      if (group.empty()) order.push_back(source);
      group.push_back(metric);
    }
    for (const std::string& source : order) {
      RETURN_IF_ERROR(WriteSource(source, by_source[source]));
    }
    return std::move(out_);
  }

 private:
  bool IsSum(const v1::Metric& metric) const;
  absl::StatusOr<std::vector<std::string>> TermsOfSum(const v1::Metric& metric) const;
  absl::StatusOr<std::vector<std::string>> InputsOf(const v1::Metric& metric) const;
  absl::StatusOr<Metrics> ToExplain() const;
  absl::Status WriteSource(const std::string& source, const Metrics& metrics);
  absl::StatusOr<std::string> OwnText(const Metrics& metrics) const;
  absl::StatusOr<std::string> DerivedText(const Metrics& metrics) const;
  std::string To() const { return writer_.Label("provenance.to"); }

  const v1::Report& report_;
  const ProvenanceText& provenance_;
  TextWriter& writer_;
  const std::set<std::string> cited_;  // before the legend itself cites inputs
  std::string out_;
};

bool Legend::IsSum(const v1::Metric& metric) const {
  if (!metric.provenance().has_derived()) return false;
  const FormulaDefinition* formula =
      writer_.catalogue().FindFormula(metric.provenance().derived().formula_id());
  return formula != nullptr && formula->expression == "a + b";
}

// Terms of a sum made two at a time, in order.
absl::StatusOr<std::vector<std::string>> Legend::TermsOfSum(const v1::Metric& metric) const {
  std::vector<std::string> terms;
  Metrics stack = {&metric};
  // Inputs come before what is derived from them, so this ends; the cap is for
  // a report that another program wrote.
  const int cap = 4 * report_.all_metrics_size();
  for (int steps = 0; !stack.empty() && steps < cap; ++steps) {
    const v1::Metric* top = stack.back();
    stack.pop_back();
    const bool opened = top == &metric ||
                        (IsSum(*top) && cited_.count(top->key()) == 0 && top->id() == metric.id());
    if (!opened) {
      terms.push_back(top->key());
      continue;
    }
    const auto& inputs = top->provenance().derived().inputs();
    for (auto it = inputs.rbegin(); it != inputs.rend(); ++it) {
      ASSIGN_OR_RETURN(const v1::Metric* input, writer_.Find(it->metric_key()));
      stack.push_back(input);
    }
  }
  return terms;
}

absl::StatusOr<std::vector<std::string>> Legend::InputsOf(const v1::Metric& metric) const {
  if (IsSum(metric)) return TermsOfSum(metric);
  std::vector<std::string> keys;
  for (const v1::DerivedInput& input : metric.provenance().derived().inputs()) {
    keys.push_back(input.metric_key());
  }
  return keys;
}

absl::StatusOr<Metrics> Legend::ToExplain() const {
  std::set<std::string> seen = cited_;
  std::deque<std::string> queue(seen.begin(), seen.end());
  Metrics metrics;
  while (!queue.empty()) {
    ASSIGN_OR_RETURN(const v1::Metric* metric, writer_.Find(queue.front()));
    queue.pop_front();
    metrics.push_back(metric);
    ASSIGN_OR_RETURN(const std::vector<std::string> inputs, InputsOf(*metric));
    for (const std::string& key : inputs) {
      if (seen.insert(key).second) queue.push_back(key);
    }
  }
  std::sort(metrics.begin(), metrics.end(), ByKey);
  return metrics;
}

// Inputs of metrics of one formula: a key that all share once, else in order.
absl::StatusOr<std::string> Legend::DerivedText(const Metrics& metrics) const {
  if (IsSum(*metrics.front())) {
    std::vector<std::string> sums;
    for (const v1::Metric* metric : metrics) {
      ASSIGN_OR_RETURN(const std::vector<std::string> terms, TermsOfSum(*metric));
      sums.push_back(KeyList(terms, To()));
    }
    return absl::StrJoin(sums, "; ");
  }
  std::vector<std::string> parts;
  for (const v1::DerivedInput& input : metrics.front()->provenance().derived().inputs()) {
    std::vector<std::string> keys;
    for (const v1::Metric* metric : metrics) {
      for (const v1::DerivedInput& other : metric->provenance().derived().inputs()) {
        if (other.name() == input.name()) keys.push_back(other.metric_key());
      }
    }
    if (std::all_of(keys.begin(), keys.end(), [&](const auto& key) { return key == keys[0]; })) {
      keys.resize(1);
    }
    parts.push_back(absl::StrCat(CodeSpan(input.name()), " ", KeyList(keys, To())));
  }
  return absl::StrJoin(parts, ", ");
}

absl::StatusOr<std::string> Legend::OwnText(const Metrics& metrics) const {
  if (metrics.front()->provenance().has_derived()) return DerivedText(metrics);
  if (metrics.size() == 1) return provenance_.Detail(*metrics.front());
  // The rows of each are those of its kernel; the JSON form has them.
  std::set<std::string> names;
  for (const v1::Metric* metric : metrics) {
    names.insert(metric->provenance().measured().raw_name());
  }
  return names.size() == 1 ? CodeSpan(*names.begin()) : "";
}

absl::Status Legend::WriteSource(const std::string& source, const Metrics& metrics) {
  // Lines of the source: metrics one by one, those of several kernels together.
  std::vector<Metrics> lines;
  std::map<std::string, size_t> line_of;
  auto group = [&](const v1::Metric& metric) {
    const bool kernel = metric.scope().kind() == v1::SCOPE_KIND_KERNEL;
    if (!kernel) return std::string();
    // Shown numbers stand in the kernel table; those behind them are apart.
    return absl::StrCat(metric.id(), " ", cited_.count(metric.key()), " ", metric.scope().device(),
                        " ", metric.scope().rank());
  };
  std::map<std::string, size_t> sizes;
  for (const v1::Metric* metric : metrics) ++sizes[group(*metric)];
  for (const v1::Metric* metric : metrics) {
    const std::string name = group(*metric);
    if (name.empty() || sizes[name] < kTogether) {
      lines.push_back({metric});
      continue;
    }
    const auto [it, added] = line_of.emplace(name, lines.size());
    if (added) lines.emplace_back();
    lines[it->second].push_back(metric);
  }
  const bool alone = lines.size() == 1;
  if (!alone) absl::StrAppend(&out_, "- ", source, "\n");
  for (const Metrics& line : lines) {
    const v1::Metric& first = *line.front();
    std::vector<std::string> keys;
    for (const v1::Metric* metric : line) keys.push_back(metric->key());
    const bool cited = cited_.count(first.key()) > 0;
    const bool several = line.size() > 1;
    std::string what = writer_.MetricName(first.id());
    const std::string scope = several ? "" : provenance_.ScopeText(first.scope());
    if (!scope.empty()) absl::StrAppend(&what, ", ", scope);
    if (cited || several) {
      what = absl::StrCat(KeyList(keys, To()), " ", what);
    } else {
      absl::StrAppend(&what, ", ", writer_.Value(first));
    }
    if (several) absl::StrAppend(&what, ", ", writer_.Label("provenance.each"));
    if (several && !cited) absl::StrAppend(&what, ", ", writer_.Label("provenance.in_json"));
    ASSIGN_OR_RETURN(std::string own, OwnText(line));
    if (alone && !own.empty()) {
      const bool derived = first.provenance().has_derived();
      own = derived && IsSum(first) ? absl::StrCat(source, " ", own)
            : derived ? absl::StrCat(source, " ", writer_.Label("provenance.with"), " ", own)
                      : absl::StrCat(source, ", ", own);
    } else if (alone) {
      own = source;
    }
    absl::StrAppend(&out_, alone ? "- " : "  - ", what, own.empty() ? "" : writer_.Colon(), own,
                    "\n");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> WriteLegend(const v1::Report& report, const ProvenanceText& provenance,
                                        TextWriter& writer) {
  return Legend(report, provenance, writer).Write();
}

}  // namespace solward::report
