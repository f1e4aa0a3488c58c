// Hand-made timelines for tests, in microseconds, by what happened:
//
//   Tiny t;
//   t.Kernel(30, 100, t.Call("cudaLaunchKernel", 10, 20));
//   t.Range("step", 0, 400);
//   Timeline timeline = t.Build();
#ifndef SOLWARD_AGENTS_PROFILING_TIMELINE_TINY_TIMELINE_H_
#define SOLWARD_AGENTS_PROFILING_TIMELINE_TINY_TIMELINE_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"
#include "agents/profiling/timeline/timeline_builder.h"

namespace solward::timeline {

class Tiny {
 public:
  Tiny() : builder_("nsys", 1 << 26) {}

  // Rows that follow belong to this process, device and CPU thread.
  Tiny& Process(uint32_t pid) {
    process_ = pid;
    return *this;
  }
  Tiny& Device(int32_t device) {
    device_ = device;
    return *this;
  }
  Tiny& Thread(int64_t thread) {
    thread_ = thread;
    return *this;
  }

  // Its correlation.
  int64_t Call(absl::string_view name, double start_us, double end_us) {
    CallRow call;
    call.process = process_;
    call.thread = thread_;
    call.start_ns = Ns(start_us);
    call.end_ns = Ns(end_us);
    call.correlation = ++correlation_;
    call.name = builder_.names().Intern(name);
    call.kind = ClassifyApiName(name);
    if (!builder_.AddCall(call).ok()) std::abort();
    return correlation_;
  }
  void Kernel(double start_us, double end_us, int64_t call = kNoCorrelation) {
    Op(GpuOpKind::kKernel, start_us, end_us, call);
  }
  void Op(GpuOpKind kind, double start_us, double end_us, int64_t call = kNoCorrelation) {
    OpRow op;
    op.process = process_;
    op.device = device_;
    op.start_ns = Ns(start_us);
    op.end_ns = Ns(end_us);
    op.correlation = call;
    op.name = builder_.names().Intern("op");
    op.kind = kind;
    if (!builder_.AddOp(op).ok()) std::abort();
  }
  // A kernel with its own launch, long before.
  void Queued(GpuOpKind kind, double start_us, double end_us) {
    Op(kind, start_us, end_us, Call("cudaLaunchKernel", 0, 0));
  }
  void Range(absl::string_view name, double start_us, double end_us) {
    RangeRow range;
    range.process = process_;
    range.thread = thread_;
    range.start_ns = Ns(start_us);
    range.end_ns = Ns(end_us);
    range.name = builder_.names().Intern(name);
    if (!builder_.AddRange(range).ok()) std::abort();
  }
  Timeline Build() { return *std::move(builder_).Build(); }

 private:
  static int64_t Ns(double us) { return static_cast<int64_t>(us * 1000 + 0.5); }

  TimelineBuilder builder_;
  uint32_t process_ = 1;
  int32_t device_ = 0;
  int64_t thread_ = 1;
  int64_t correlation_ = 0;
};

}  // namespace solward::timeline

#endif  // SOLWARD_AGENTS_PROFILING_TIMELINE_TINY_TIMELINE_H_
