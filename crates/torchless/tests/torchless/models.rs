//! Models made here, of every family and every kind of file, against a plain forward pass in double precision.
