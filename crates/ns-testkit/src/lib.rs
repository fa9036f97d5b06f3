//! Development only: case files, random models, assertions.
