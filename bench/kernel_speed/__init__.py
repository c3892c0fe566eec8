"""Times of our operations on a CUDA device, beside those of hand-written kernels."""
