#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "common/status.h"
#include "coordinator/report/legend.h"
#include "coordinator/report/markdown_table.h"
#include "coordinator/report/messages.h"
#include "coordinator/report/provenance_text.h"
#include "coordinator/report/render.h"
#include "coordinator/report/text_writer.h"

namespace solward::report {
namespace {

// Writes one report. Sections are appended in order; the first error ends it.
class MarkdownWriter {
 public:
  MarkdownWriter(const v1::Report& report, const MetricCatalogue& catalogue, Language language)
      : report_(report),
        text_(report.all_metrics(), catalogue, BuiltInMessages(), language),
        provenance_(report, text_) {
    std::set<std::string> kernels;
    for (const v1::KernelRow& row : report.metrics().kernels()) kernels.insert(row.kernel());
    for (const v1::Metric& metric : report.all_metrics()) {
      const std::string& name = metric.scope().name();
      if (metric.scope().kind() == v1::SCOPE_KIND_KERNEL && !name.empty()) {
        kernels.insert(name.substr(0, name.find('|')));
      }
    }
    text_.ShortenKernelNames(kernels);
  }

  absl::StatusOr<std::string> Write() {
    WriteTitle();
    RETURN_IF_ERROR(WriteSummary());
    // The legend stands in the second section but explains what the others
    // cite as well, so those are written first.
    std::string metrics_section = std::exchange(out_, "");
    RETURN_IF_ERROR(WriteFindings());
    RETURN_IF_ERROR(WriteRecommendations());
    std::string rest = std::exchange(out_, std::move(metrics_section));
    RETURN_IF_ERROR(WriteMetrics());
    return out_ + rest;
  }

 private:
  void Section(absl::string_view label) {
    absl::StrAppend(&out_, "\n## ", text_.Label(label), "\n\n");
  }
  void Subsection(absl::string_view label) {
    absl::StrAppend(&out_, "\n### ", text_.Label(label), "\n\n");
  }
  std::string Labelled(absl::string_view label, absl::string_view value) const {
    return absl::StrCat(text_.Label(label), text_.Colon(), value);
  }

  void WriteTitle();
  absl::Status WriteSummary();
  absl::Status WriteMetrics();
  absl::Status WriteMetricRows();
  absl::Status WriteTimeTables();
  std::string TimeTableTitle(const v1::TimeTable& table) const;
  absl::Status WriteKernels();
  void WriteKernelNames();
  void WriteUnmeasured();
  void WriteEnvironment();
  absl::Status WriteFindings();
  void WriteLocation(const v1::Location& location);
  absl::Status WriteEvidence(const v1::ReportedFinding& reported);
  void WriteParseStatistics();
  absl::Status WriteRecommendations();
  absl::Status WriteRecommendation(const v1::Recommendation& recommendation);
  absl::StatusOr<std::string> EffectText(const v1::EffectBound& effect);
  std::string Place(int device, int rank) const;
  absl::StatusOr<std::vector<std::string>> KernelCells(const v1::KernelRow& row,
                                                       const std::vector<std::string>& columns);

