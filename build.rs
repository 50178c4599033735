//! Compiles `proto/berth/v1/*.proto` into `$OUT_DIR/berth.v1.rs`, which `src/api/pb.rs` includes. Nothing outside of
//! Cargo is needed: protox stands in for protoc.
//!
//! Two further results:
//!
//! - `$OUT_DIR/berth_descriptor.bin`, the encoded descriptor set for the reflection service. It keeps the comments of
//!   the protos (three quarters of its 120 kB), since `grpcurl describe` prints them as help.
//! - `serde::Serialize` on the Kubernetes messages, under Kubernetes' JSON names and without unset fields, so that a
//!   typed object is turned into a manifest's JSON and then read by the one reader of manifests. Taken from the
//!   descriptors, hence no list of fields to keep.

#![allow(clippy::print_stdout, reason = "Cargo takes its instructions from there")]

use std::{
    env,
    error::Error,
    fs,
    path::{Path, PathBuf},
};

use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorSet};
use tonic_prost_build::Builder;

/// The include path of the protos, relative to the package, where Cargo runs this program.
const PROTO_ROOT: &str = "proto";
/// The folder of the package `berth.v1` within it.
const PROTO_PACKAGE: &str = "berth/v1";
/// Files whose messages are Kubernetes' own begin with this.
const KUBERNETES_FILES: &str = "berth/v1/kubernetes";
/// What turns messages into bytes and back.
const CODEC: &str = "crate::api::codec::MessageCodec";
/// True for values that a manifest would leave out; `src/api/pb.rs` defines it.
const IS_DEFAULT: &str = "crate::api::pb::is_default";

fn main() -> Result<(), Box<dyn Error>> {
    // The folder covers changed, new and removed files alike.
    println!("cargo:rerun-if-changed={PROTO_ROOT}");
    println!("cargo:rerun-if-changed=build.rs");
    let out_dir = PathBuf::from(env::var_os("OUT_DIR").ok_or("OUT_DIR is not set; build.rs is run by Cargo")?);

    let mut compiler = protox::Compiler::new([PROTO_ROOT])?;
    compiler.include_source_info(true).include_imports(true).open_files(proto_files()?)?;
    // Encoded by protox rather than from the decoded set: that keeps options which prost-types doesn't know.
    let descriptor = out_dir.join("berth_descriptor.bin");
    fs::write(&descriptor, compiler.encode_file_descriptor_set())
        .map_err(|error| format!("can't write {}: {error}", descriptor.display()))?;

    let descriptors = compiler.file_descriptor_set();
    // Ordered maps: answers and their JSON come out the same every time.
    let builder = tonic_prost_build::configure().build_client(true).build_server(true).btree_map(".").codec_path(CODEC);
    serialize_manifests(builder, &descriptors).compile_fds(descriptors)?;
    Ok(())
}

/// The protos to compile, sorted, so that the outcome doesn't depend on the file system's order.
fn proto_files() -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let folder = Path::new(PROTO_ROOT).join(PROTO_PACKAGE);
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder).map_err(|error| format!("can't read {}: {error}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

/// Derives `Serialize` for the messages of the Kubernetes files. Those with a oneof (`Object`) stand for no manifest of
/// their own and are left out.
fn serialize_manifests(mut builder: Builder, descriptors: &FileDescriptorSet) -> Builder {
    for file in descriptors.file.iter().filter(|file| file.name().starts_with(KUBERNETES_FILES)) {
        for message in file.message_type.iter().filter(|message| !has_oneof(message)) {
            let path = format!(".{}.{}", file.package(), message.name());
            builder = builder.message_attribute(&path, "#[derive(serde::Serialize)]");
            for field in &message.field {
                let attribute =
                    format!(r#"#[serde(rename = "{}", skip_serializing_if = "{IS_DEFAULT}")]"#, field.json_name());
                builder = builder.field_attribute(format!("{path}.{}", field.name()), attribute);
            }
        }
    }
    builder
}

/// Whether a message has a oneof, other than the ones that the compiler makes of `optional` fields.
fn has_oneof(message: &DescriptorProto) -> bool {
    let in_oneof = |field: &FieldDescriptorProto| field.oneof_index.is_some() && !field.proto3_optional();
    message.field.iter().any(in_oneof)
}
