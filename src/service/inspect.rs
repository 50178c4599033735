//! What does the cache hold.
