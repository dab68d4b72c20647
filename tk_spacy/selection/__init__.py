"""Feature selection in kernel space: explicit features mined from what kernels count implicitly."""
