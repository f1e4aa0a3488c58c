// The Findings section: what the specialists and Measure observed, what the
// verdict rests on, what could not be read or answered.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "coordinator/report/messages.h"
#include "coordinator/workflow/report_input.h"

namespace solward::workflow {
namespace {

using report::ClassTerm;

constexpr int kMostKernelLimits = 5;

class FindingsWriter {
 public:
  explicit FindingsWriter(const ReportInput& input)
      : input_(input), classification_(input.classification()) {}

  v1::FindingsSection Write() {
    AddBottlenecks();
    for (const v1::Finding& finding : input_.measurement().findings()) AddObserved(finding);
    AddKernelLimits();
    AddCaptures();
    AddUnanswered();
    for (const v1::Statement& reason : classification_.confidence_reasons()) {
      Add("confidence", v1::SEVERITY_INFO, reason);
    }
    Sort();
    for (const v1::ParseStatistic& statistic : input_.measurement().parse_statistics()) {
      if (statistic.count() > 0) *section_.add_parse_statistics() = statistic;
    }
    return std::move(section_);
  }

 private:
  v1::Finding& Add(const std::string& id, v1::Severity severity, v1::Statement statement);
  void AddBottlenecks();
  void AddBottleneck(v1::BottleneckClass bottleneck_class, const v1::RankedClass* ranked,
                     v1::Severity severity);
  void AddObserved(const v1::Finding& finding);
  void AddKernelLimits();
  void AddCaptures();
  void AddUnanswered();
  void Sort();
  double ShareOf(const v1::ReportedFinding& reported) const;

