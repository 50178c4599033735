//! The transport: tonic and prost, and nothing else. Handlers convert, call `service`, convert back.
//!
//! `tonic::Status` exists only here, and generated types reach no further than `http/` and `cli/`.

pub mod pb;
