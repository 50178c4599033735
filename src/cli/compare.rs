//! `berth compare`: where do a server's cache and a dump differ.

use std::path::PathBuf;

use comfy_table::{Table, presets};
use serde_json::{Value, json};
use tokio_stream::iter;

use super::schedule::{Format, trimmed};
use super::serve::kind;
use super::{Exit, output};
use crate::api::pb::inspect_service_client::InspectServiceClient;
use crate::api::pb::true_object::Form;
use crate::api::{client, pb};
use crate::manifest::{self, ObjectManifest, Placed};
use crate::model::Kind;

/// Objects in a request: far below what a request may have, also of large ones.
const BATCH: usize = 256;
/// Bytes in a request; one may have 16 MiB.
const BATCH_BYTES: usize = 4 << 20;
/// Fields of a difference in the table; -o json and yaml have all.
const MAX_FIELDS: usize = 5;

/// Compare what a server has cached with what is true
///
/// The truth is that of dumps: `kubectl get nodes,pods,pv,pvc,sc -A -o json > dump.json` works as it is. Kinds that are
/// not in a dump are not compared, unless --kinds names them. What changed since the dump was made is a difference, too:
/// the side that is behind is shown.
///
/// Exit codes: 0 no difference, 3 some, 2 wrong usage or input, 1 failed.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The server
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:50051")]
    addr: String,
    /// What is true: JSON or YAML, - for standard input
    #[arg(short, long, value_name = "DUMP", num_args = 1.., required = true)]
    file: Vec<PathBuf>,
    /// Kinds of which the dumps have all objects [default: those that are in them]
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = kind)]
    kinds: Vec<Kind>,
    /// How to print
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

struct Compared {
    differences: Vec<pb::Difference>,
    summary: pb::CompareSummary,
}

pub(super) fn run(args: &Args) -> Exit {
    match compare(args) {
        Ok(exit) => exit,
        Err((message, exit)) => {
            output::complain(message);
            exit
        }
    }
}

fn compare(args: &Args) -> Result<Exit, (String, Exit)> {
    let failed = |error: String| (format!("berth compare: {error}"), Exit::Failed);
    let contents = manifest::read_object_manifests(&args.file, manifest::Options::default());
    if !contents.errors.is_empty() {
        let lines: Vec<String> = contents.errors.iter().map(|error| format!("berth compare: {error}")).collect();
        return Err((lines.join("\n"), Exit::Usage));
    }
    if contents.objects.is_empty() && args.kinds.is_empty() {
        let message = "berth compare: there is no object that Berth reads in the dumps; --kinds says what they cover";
        return Err((message.to_owned(), Exit::Usage));
    }
    let requests = requests(contents.objects, &args.kinds);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| failed(error.to_string()))?;
    let compared = runtime.block_on(ask(&args.addr, requests)).map_err(failed)?;
    let text = match args.output {
        Format::Table => page(&compared),
        Format::Json => format!("{:#}", value(&compared)),
        Format::Yaml => output::yaml(&value(&compared)).map_err(failed)?,
    };
    let Compared { differences, summary } = compared;
    for rejection in &summary.rejections {
        let object = rejection.object.as_ref().map(name).unwrap_or_default();
        output::complain(format!("berth compare: not compared: {object}: {}", rejection.message));
    }
    if !output::line(text) {
        return Ok(Exit::Failed);
    }
    Ok(match () {
        () if !differences.is_empty() => Exit::Differs,
        // Not all of the truth was compared.
        () if !summary.rejections.is_empty() || summary.omitted > 0 => Exit::Failed,
        () => Exit::Done,
    })
}

fn requests(objects: Vec<Placed<ObjectManifest>>, kinds: &[Kind]) -> Vec<pb::CompareRequest> {
    let kinds = kinds.iter().map(|kind| kind.as_str().to_owned()).collect();
    let mut requests = vec![pb::CompareRequest { kinds, objects: Vec::new() }];
    let mut bytes = 0;
    for Placed { value: ObjectManifest { manifest, .. }, .. } in objects {
        let json = manifest.to_string().into_bytes();
        bytes += json.len();
        let object = pb::TrueObject { form: Some(Form::ManifestJson(json)) };
        match requests.last_mut() {
            Some(last) if last.objects.len() < BATCH && (bytes <= BATCH_BYTES || last.objects.is_empty()) => {
                last.objects.push(object);
            }
            _ => {
                bytes = 0;
                requests.push(pb::CompareRequest { kinds: Vec::new(), objects: vec![object] });
            }
        }
    }
    requests
}

async fn ask(addr: &str, requests: Vec<pb::CompareRequest>) -> Result<Compared, String> {
    let channel = client::connect(addr).await.map_err(|error| error.to_string())?;
    let answers = InspectServiceClient::new(channel).compare(iter(requests)).await;
    let mut answers = answers.map_err(|status| format!("{addr}: {}", status.message()))?.into_inner();
    let mut differences = Vec::new();
    let mut summary = None;
    while let Some(answer) = answers.message().await.map_err(|status| format!("{addr}: {}", status.message()))? {
        differences.extend(answer.differences);
        summary = answer.summary.or(summary);
    }
    let summary = summary.ok_or_else(|| format!("{addr} ended before its summary"))?;
    Ok(Compared { differences, summary })
}

