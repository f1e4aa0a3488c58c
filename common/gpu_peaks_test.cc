// common/gpu_peaks_test.cc
