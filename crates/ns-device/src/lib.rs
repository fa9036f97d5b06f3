//! What an accelerator is: its kernels, and how they run.
