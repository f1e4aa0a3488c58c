// The passes that read a statement, in order: what a pass understood is taken
// out of the text, so that later ones do not read it again. Internal to
// statement.cc, statement_figures.cc and statement_names.cc.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_READER_H_
#define SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_READER_H_

#include <re2/re2.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/workflow/statement.h"
#include "coordinator/workflow/statement_text.h"

namespace solward::workflow::internal {

class StatementReader {
 public:
  StatementReader(absl::string_view text, const MetricCatalogue& catalogue);
  StatementContent Read();

 private:
  // Groups of one match as extents; an absent group is empty at 0.
  using Groups = std::vector<Extent>;

  // Calls `use` for every match of a pattern in the text left, in order.
  void ForEach(const RE2& pattern, const std::function<void(const Groups&)>& use);
  void AddReading(absl::string_view kind, Extent words, const std::string& meaning);
  absl::string_view Words(Extent extent) const;  // of the working text
  std::string Before(size_t at, size_t most) const;

  // --- names (statement_names.cc)
  void ReadFiles();
  void ReadRegion();
  void SetRegion(Extent words, const v1::Region& region);
  void ReadSkippedSteps();
  void ReadKernels();
  void AddKernel(Extent words, Extent name, bool pattern, bool prefix);
  void ReadKernelList(size_t after);

  // --- figures (statement_figures.cc)
  void ReadFlops();
  void ReadLabelledFlops();
  void SetFlops(Extent words, bool per_step, double value);
  void ReadTimes();
  void ReadNamedFigures();
  void SetFigure(const std::string& name, std::optional<StatedFigure>& figure, Extent words,
                 double value, double smallest);
  void ReadDimensionLists();
  void ReadShapes();
  void ReadDimensions();
  void ReadBareDimensions();
  void SetDimension(const std::string& name, Extent words, const Number& number);
  void SetNamed(const std::string& name, Extent words, const Number& number);
  void ReadPeaks();
  void ReadOtherNumbers();

  // --- words (statement.cc)
  void ReadDtypes();
  void ReadOperation();
  void ReadMode();
  void ReadMetrics();

  const MetricCatalogue& catalogue_;
  StatementText text_;
  StatementContent content_;
  std::vector<std::string> kernels_;
};

}  // namespace solward::workflow::internal

#endif  // SOLWARD_COORDINATOR_WORKFLOW_STATEMENT_READER_H_