  const v1::Report& report_;
  TextWriter text_;
  ProvenanceText provenance_;
  std::string out_;
};

std::string MarkdownWriter::Place(int device, int rank) const {
  v1::Scope scope;
  scope.set_kind(v1::SCOPE_KIND_DEVICE);
  scope.set_device(device);
  scope.set_rank(rank);
  return provenance_.ScopeText(scope);
}

void MarkdownWriter::WriteTitle() {
  absl::StrAppend(&out_, "# ", text_.Label("label.title"), " ", CodeSpan(report_.analysis_id()),
                  "\n");
  if (!report_.has_created_time()) return;
  const absl::Time time = absl::FromUnixSeconds(report_.created_time().seconds());
  absl::StrAppend(&out_, "\n",
                  Labelled("label.created", CodeSpan(absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", time,
                                                                      absl::UTCTimeZone()))),
                  "\n");
}

absl::Status MarkdownWriter::WriteSummary() {
  Section("section.summary");
  for (const v1::Statement& statement : report_.summary().statements()) {
    ASSIGN_OR_RETURN(const std::string sentence, text_.Sentence(statement));
    absl::StrAppend(&out_, "- ", sentence, "\n");
  }
  return absl::OkStatus();
}

absl::Status MarkdownWriter::WriteMetrics() {
  Section("section.metrics");
  RETURN_IF_ERROR(WriteMetricRows());
  RETURN_IF_ERROR(WriteTimeTables());
  RETURN_IF_ERROR(WriteKernels());
  WriteUnmeasured();
  WriteEnvironment();
  ASSIGN_OR_RETURN(const std::string legend, WriteLegend(report_, provenance_, text_));
  if (!legend.empty()) {
    Subsection("label.provenance");
    out_ += legend;
  }
  WriteKernelNames();
  return absl::OkStatus();
}

absl::Status MarkdownWriter::WriteMetricRows() {
  MarkdownTable table({text_.Label("label.metric"), text_.Label("label.scope"),
                       text_.Label("label.value"), text_.Label("label.source")});
  for (const v1::MetricRow& row : report_.metrics().rows()) {
    std::vector<std::string> keys = {row.metric_key()};
    keys.insert(keys.end(), row.companion_keys().begin(), row.companion_keys().end());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(keys[i]));
      table.AddRow({absl::StrCat(i == 0 ? "" : "↳ ", text_.MetricName(metric->id())),
                    provenance_.ScopeText(metric->scope()), text_.Value(*metric),
                    provenance_.Short(*metric)});
    }
  }
  const std::string rows = table.ToString();
  absl::StrAppend(&out_, rows.empty() ? text_.Label("label.no_metric") + "\n" : rows);
  return absl::OkStatus();
}

std::string MarkdownWriter::TimeTableTitle(const v1::TimeTable& table) const {
  std::vector<std::string> title;
  if (!table.capture().empty()) title.push_back(CodeSpan(table.capture()));
  if (std::string place = Place(table.device(), table.rank()); !place.empty()) {
    title.push_back(std::move(place));
  }
  if (table.rescaled()) title.push_back(text_.Label("label.rescaled"));
  return absl::StrJoin(title, ", ");
}

absl::Status MarkdownWriter::WriteTimeTables() {
  const auto& tables = report_.metrics().time_tables();
  if (tables.empty()) return absl::OkStatus();
  // A row a metric, in order of first appearance over all timelines.
  struct Row {
    std::vector<const v1::Metric*> cells;
    bool shown_if_zero = false;
  };
  std::vector<std::string> order;
  std::map<std::string, Row> rows;
  auto put = [&](const std::string& key, int column, bool shown_if_zero) -> absl::Status {
    if (key.empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(key));
    Row& row = rows[metric->id()];
    if (row.cells.empty()) {
      order.push_back(metric->id());
      row.cells.resize(static_cast<size_t>(tables.size()));
    }
    row.cells[static_cast<size_t>(column)] = metric;
    // A count or time of nothing says nothing; a share of nothing is an answer.
    row.shown_if_zero = row.shown_if_zero || shown_if_zero || metric->value() != 0;
    return absl::OkStatus();
  };
  std::vector<std::string> header = {text_.Label("label.metric")};
  for (int i = 0; i < tables.size(); ++i) {
    header.push_back(TimeTableTitle(tables[i]));
    for (const std::string& key : tables[i].share_keys()) {
      ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(key));
      RETURN_IF_ERROR(put(key, i, metric->id() != "idle_unattributed_share"));
    }
  }
  for (int i = 0; i < tables.size(); ++i) RETURN_IF_ERROR(put(tables[i].sum_key(), i, true));
  for (int i = 0; i < tables.size(); ++i) {
    for (const std::string& key : tables[i].context_keys()) RETURN_IF_ERROR(put(key, i, false));
  }
  MarkdownTable table(header);
  for (const std::string& id : order) {
    if (!rows[id].shown_if_zero) continue;
    std::vector<std::string> cells = {text_.MetricName(id)};
    for (const v1::Metric* metric : rows[id].cells) {
      cells.push_back(metric == nullptr ? "" : text_.Value(*metric));
    }
    table.AddRow(std::move(cells));
  }
  Subsection("label.time_shares");
  out_ += table.ToString();
  return absl::OkStatus();
}

