// Cuts a Chrome trace into its events while it is read: memory stays bounded
// by the largest event, and a fault costs the event it is in, not the file.
//
//   TraceEventStream stream(*input, limits);
//   while (true) {
//     ASSIGN_OR_RETURN(TraceEventStream::Item item, stream.Next());
//     if (item == TraceEventStream::Item::kEnd) break;
//     if (item == TraceEventStream::Item::kEvent) Parse(stream.text());
//   }
#ifndef SOLWARD_AGENTS_PROFILING_READERS_TRACE_EVENT_STREAM_H_
#define SOLWARD_AGENTS_PROFILING_READERS_TRACE_EVENT_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "agents/profiling/readers/input_file.h"
#include "agents/profiling/readers/reader.h"

namespace solward::readers {

// Not thread-safe. Bytes behind text() are readable for another kPadding bytes.
class TraceEventStream {
 public:
  enum class Item {
    kEvent,   // an object of "traceEvents"
    kMember,  // a kept member of the top-level object: key() and text()
    kEnd,
  };
  static constexpr size_t kPadding = 64;

  // `input` must outlive the stream. Other members of the top-level object than
  // `kept_members` are passed over.
  TraceEventStream(InputFile& input, const ReaderLimits& limits,
                   std::set<std::string> kept_members);

  // INVALID_ARGUMENT when this is no JSON object or array of events,
  // RESOURCE_EXHAUSTED beyond a limit, or what the file's reading gave.
  absl::StatusOr<Item> Next();

  // Of the last item; valid until the next call. An event's text is brackets
  // that match in number; what is between them was not checked.
  absl::string_view text() const { return {data_.data() + item_, item_end_ - item_}; }
  absl::string_view key() const { return key_; }
  // Position in traceEvents of the last event.
  uint64_t index() const { return elements_ - 1; }

  // Gives up the last event, which proved to be broken. When another event
  // begins inside it (a bracket is missing), reading goes on there.
  void RejectEvent();

  // What went wrong, valid after kEnd.
  uint64_t events() const { return elements_; }
  uint64_t broken_events() const { return broken_; }
  // The file ends inside the array or the top-level object.
  bool truncated() const { return truncated_; }
  // Bytes between events that belong to none.
  uint64_t stray_bytes() const { return stray_; }
  bool has_trace_events() const { return has_trace_events_; }

 private:
  enum class State { kStart, kObject, kArray, kEnd };
  enum class Found { kYes, kEndOfFile, kTooLarge };

  // Makes bytes available behind end_, keeping those from item_ (or, without
  // `keep`, from pos_). False at the end of the file.
  absl::StatusOr<bool> Fill(bool keep);
  // Moves pos_ to the first byte that is not in `skipped`; false at the end.
  absl::StatusOr<bool> SkipAny(absl::string_view skipped);
  // pos_ is at an opening bracket: moves it behind the closing one.
  absl::StatusOr<Found> SkipBrackets(bool keep);
  // pos_ is at a quote: moves it behind the closing one.
  absl::StatusOr<Found> SkipString(bool keep);
  // Moves pos_ behind any value.
  absl::StatusOr<Found> SkipValue(bool keep);

  // Nothing: the state changed, go on.
  absl::Status Start();
  absl::StatusOr<std::optional<Item>> NextMember();
  absl::StatusOr<std::optional<Item>> NextEvent();
  absl::Status NotATrace(absl::string_view found) const;
  // Where an event begins inside [from, to) of the buffer; npos: nowhere.
  size_t FindEventStart(size_t from, size_t to) const;
  bool HoldsAnother() const;
  Item Truncated();

  InputFile& input_;
  const ReaderLimits limits_;
  const std::set<std::string> kept_members_;
  std::vector<char> data_;
  size_t pos_ = 0;
  size_t end_ = 0;
  size_t item_ = 0;
  size_t item_end_ = 0;
  bool end_of_file_ = false;
  State state_ = State::kStart;
  bool root_is_array_ = false;
  std::string key_;
  uint64_t elements_ = 0;
  uint64_t broken_ = 0;
  uint64_t stray_ = 0;
  uint32_t recoveries_ = 0;
  bool truncated_ = false;
  bool has_trace_events_ = false;
};

}  // namespace solward::readers

#endif  // SOLWARD_AGENTS_PROFILING_READERS_TRACE_EVENT_STREAM_H_
