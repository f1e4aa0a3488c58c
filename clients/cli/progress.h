// Progress of an analysis for a person: one live line on a terminal, plain
// lines otherwise. Always on stderr, so that stdout is the report alone.
#ifndef SOLWARD_CLIENTS_CLI_PROGRESS_H_
#define SOLWARD_CLIENTS_CLI_PROGRESS_H_

#include <string>

#include "solward/v1/analysis.pb.h"

namespace solward::cli {

// One event as one line without newline; empty when there is nothing to say.
std::string DescribeEvent(const v1::AnalysisEvent& event);

// "memory-bound", "undetermined (kernels)".
std::string ClassWords(v1::BottleneckClass bottleneck_class);
std::string StateWords(v1::AnalysisState state);

// Not thread-safe.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  void Show(const v1::AnalysisEvent& event);
  // Ends the live line, so that other text can follow.
  void Clear();

 private:
  const bool terminal_;
  bool shown_ = false;
};

}  // namespace solward::cli

#endif  // SOLWARD_CLIENTS_CLI_PROGRESS_H_
