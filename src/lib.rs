//! Berth: scheduling decisions for Kubernetes. See README.md for the product and docs/ for its contracts.

pub mod api;
pub mod app;
pub mod cli;
pub mod cluster;
pub mod config;
pub mod engine;
pub mod evict;
pub mod http;
pub mod manifest;
pub mod model;
pub mod service;
pub mod telemetry;
