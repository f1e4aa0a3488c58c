// agents/profiling/readers/trace_event_stream_test.cc