  const ReportInput& input_;
  const v1::Classification& classification_;
  v1::FindingsSection section_;
};

v1::Finding& FindingsWriter::Add(const std::string& id, v1::Severity severity,
                                 v1::Statement statement) {
  v1::ReportedFinding* reported = section_.add_findings();
  v1::Finding& finding = *reported->mutable_finding();
  finding.set_id(id);
  finding.set_severity(severity);
  for (const auto& [name, argument] : statement.arguments()) {
    if (!argument.metric_key().empty()) {
      (*finding.mutable_metric_keys())[name] = argument.metric_key();
    }
    if (!argument.name().empty()) (*finding.mutable_words())[name] = argument.name();
  }
  *reported->mutable_statement() = std::move(statement);
  return finding;
}

bool IsHostSide(const v1::RankedClass& ranked) {
  return ranked.bottleneck_class() == v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD ||
         ranked.bottleneck_class() == v1::BOTTLENECK_CLASS_SYNC_BOUND ||
         ranked.bottleneck_class() == v1::BOTTLENECK_CLASS_HOST_BOUND;
}

// The verdict's own evidence; recommendations rest on it.
void FindingsWriter::AddBottlenecks() {
  const v1::BottleneckClass primary = classification_.primary();
  const double floor = input_.knowledge().parameters.floor_percent;
  bool primary_ranked = false;
  for (const v1::RankedClass& ranked : classification_.ranking()) {
    const v1::Metric* recoverable = input_.Find(ranked.recoverable_key());
    const v1::Metric* share = input_.Find(ranked.share_key());
    const bool first = ranked.bottleneck_class() == primary && !primary_ranked;
    const bool large = recoverable != nullptr &&
                       recoverable->value() >= input_.knowledge().parameters.margin_percent;
    if (!first && (!large || share == nullptr)) continue;
    // What the profiler alone may have made is no finding of the workload.
    const bool doubtful =
        primary == v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION && IsHostSide(ranked);
    if (doubtful) continue;
    primary_ranked = primary_ranked || first;
    const bool heavy = recoverable != nullptr && recoverable->value() >= floor;
    AddBottleneck(ranked.bottleneck_class(), &ranked,
                  first || heavy ? v1::SEVERITY_WARNING : v1::SEVERITY_INFO);
  }
  if (!primary_ranked && IsUndetermined(primary) && primary != v1::BOTTLENECK_CLASS_UNSPECIFIED) {
    AddBottleneck(primary, nullptr, v1::SEVERITY_WARNING);
  }
}

void FindingsWriter::AddBottleneck(v1::BottleneckClass bottleneck_class,
                                   const v1::RankedClass* ranked, v1::Severity severity) {
  const std::string id = absl::StrCat("bottleneck_", ClassWord(bottleneck_class));
  const std::string message = absl::StrCat("finding.", id);
  const report::Message* text = report::BuiltInMessages().Find(message);
  if (text == nullptr) return;
  const v1::Metric* share = ranked == nullptr ? nullptr : input_.Find(ranked->share_key());
  const bool needs_share = text->placeholders.count("share") > 0;
  if (needs_share && share == nullptr) {
    share = bottleneck_class == v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS
                ? input_.FindAny("kernel_share")
                : nullptr;
    if (share == nullptr) {
      Add(id, severity,
          Sentence("finding.bottleneck_plain").Term("class", ClassTerm(bottleneck_class)).Done());
      return;
    }
  }
  Sentence sentence(message);
  if (needs_share) {
    sentence.Metric("share", share->key()).Term("base", ReportInput::BaseTerm(*share));
  }
  v1::Finding& finding = Add(id, severity, sentence.Done());
  if (ranked == nullptr) return;
  for (const std::string& key : ranked->evidence_keys()) {
    const v1::Metric* evidence = input_.Find(key);
    if (evidence == nullptr || (share != nullptr && share->key() == key)) continue;
    // Several of one id (kernels) keep apart.
    std::string name = evidence->id();
    for (int n = 2; finding.metric_keys().count(name) > 0; ++n) {
      name = absl::StrCat(evidence->id(), "_", n);
    }
    (*finding.mutable_metric_keys())[name] = key;
  }
}

// A kind that the message table knows gets its sentence; any other is shown
// with its own words and its metrics as evidence.
void FindingsWriter::AddObserved(const v1::Finding& finding) {
  v1::Statement statement;
  statement.set_message_id(absl::StrCat("finding.", finding.id()));
  auto& arguments = *statement.mutable_arguments();
  for (const auto& [name, key] : finding.metric_keys()) arguments[name].set_metric_key(key);
  for (const auto& [name, word] : finding.words()) {
    // A metric's id is said in the reader's language.
    if (name == "metric" && input_.knowledge().catalogue.Find(word) != nullptr) {
      arguments[name].set_term(absl::StrCat("metric.", word));
    } else {
      arguments[name].set_name(word);
    }
  }
  const v1::Location& location = finding.location();
  if (!location.kernel().empty() && arguments.count("kernel") == 0) {
    arguments["kernel"].set_name(location.kernel());
  }
  if (!location.api().empty() && arguments.count("api") == 0) {
    arguments["api"].set_name(location.api());
  }
  if (!finding.detail().empty()) arguments["detail"].set_quotation(finding.detail());

  const report::Message* message = report::BuiltInMessages().Find(statement.message_id());
  const bool complete = message != nullptr &&
                        std::all_of(message->placeholders.begin(), message->placeholders.end(),
                                    [&](const auto& name) { return arguments.count(name) > 0; });
  if (!complete) {
    const bool words = arguments.count("detail") > 0;
    v1::Statement other;
    other.set_message_id(words ? "finding.other" : "finding.other_plain");
    if (words) (*other.mutable_arguments())["detail"] = arguments["detail"];
    statement = std::move(other);
  } else {
    // What the sentence does not name is not an argument of it.
    std::set<std::string> unused;
    for (const auto& [name, argument] : arguments) {
      if (message->placeholders.count(name) == 0) unused.insert(name);
    }
    for (const std::string& name : unused) arguments.erase(name);
  }
  v1::ReportedFinding* reported = section_.add_findings();
  *reported->mutable_finding() = finding;
  *reported->mutable_statement() = std::move(statement);
}

void FindingsWriter::AddKernelLimits() {
  int added = 0;
  for (const v1::KernelLimit& limit : classification_.kernel_limits()) {
    const v1::Metric* utilization = input_.Find(limit.utilization_key());
    if (utilization == nullptr || added == kMostKernelLimits) continue;
    const v1::Metric* time_share = input_.Find(limit.time_share_key());
    const v1::Metric* stall = input_.Find(limit.stall_key());
    const bool latency = limit.limit() == v1::BOTTLENECK_CLASS_LATENCY_BOUND;
    const bool second = IsKernelClass(limit.second_limit());
    std::string id = "finding.kernel_limit";
    if (time_share != nullptr) {
      id = latency
               ? (stall != nullptr ? "finding.kernel_limit_stall" : "finding.kernel_limit_latency")
           : second ? "finding.kernel_limit_both"
                    : "finding.kernel_limit_share";
    }
    Sentence sentence(id);
    sentence.Name("kernel", limit.kernel())
        .Term("limit", ClassTerm(limit.limit()))
        .Metric("utilization", utilization->key());
    if (time_share != nullptr) sentence.Metric("time_share", time_share->key());
    if (id == "finding.kernel_limit_both") sentence.Term("second", ClassTerm(limit.second_limit()));
    if (id == "finding.kernel_limit_stall") {
      const std::string& name = stall->scope().name();
      sentence.Name("stall", name.substr(name.find('|') + 1)).Metric("stall_share", stall->key());
    }
    v1::Finding& finding = Add("kernel_limit", v1::SEVERITY_INFO, sentence.Done());
    finding.mutable_location()->set_kernel(limit.kernel());
    ++added;
  }
}

void FindingsWriter::AddCaptures() {
  for (const v1::CaptureOutcome& capture : input_.measurement().captures()) {
    if (capture.code() == 0) continue;
    Add("capture_unreadable", v1::SEVERITY_ERROR,
        Sentence("finding.capture_unreadable")
            .Name("capture", capture.label().empty() ? capture.artifact_id() : capture.label())
            .Quote("message", capture.message())
            .Done());
  }
}

void FindingsWriter::AddUnanswered() {
  for (const v1::DelegationOutcome& outcome : input_.measurement().unanswered()) {
    Add("delegation_unanswered", v1::SEVERITY_WARNING,
        Sentence("finding.delegation_unanswered")
            .Name("specialist", outcome.planned().specialist())
            .Quote("message", outcome.error().message())
            .Done());
  }
}

// Largest share among the metrics a finding rests on; -1 without one.
double FindingsWriter::ShareOf(const v1::ReportedFinding& reported) const {
  double share = -1;
  for (const auto& [name, key] : reported.finding().metric_keys()) {
    const v1::Metric* metric = input_.Find(key);
    if (metric != nullptr && absl::EndsWith(metric->id(), "_share")) {
      share = std::max(share, metric->value());
    }
  }
  return share;
}

void FindingsWriter::Sort() {
  auto& findings = *section_.mutable_findings();
  std::vector<std::pair<double, v1::ReportedFinding>> sorted;
  for (v1::ReportedFinding& reported : findings) {
    const double share = ShareOf(reported);
    sorted.emplace_back(share, std::move(reported));
  }
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    const int severity_a = a.second.finding().severity();
    const int severity_b = b.second.finding().severity();
    if (severity_a != severity_b) return severity_a > severity_b;
    return a.first > b.first;
  });
  findings.Clear();
  for (auto& [share, reported] : sorted) *section_.add_findings() = std::move(reported);
}

}  // namespace

v1::FindingsSection MakeFindings(const ReportInput& input) { return FindingsWriter(input).Write(); }

}  // namespace solward::workflow