fn page(Compared { differences, summary }: &Compared) -> String {
    let mut kinds = Table::new();
    kinds.load_style(presets::NOTHING);
    kinds.set_header(["KIND", "TRUTH", "CACHE", "SAME", "MISSING", "EXTRA", "REPLACED", "DIFFERENT"]);
    for kind in &summary.kinds {
        let extra = if kind.covered { kind.extra.to_string() } else { "-".to_owned() };
        let numbers = [kind.truth, kind.cache, kind.same, kind.missing].map(|n| n.to_string());
        let rest = [extra, kind.replaced.to_string(), kind.different.to_string()];
        kinds.add_row([kind.kind.clone()].into_iter().chain(numbers).chain(rest));
    }
    let end = match differences.len() {
        0 => "no difference".to_owned(),
        1 => "1 difference".to_owned(),
        many => format!("{many} differences"),
    };
    let end = format!("{end} at revision {} of {}", summary.revision, summary.incarnation);
    if differences.is_empty() {
        return format!("{}\n\n{end}", trimmed(&kinds));
    }
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["DIFFERENCE", "OBJECT", "FIELD", "TRUTH", "CACHE", "BEHIND"]);
    for difference in differences {
        let object = difference.object.as_ref().map(name).unwrap_or_default();
        let rows = details(difference);
        for (i, [field, truth, cache]) in rows.into_iter().enumerate() {
            let [what, object, behind] = if i == 0 {
                [what(difference).to_owned(), object.clone(), behind(difference).to_owned()]
            } else {
                Default::default()
            };
            table.add_row([what, object, field, truth, cache, behind]);
        }
    }
    format!("{}\n\n{}\n\n{end}", trimmed(&table), trimmed(&kinds))
}

/// Field, true value and cached value, one a line.
fn details(difference: &pb::Difference) -> Vec<[String; 3]> {
    let dash = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let shown = difference.fields.iter().take(MAX_FIELDS);
    let mut rows: Vec<[String; 3]> = shown.map(|f| [f.field.clone(), dash(&f.truth), dash(&f.cache)]).collect();
    let more = difference.fields.len().saturating_sub(MAX_FIELDS) as u64 + u64::from(difference.fields_omitted);
    if more > 0 {
        rows.push([format!("and {more} more"), String::new(), String::new()]);
    }
    if difference.r#type() == pb::DifferenceType::Replaced {
        let uid = difference.object.as_ref().map(|object| object.uid.clone()).unwrap_or_default();
        rows.push(["metadata.uid".to_owned(), uid, difference.cache_uid.clone()]);
    }
    if rows.is_empty() {
        rows.push([difference.message.clone(), String::new(), String::new()]);
    }
    rows
}

fn what(difference: &pb::Difference) -> &'static str {
    match difference.r#type() {
        pb::DifferenceType::MissingInCache => "missing",
        pb::DifferenceType::ExtraInCache => "extra",
        pb::DifferenceType::Replaced => "replaced",
        pb::DifferenceType::Different => "different",
        pb::DifferenceType::Orphaned => "orphaned",
        pb::DifferenceType::RoomMisplaced => "room-misplaced",
        pb::DifferenceType::StaleReservation => "stale-reservation",
        pb::DifferenceType::ViewMismatch => "view-mismatch",
        pb::DifferenceType::Unspecified => "unknown",
    }
}

fn behind(difference: &pb::Difference) -> &'static str {
    match difference.version_order() {
        pb::VersionOrder::CacheOlder => "cache",
        pb::VersionOrder::CacheNewer => "truth",
        pb::VersionOrder::Same => "none",
        pb::VersionOrder::Unspecified => "",
    }
}

/// `Pod default/web-1`, `Node n1`.
fn name(object: &pb::ObjectRef) -> String {
    let slash = if object.namespace.is_empty() { "" } else { "/" };
    format!("{} {}{slash}{}", object.kind, object.namespace, object.name)
}

/// For programs: the answers' fields under their JSON names, those at their default left out.
fn value(Compared { differences, summary }: &Compared) -> Value {
    let object = |object: &pb::ObjectRef| {
        pruned(json!({
            "kind": object.kind, "namespace": object.namespace, "name": object.name, "uid": object.uid,
        }))
    };
    let field = |f: &pb::FieldDifference| {
        let mut field = json!({ "field": f.field });
        for (side, value) in [("truth", &f.truth), ("cache", &f.cache)] {
            if let Some(value) = value {
                field[side] = value.as_str().into();
            }
        }
        field
    };
    let told = differences.iter().map(|d| {
        pruned(json!({
            "type": d.r#type().as_str_name().trim_start_matches("DIFFERENCE_TYPE_"),
            "object": d.object.as_ref().map(object),
            "fields": d.fields.iter().map(field).collect::<Vec<_>>(),
            "fieldsOmitted": d.fields_omitted,
            "cacheUid": d.cache_uid,
            "truthVersion": d.truth_version,
            "cacheVersion": d.cache_version,
            "versionOrder": d.version_order().as_str_name().trim_start_matches("VERSION_ORDER_"),
            "message": d.message,
        }))
    });
    let kinds = summary.kinds.iter().map(|kind| {
        json!({
            "kind": kind.kind, "truth": kind.truth, "cache": kind.cache, "same": kind.same,
            "otherVersion": kind.other_version, "missing": kind.missing, "extra": kind.extra,
            "replaced": kind.replaced, "different": kind.different, "covered": kind.covered,
        })
    });
    let rejections = summary.rejections.iter().map(|rejection| {
        pruned(json!({ "object": rejection.object.as_ref().map(object), "message": rejection.message }))
    });
    json!({
        "revision": summary.revision,
        "incarnation": summary.incarnation,
        "differences": told.collect::<Vec<_>>(),
        "kinds": kinds.collect::<Vec<_>>(),
        "rejections": rejections.collect::<Vec<_>>(),
    })
}

fn pruned(mut value: Value) -> Value {
    if let Some(fields) = value.as_object_mut() {
        let is_default = |v: &Value| {
            v.is_null() || *v == json!("") || *v == json!(0) || *v == json!([]) || *v == json!("UNSPECIFIED")
        };
        fields.retain(|_, v| !is_default(v));
    }
    value
}
