//! Berth: scheduling decisions for Kubernetes. See README.md for the product and docs/ for its contracts.

pub mod api;
pub mod cluster;
pub mod engine;
pub mod model;
