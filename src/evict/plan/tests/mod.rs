//! The guarantees of PLANNED mode over random clusters and policies: each is told and played here by means of their own,
//! with a cluster that is fed anew for each request.
//!
//! A [`story::Story`] is one cluster under one policy, asked and played again and again until nothing is suggested. 300 of
//! them unless `BERTH_STORIES` says otherwise; the long run has 20,000.

mod policies;
mod properties;
mod story;
mod world;
