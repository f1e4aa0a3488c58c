// Reads a statement, free text in English or French, by the small grammar of
// docs/statement.md. No model: words, numbers and their neighbours.
//
//   StatementContent s = ReadStatement("GEMM M=N=K=8192 in bf16; report the MFU.", catalogue);
//   s.metrics      // {"mfu"}
//   s.dimensions   // {{"K", 8192}, {"M", 8192}, {"N", 8192}}
#ifndef SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_H_
#define SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/metric_catalogue.h"
#include "solward/v1/analysis.pb.h"

namespace solward::workflow {

// A figure and the words it was read from.
struct StatedFigure {
  double value = 0;
  std::string text;
};

// The statement says two different things about one name ("dtype",
// "batch_size", "B").
struct StatedTwice {
  std::string name;
  std::string first, second;
};

// A number in a place that needs another kind of number.
struct NotUnderstood {
  std::string name;  // what it was said about: "B", "batch_size"
  std::string text;
  std::string expected_en, expected_fr;
};

struct StatementContent {
  // Every phrase read, in order of offset. Every number of the text is in one.
  std::vector<v1::StatementReading> readings;

  std::vector<std::string> metrics;       // metric and group ids, in order of mention
  std::vector<std::string> unit_metrics;  // "throughput in tokens/sec": token_throughput
  std::map<std::string, int64_t> dimensions;
  std::string dimensions_text;  // the words of the dimensions, joined
  v1::Dtype dtype = v1::DTYPE_UNSPECIFIED;
  std::optional<StatedFigure> flops_per_call, flops_per_step;  // FLOP
  std::optional<StatedFigure> step_time;                       // seconds, without profiler
  std::optional<StatedFigure> batch_size, sequence_length, world_size, calls_per_step;
  std::optional<StatedFigure> parameters;
  std::vector<std::string> files;  // as written, in order
  std::optional<v1::Region> region;
  std::string kernel_pattern;  // RE2
  v1::OperationKind operation = v1::OPERATION_KIND_UNSPECIFIED;
  bool causal = false, backward = false;
  v1::TrainingMode mode = v1::TRAINING_MODE_UNSPECIFIED;

  std::vector<StatedTwice> twice;
  std::vector<NotUnderstood> not_understood;
};

// Linear in the length of the text. Never fails: what is not understood is in
// `readings` as kind "number", or in `not_understood`.
StatementContent ReadStatement(absl::string_view text, const MetricCatalogue& catalogue);

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_H_