// Cells of the kernel table by catalogue id; a stall names its reason.
absl::StatusOr<std::vector<std::string>> MarkdownWriter::KernelCells(
    const v1::KernelRow& row, const std::vector<std::string>& columns) {
  std::vector<std::string> cells(columns.size() + 2);
  cells[0] = CodeSpan(text_.KernelName(row.kernel()));
  cells[1] = row.device() >= 0 || row.rank() >= 0 ? Place(row.device(), row.rank()) : "";
  for (const std::string& key : row.metric_keys()) {
    ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(key));
    const auto column = std::find(columns.begin(), columns.end(), metric->id());
    if (column == columns.end()) continue;
    std::string& cell = cells[column - columns.begin() + 2];
    if (!cell.empty()) continue;
    const std::string& name = metric->scope().name();
    if (const size_t bar = name.find('|'); bar != std::string::npos) {
      cell = absl::StrCat(CodeSpan(name.substr(bar + 1)), " ");
    }
    cell += text_.Value(*metric);
  }
  return cells;
}

absl::Status MarkdownWriter::WriteKernels() {
  if (report_.metrics().kernels().empty()) return absl::OkStatus();
  std::vector<std::string> columns;
  for (const v1::KernelRow& row : report_.metrics().kernels()) {
    for (const std::string& key : row.metric_keys()) {
      ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(key));
      if (std::find(columns.begin(), columns.end(), metric->id()) == columns.end()) {
        columns.push_back(metric->id());
      }
    }
  }
  std::set<std::pair<int, int>> places;
  for (const v1::KernelRow& row : report_.metrics().kernels()) {
    places.emplace(row.device(), row.rank());
  }
  std::vector<std::string> header = {text_.Label("label.kernel"), text_.Label("label.place")};
  for (const std::string& id : columns) header.push_back(text_.MetricName(id));
  MarkdownTable table(header);
  for (const v1::KernelRow& row : report_.metrics().kernels()) {
    ASSIGN_OR_RETURN(std::vector<std::string> cells, KernelCells(row, columns));
    if (places.size() < 2) cells[1].clear();
    table.AddRow(std::move(cells));
  }
  Subsection("label.kernels");
  out_ += table.ToString();
  return absl::OkStatus();
}

void MarkdownWriter::WriteKernelNames() {
  std::string lines;
  for (const auto& [shorter, full] : text_.shortened()) {
    const std::string code = CodeSpan(shorter);
    if (out_.find(code) == std::string::npos) continue;
    absl::StrAppend(&lines, "- ", code, ": ", CodeSpan(full), "\n");
  }
  if (lines.empty()) return;
  Subsection("label.kernel_names");
  out_ += lines;
}

void MarkdownWriter::WriteUnmeasured() {
  if (report_.metrics().unmeasured().empty()) return;
  Subsection("label.unmeasured");
  for (const v1::UnmeasuredMetric& metric : report_.metrics().unmeasured()) {
    const std::string scope = provenance_.ScopeText(metric.scope());
    const std::string reason =
        EnumTerm("unmeasured", "UNMEASURED_REASON_", v1::UnmeasuredReason_Name(metric.reason()));
    absl::StrAppend(&out_, "- **", text_.MetricName(metric.id()), "**",
                    scope.empty() ? "" : absl::StrCat(" (", scope, ")"), "\n  ",
                    text_.Label(reason));
    if (!metric.detail().empty()) absl::StrAppend(&out_, " ", text_.Quotation(metric.detail()));
    out_ += "\n";
    if (!metric.remedy().empty()) {
      absl::StrAppend(&out_, "  ", Labelled("label.remedy", text_.Quotation(metric.remedy())),
                      "\n");
    }
  }
}

