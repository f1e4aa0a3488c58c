// The Summary: one to five sentences.
#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/gpu_peaks.h"
#include "coordinator/report/messages.h"
#include "coordinator/workflow/report_input.h"

namespace solward::workflow {
namespace {

using report::ClassTerm;
using report::EnumTerm;

constexpr int kMostStatements = 5;

std::string ConfidenceTerm(v1::Confidence confidence) {
  return EnumTerm("confidence", "CONFIDENCE_", v1::Confidence_Name(confidence));
}

// First ranked entry of a class; nullptr when it is not ranked.
const v1::RankedClass* Ranked(const v1::Classification& classification,
                              v1::BottleneckClass bottleneck_class) {
  for (const v1::RankedClass& ranked : classification.ranking()) {
    if (ranked.bottleneck_class() == bottleneck_class) return &ranked;
  }
  return nullptr;
}

class SummaryWriter {
 public:
  explicit SummaryWriter(const ReportInput& input)
      : input_(input), classification_(input.classification()) {}

  v1::SummarySection Write() {
    Add(Verdict());
    AddUnusedCaptures();
    AddFlip();
    AddMargin();
    if (classification_.kernels_unrated() && !IsUndetermined(classification_.primary())) {
      Add(Sentence("summary.kernels_unrated").Done());
    }
    if (!AddMfu()) AddSpeedOfLight();
    AddBusy();
    AddRescaled();
    AddThroughput();
    return std::move(section_);
  }

 private:
  void Add(v1::Statement statement) {
    if (section_.statements_size() < kMostStatements) {
      *section_.add_statements() = std::move(statement);
    }
  }

  // Nothing to classify from: the reader needs to know why at once.
  void AddUnusedCaptures() {
    if (classification_.primary() != v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE) return;
    for (const v1::CaptureOutcome& capture : input_.measurement().captures()) {
      if (capture.code() == 0) continue;
      Add(Sentence("finding.capture_unreadable")
              .Name("capture", capture.label())
              .Quote("message", capture.message())
              .Done());
    }
  }

  // Several GPUs or ranks: a verdict says which one it speaks of.
  bool SeveralPlaces() const {
    for (const v1::Timeline& timeline : input_.measurement().timelines()) {
      if (timeline.device() != classification_.device() ||
          timeline.rank() != classification_.rank()) {
        return true;
      }
    }
    return false;
  }

  v1::Statement Verdict() const;
  v1::Statement Undetermined() const;
  // The class that a dilated timeline shows: ranked with the same share.
  const v1::RankedClass* Shown() const;
  void AddFlip();
  void AddMargin();
  bool AddMfu();
  void AddSpeedOfLight();
  void AddBusy();
  void AddRescaled();
  void AddThroughput();
  std::string SourceTerm(const v1::Metric& step_time) const {
    return step_time.provenance().has_given() ? "source.given" : "source.measured";
  }
  // Kernel the headline speaks of: with an MFU, else the longest rated one.
  std::string HeadlineKernel() const;

