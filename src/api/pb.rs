//! The generated messages, clients and servers of `proto/berth/v1`.

#![allow(clippy::large_enum_variant, reason = "generated")]

/// Whether a value is its type's default, which a manifest leaves out.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

tonic::include_proto!("berth.v1");

/// Encoded descriptor set, comments included, for reflection.
pub const DESCRIPTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/berth_descriptor.bin"));