void MarkdownWriter::WriteEnvironment() {
  const v1::Environment& environment = report_.environment();
  std::string lines;
  std::set<std::string> gpus;
  for (const v1::Gpu& gpu : environment.gpus()) {
    if (gpu.name().empty()) continue;
    gpus.insert(absl::StrCat(Place(gpu.device(), -1), " ", CodeSpan(gpu.name())));
  }
  if (!gpus.empty()) {
    absl::StrAppend(&lines, "- ", Labelled("label.gpus", absl::StrJoin(gpus, ", ")), "\n");
  }
  if (!environment.driver_version().empty()) {
    absl::StrAppend(&lines, "- ", Labelled("label.driver", CodeSpan(environment.driver_version())),
                    "\n");
  }
  if (!environment.cuda_version().empty()) {
    absl::StrAppend(&lines, "- ", Labelled("label.cuda", CodeSpan(environment.cuda_version())),
                    "\n");
  }
  std::set<std::string> tools;
  for (const v1::ToolVersion& tool : environment.tools()) {
    tools.insert(
        CodeSpan(absl::StrCat(tool.tool(), tool.version().empty() ? "" : " ", tool.version())));
  }
  if (!tools.empty()) {
    absl::StrAppend(&lines, "- ", Labelled("label.tools", absl::StrJoin(tools, ", ")), "\n");
  }
  std::vector<std::string> captures;
  for (const v1::CaptureOutcome& capture : report_.captures()) {
    if (capture.code() == 0) captures.push_back(CodeSpan(capture.label()));
  }
  if (!captures.empty()) {
    absl::StrAppend(&lines, "- ", Labelled("label.captures", absl::StrJoin(captures, ", ")), "\n");
  }
  if (lines.empty()) return;
  Subsection("label.environment");
  out_ += lines;
}

absl::Status MarkdownWriter::WriteFindings() {
  Section("section.findings");
  int number = 0;
  for (const v1::ReportedFinding& reported : report_.findings().findings()) {
    ASSIGN_OR_RETURN(const std::string sentence, text_.Sentence(reported.statement()));
    const std::string severity =
        EnumTerm("severity", "SEVERITY_", v1::Severity_Name(reported.finding().severity()));
    absl::StrAppend(&out_, ++number, ". ");
    if (reported.finding().severity() > v1::SEVERITY_INFO) {
      absl::StrAppend(&out_, "**", text_.Label(severity), "** ");
    }
    absl::StrAppend(&out_, sentence, " (", CodeSpan(reported.finding().id()), ")\n");
    WriteLocation(reported.finding().location());
    RETURN_IF_ERROR(WriteEvidence(reported));
  }
  if (number == 0) absl::StrAppend(&out_, text_.Label("label.no_finding"), "\n");
  WriteParseStatistics();
  return absl::OkStatus();
}

void MarkdownWriter::WriteLocation(const v1::Location& location) {
  if (location.file().empty()) return;
  std::string place = location.file();
  if (location.line() > 0) absl::StrAppend(&place, ":", location.line());
  if (location.line() > 0 && location.column() > 0) absl::StrAppend(&place, ":", location.column());
  absl::StrAppend(&out_, "   ", Labelled("label.at", CodeSpan(place)), "\n");
}

// Metrics a finding rests on that its sentence does not name.
absl::Status MarkdownWriter::WriteEvidence(const v1::ReportedFinding& reported) {
  std::set<std::string> said;
  for (const auto& [name, argument] : reported.statement().arguments()) {
    said.insert(argument.metric_key());
  }
  std::set<std::string> evidence;
  if (absl::StartsWith(reported.statement().message_id(), "finding.other")) {
    for (const auto& [name, word] : reported.finding().words()) {
      evidence.insert(absl::StrCat(CodeSpan(name), " ", CodeSpan(word)));
    }
  }
  for (const auto& [name, key] : reported.finding().metric_keys()) {
    if (!said.insert(key).second) continue;
    ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(key));
    const std::string place = provenance_.PlaceText(metric->scope());
    evidence.insert(absl::StrCat(text_.MetricName(metric->id()), place.empty() ? "" : " ", place,
                                 " ", text_.Value(*metric)));
  }
  if (evidence.empty()) return absl::OkStatus();
  absl::StrAppend(&out_, "   ", Labelled("label.evidence", absl::StrJoin(evidence, ", ")), "\n");
  return absl::OkStatus();
}