  const ReportInput& input_;
  const v1::Classification& classification_;
  v1::SummarySection section_;
};

v1::Statement SummaryWriter::Verdict() const {
  const v1::BottleneckClass primary = classification_.primary();
  if (IsUndetermined(primary)) return Undetermined();
  const v1::RankedClass* ranked = Ranked(classification_, primary);
  const v1::Metric* share = ranked == nullptr ? nullptr : input_.Find(ranked->share_key());
  const v1::Metric* recoverable =
      ranked == nullptr ? nullptr : input_.Find(ranked->recoverable_key());
  const std::string confidence = ConfidenceTerm(classification_.confidence());
  if (share == nullptr || recoverable == nullptr) {
    return Sentence("summary.verdict.plain")
        .Term("class", ClassTerm(primary))
        .Term("confidence", confidence)
        .Done();
  }
  std::string id = "summary.verdict.overhead";
  if (IsKernelClass(primary)) {
    const bool near = recoverable->value() < input_.knowledge().parameters.near_roof_percent;
    id = near ? "summary.verdict.near_roof" : "summary.verdict.kernels";
  } else if (SeveralPlaces()) {
    id = "summary.verdict.overhead_at";
  }
  Sentence sentence(id);
  sentence.Term("class", ClassTerm(primary))
      .Metric("share", share->key())
      .Term("base", ReportInput::BaseTerm(*share))
      .Metric("recoverable", recoverable->key())
      .Term("confidence", confidence);
  if (id == "summary.verdict.overhead_at") {
    sentence.Name("place",
                  ReportInput::PlaceName(classification_.device(), classification_.rank()));
  }
  return sentence.Done();
}

const v1::RankedClass* SummaryWriter::Shown() const {
  const auto& ranking = classification_.ranking();
  for (const v1::RankedClass& ranked : ranking) {
    if (!IsUndetermined(ranked.bottleneck_class()) &&
        ranked.share_key() == ranking[0].share_key()) {
      return &ranked;
    }
  }
  return nullptr;
}

v1::Statement SummaryWriter::Undetermined() const {
  const v1::RankedClass* first =
      classification_.ranking().empty() ? nullptr : &classification_.ranking(0);
  if (classification_.primary() == v1::BOTTLENECK_CLASS_UNDETERMINED_KERNELS) {
    const v1::Metric* share = first == nullptr ? nullptr : input_.Find(first->share_key());
    if (share == nullptr) return Sentence("summary.verdict.undetermined_kernels").Done();
    return Sentence("summary.verdict.undetermined_kernels_share")
        .Metric("share", share->key())
        .Term("base", ReportInput::BaseTerm(*share))
        .Done();
  }
  if (classification_.primary() == v1::BOTTLENECK_CLASS_UNDETERMINED_PROFILER_DILATION) {
    const v1::RankedClass* shown = Shown();
    const v1::Metric* share = shown == nullptr ? nullptr : input_.Find(shown->share_key());
    if (share == nullptr) return Sentence("summary.verdict.dilation").Done();
    return Sentence("summary.verdict.dilation_share")
        .Term("class", ClassTerm(shown->bottleneck_class()))
        .Metric("share", share->key())
        .Term("base", ReportInput::BaseTerm(*share))
        .Done();
  }
  return Sentence("summary.verdict.no_evidence").Done();
}

// "launch-overhead if a step takes more than ... without the profiler".
void SummaryWriter::AddFlip() {
  const v1::Metric* flip = input_.Find(classification_.flip_step_time_key());
  if (flip == nullptr) return;
  const v1::RankedClass* shown = Shown();
  Add(Sentence("summary.flip")
          .Term("class", ClassTerm(shown != nullptr ? shown->bottleneck_class()
                                                    : v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD))
          .Metric("flip", flip->key())
          .Done());
}

void SummaryWriter::AddMargin() {
  if (!classification_.within_margin() || classification_.ranking_size() < 2) return;
  if (IsUndetermined(classification_.primary())) return;
  const v1::RankedClass& second = classification_.ranking(1);
  const v1::Metric* recoverable = input_.Find(second.recoverable_key());
  if (recoverable == nullptr) return;
  const v1::Metric* margin = input_.Find(classification_.margin_key());
  Sentence sentence(margin != nullptr ? "summary.within_margin" : "summary.within_margin_plain");
  sentence.Term("second", ClassTerm(second.bottleneck_class()))
      .Metric("recoverable", recoverable->key());
  if (margin != nullptr) sentence.Metric("margin", margin->key());
  Add(sentence.Done());
}

bool SummaryWriter::AddMfu() {
  const v1::Metric* mfu = input_.FindAny("mfu");
  const v1::Metric* peak = mfu == nullptr ? nullptr : input_.InputOf(*mfu, "peak");
  if (peak == nullptr) return false;
  const v1::Reference& reference = peak->provenance().reference();
  const std::string dtype =
      absl::StrCat(reference.row(), reference.row().empty() ? "" : " ", reference.column());
  const std::string& kernel = mfu->scope().name();
  const v1::Metric* pipe = input_.FindOfKernel("tensor_pipe_utilization", kernel);
  const v1::Metric* clock = input_.FindOfKernel("sm_clock", kernel);
  const v1::Metric* share = input_.FindOfKernel("clock_share", kernel);
  const v1::Metric* peak_clock = share == nullptr ? nullptr : input_.InputOf(*share, "peak_clock");
  std::string id = kernel.empty() ? "summary.mfu" : "summary.mfu_kernel";
  const bool factors = pipe != nullptr && clock != nullptr && peak_clock != nullptr;
  if (!kernel.empty() && factors) {
    id = "summary.mfu_factors";
  } else if (!kernel.empty() && pipe != nullptr) {
    id = "summary.mfu_pipe";
  }
  Sentence sentence(id);
  sentence.Metric("mfu", mfu->key()).Metric("peak", peak->key()).Name("dtype", dtype);
  if (!kernel.empty()) sentence.Name("kernel", kernel);
  if (id == "summary.mfu_pipe" || id == "summary.mfu_factors") sentence.Metric("pipe", pipe->key());
  if (id == "summary.mfu_factors") {
    sentence.Metric("clock", clock->key())
        .Metric("peak_clock", peak_clock->key())
        .Metric("clock_share", share->key());
  }
  Add(sentence.Done());
  return true;
}

std::string SummaryWriter::HeadlineKernel() const {
  if (!classification_.kernel_limits().empty()) return classification_.kernel_limits(0).kernel();
  const v1::Metric* sol = input_.FindAny("sol");
  return sol == nullptr ? "" : sol->scope().name();
}

void SummaryWriter::AddSpeedOfLight() {
  const std::string kernel = HeadlineKernel();
  if (kernel.empty()) return;
  const v1::Metric* sol = input_.FindOfKernel("sol", kernel);
  const v1::Metric* compute = input_.FindOfKernel("compute_throughput", kernel);
  const v1::Metric* memory = input_.FindOfKernel("memory_throughput", kernel);
  const v1::Metric* dram = input_.FindOfKernel("dram_throughput", kernel);
  if (sol == nullptr || compute == nullptr || memory == nullptr) return;
  Sentence sentence(dram != nullptr ? "summary.sol_dram" : "summary.sol");
  sentence.Name("kernel", kernel)
      .Metric("sol", sol->key())
      .Metric("compute", compute->key())
      .Metric("memory", memory->key());
  if (dram != nullptr) sentence.Metric("dram", dram->key());
  Add(sentence.Done());
}

void SummaryWriter::AddBusy() {
  const v1::ScopeKind kind = classification_.rescaled() ? v1::SCOPE_KIND_STEP : v1::SCOPE_KIND_RUN;
  const v1::Metric* busy =
      input_.Find("gpu_busy_share", kind, classification_.device(), classification_.rank());
  if (busy == nullptr) return;
  Add(Sentence("summary.busy")
          .Metric("busy", busy->key())
          .Term("base", ReportInput::BaseTerm(*busy))
          .Done());
}

void SummaryWriter::AddRescaled() {
  const v1::Metric* step_time = input_.FindAny("step_time");
  if (!classification_.rescaled() || step_time == nullptr) return;
  const v1::Metric* dilation =
      input_.Find("dilation", v1::SCOPE_KIND_RUN, classification_.device(), classification_.rank());
  Sentence sentence(dilation != nullptr ? "summary.rescaled" : "summary.rescaled_plain");
  sentence.Metric("step_time", step_time->key()).Term("source", SourceTerm(*step_time));
  if (dilation != nullptr) sentence.Metric("dilation", dilation->key());
  Add(sentence.Done());
}

void SummaryWriter::AddThroughput() {
  const v1::Metric* throughput = nullptr;
  for (const char* id : {"token_throughput", "sample_throughput", "throughput"}) {
    if (throughput == nullptr) throughput = input_.FindAny(id);
  }
  if (throughput == nullptr) {
    const auto& unmeasured = input_.measurement().unmeasured();
    const bool wanted = std::any_of(unmeasured.begin(), unmeasured.end(), [](const auto& metric) {
      return metric.id() == "throughput" || metric.id() == "latency";
    });
    if (wanted) Add(Sentence("summary.throughput_unmeasured").Done());
    return;
  }
  const v1::Metric* step_time = input_.FindAny("step_time");
  const v1::Metric* latency = input_.FindAny("latency");
  Sentence sentence(latency != nullptr ? "summary.throughput_latency" : "summary.throughput");
  sentence.Metric("throughput", throughput->key())
      .Term("source", step_time == nullptr ? "source.measured" : SourceTerm(*step_time));
  if (latency != nullptr) sentence.Metric("latency", latency->key());
  Add(sentence.Done());
}

}  // namespace

v1::SummarySection MakeSummary(const ReportInput& input) { return SummaryWriter(input).Write(); }

}  // namespace solward::workflow