void MarkdownWriter::WriteParseStatistics() {
  std::string lines;
  std::map<std::string, std::string> labels;
  for (const v1::CaptureOutcome& capture : report_.captures()) {
    labels.emplace(capture.artifact_id(), capture.label());
  }
  for (const v1::ParseStatistic& statistic : report_.findings().parse_statistics()) {
    if (statistic.count() == 0) continue;
    // A reader's own tally, not a figure of the workload: shown as it stands, in code.
    absl::StrAppend(&lines, "- ",
                    text_.Label(EnumTerm("parse_severity", "PARSE_SEVERITY_",
                                         v1::ParseSeverity_Name(statistic.severity()))),
                    ", ", CodeSpan(absl::StrCat(statistic.name(), " = ", statistic.count())));
    auto label = labels.find(statistic.artifact_id());
    if (label != labels.end()) absl::StrAppend(&lines, ", ", CodeSpan(label->second));
    if (!statistic.explanation().empty()) {
      absl::StrAppend(&lines, ", ", text_.Quotation(statistic.explanation()));
    }
    lines += "\n";
  }
  if (lines.empty()) return;
  Subsection("label.parse_statistics");
  out_ += lines;
}

absl::StatusOr<std::string> MarkdownWriter::EffectText(const v1::EffectBound& effect) {
  if (effect.metric_key().empty()) return text_.Label("label.effect_unknown");
  ASSIGN_OR_RETURN(const v1::Metric* metric, text_.Find(effect.metric_key()));
  const std::string base = effect.basis() == v1::EFFECT_BASIS_TOOL_ESTIMATE
                               ? ""
                               : absl::StrCat(" ", text_.Label(text_.BaseTerm(*metric)));
  return absl::StrCat(
      text_.Label("label.at_most"), " ", text_.Value(*metric), base, ", ",
      text_.Label(EnumTerm("effect", "EFFECT_BASIS_", v1::EffectBasis_Name(effect.basis()))));
}

absl::Status MarkdownWriter::WriteRecommendation(const v1::Recommendation& recommendation) {
  ASSIGN_OR_RETURN(const std::string action, text_.Sentence(recommendation.action()));
  if (recommendation.is_check()) {
    absl::StrAppend(&out_, "**", text_.Label("label.check"), "** ");
  }
  absl::StrAppend(&out_, action, "\n");
  std::vector<std::string> findings;
  for (const std::string& id : recommendation.finding_ids()) findings.push_back(CodeSpan(id));
  ASSIGN_OR_RETURN(const std::string bottleneck,
                   text_.Term(ClassTerm(recommendation.bottleneck_class())));
  absl::StrAppend(&out_, "   - ", Labelled("label.class", bottleneck));
  if (!findings.empty()) {
    absl::StrAppend(&out_, ", ", Labelled("label.rests_on", absl::StrJoin(findings, ", ")));
  }
  out_ += "\n";
  // What only settles the verdict changes nothing by itself.
  if (!recommendation.has_effect() && !recommendation.has_verify()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string effect, EffectText(recommendation.effect()));
  absl::StrAppend(&out_, "   - ", Labelled("label.effect", effect), "\n");
  if (recommendation.has_verify()) {
    ASSIGN_OR_RETURN(const std::string verify, text_.Sentence(recommendation.verify()));
    absl::StrAppend(&out_, "   - ", Labelled("label.verify", verify), "\n");
  }
  return absl::OkStatus();
}

absl::Status MarkdownWriter::WriteRecommendations() {
  Section("section.recommendations");
  int number = 0;
  for (const v1::Recommendation& recommendation : report_.recommendations().recommendations()) {
    absl::StrAppend(&out_, ++number, ". ");
    RETURN_IF_ERROR(WriteRecommendation(recommendation));
  }
  if (report_.recommendations().has_none_because()) {
    ASSIGN_OR_RETURN(const std::string why,
                     text_.Sentence(report_.recommendations().none_because()));
    absl::StrAppend(&out_, why, "\n");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> RenderMarkdown(const v1::Report& report,
                                           const MetricCatalogue& catalogue, Language language) {
  return MarkdownWriter(report, catalogue, language).Write();
}

std::string RenderStatement(const v1::Statement& statement,
                            const google::protobuf::RepeatedPtrField<v1::Metric>& metrics,
                            const MetricCatalogue& catalogue, Language language) {
  TextWriter writer(metrics, catalogue, BuiltInMessages(), language);
  const absl::StatusOr<std::string> sentence = writer.Sentence(statement);
  // A progress line must not end an analysis; the report itself is strict.
  return sentence.ok() ? *sentence : std::string(sentence.status().message());
}

}  // namespace solward::report
