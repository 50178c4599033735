//! From events to checked objects, before the writer is taken: all that can be refused without looking at the cache.

use std::sync::Arc;

use super::{Ack, Assume, AssumedBinding, Event, ItemRejection, ItemWarning, Reference, RejectionCode, StreamKind};
use crate::cluster::pod_volumes::ephemeral_claim;
use crate::cluster::writer::Prepared;
use crate::cluster::{Cluster, VolumeBinding};
use crate::manifest::{self, ManifestError, Parsed, Warning};
use crate::model::volume::{Volume, VolumeSource};
use crate::model::{Kind, Object, ObjectRef, Pod, Str};
use crate::service::FieldError;
use crate::service::schedule::{DEFAULT_TTL_SECS, check_ttl};
use crate::service::source::{Document, Refusal, Source};

/// An event after reading and checking, ready for the writer.
pub(super) enum Ready {
    Upsert(Box<Prepared>),
    Delete(ObjectRef),
    Assume { pod: Arc<Pod>, node: Str, bindings: Vec<VolumeBinding>, id: Option<Str>, ttl_micros: i64 },
}

impl Ready {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Upsert(prepared) => prepared.object().kind(),
            Self::Delete(object) => object.kind,
            Self::Assume { .. } => Kind::Pod,
        }
    }

    /// What it is to write, in small pods: each takes up to 10 us.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::Upsert(prepared) => match prepared.object() {
                Object::Pod(pod) => pod_weight(pod),
                _ => 1,
            },
            Self::Delete(_) => 1,
            Self::Assume { pod, .. } => pod_weight(pod),
        }
    }
}

/// An entry of an index takes 2 to 3 us, so four are another pod; a label is looked up in each index.
fn pod_weight(pod: &Pod) -> usize {
    let spec = &pod.spec;
    let sides = [&spec.affinity.pod, &spec.affinity.pod_anti];
    let terms: usize = sides.into_iter().flatten().map(|side| side.required.len() + side.preferred.len()).sum();
    let ports: usize = spec.containers.iter().map(|container| container.ports.len()).sum();
    1 + (terms + spec.volumes.len() + ports + pod.meta.labels.len() / 4) / 4
}

/// Events after which the thread lets others go first. Reading 1,024 objects takes some 20 ms; without this, on a machine whose
/// cores are all busy, a decision would wait for the operating system to take the core away, which is milliseconds.
const BETWEEN_YIELDS: usize = 16;

/// Reads objects that belong to no stream, such as those of a truth that the cache is compared with, as a stream without
/// Hello would read them. Refusals and remarks go to `ack`.
pub(in crate::service) fn read_objects(
    cluster: &Cluster,
    sequence: u64,
    sources: Vec<Source>,
    ack: &mut Ack,
) -> Vec<Object> {
    let options = manifest::Options { allow_missing_uid: true };
    let mut reader = ObjectReader { cluster, sequence, options, ack };
    let mut objects = Vec::with_capacity(sources.len());
    for (index, source) in sources.into_iter().enumerate() {
        match reader.object(source, index, |_| true) {
            Ok(object) => objects.push(object),
            Err(refused) => reader.refuse(*refused, index),
        }
    }
    objects
}

/// Reads the objects of one batch.
pub(super) struct ObjectReader<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) sequence: u64,
    pub(super) options: manifest::Options,
    /// Takes the refusals and remarks.
    pub(super) ack: &'a mut Ack,
}

/// Reads the events of one batch.
pub(super) struct BatchReader<'a> {
    pub(super) objects: ObjectReader<'a>,
    pub(super) stream: StreamKind,
}

/// A refusal without its place.
struct Refused {
    object: Reference,
    code: RejectionCode,
    message: String,
    errors: Vec<FieldError>,
}

impl Refused {
    fn new(object: Reference, code: RejectionCode, message: impl Into<String>) -> Box<Self> {
        Box::new(Self { object, code, message: message.into(), errors: Vec::new() })
    }

    fn fields(object: Reference, code: RejectionCode, errors: Vec<FieldError>) -> Box<Self> {
        let message = errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Box::new(Self { object, code, message, errors })
    }

    fn invalid(error: ManifestError) -> Box<Self> {
        let all = |path: &str| error.errors.iter().all(|e| e.path == path);
        let code = match () {
            () if all("metadata.uid") => RejectionCode::MissingUid,
            // There is a kind, it reads well, and it isn't one that Berth takes.
            () if all("kind") && !error.kind.is_empty() => RejectionCode::WrongKind,
            () => RejectionCode::Invalid,
        };
        let message = error.to_string();
        let ManifestError { kind, name, namespace, errors } = error;
        let object = Reference { kind, namespace, name, uid: String::new() };
        Box::new(Self { object, code, message, errors })
    }
}

impl From<Refusal> for Box<Refused> {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal {
            Refusal::Absent | Refusal::Syntax(_) => RejectionCode::Malformed,
            Refusal::TooLarge(_) => RejectionCode::TooLarge,
            Refusal::Invalid(error) => return Refused::invalid(error),
        };
        Refused::new(Reference::default(), code, refusal.to_string())
    }
}

impl BatchReader<'_> {
    /// What passes, each with its position; the rest is in the ack.
    pub(super) fn read(mut self, events: Vec<Event>) -> Vec<(usize, Ready)> {
        let mut ready = Vec::with_capacity(events.len());
        for (index, event) in events.into_iter().enumerate() {
            if index % BETWEEN_YIELDS == BETWEEN_YIELDS - 1 {
                std::thread::yield_now();
            }
            let read = match event {
                Event::Upsert(source) => self.upsert(source, index),
                Event::Delete(reference) => self.delete(reference),
                Event::Assume(assume) => self.assume(assume, index),
            };
            match read {
                Ok(item) => ready.push((index, item)),
                Err(refused) => self.objects.refuse(*refused, index),
            }
        }
        ready
    }

    fn upsert(&mut self, source: Source, index: usize) -> Result<Ready, Box<Refused>> {
        let stream = self.stream;
        let object = self.objects.object(source, index, |kind| stream.takes(kind))?;
        let object = self.objects.cluster.objects().known_or(object);
        Ok(Ready::Upsert(Box::new(Prepared::new(object))))
    }

    fn delete(&self, named: Reference) -> Result<Ready, Box<Refused>> {
        let refuse = |field: &str, code, message: String| {
            let error = FieldError { path: format!("delete.{field}"), message };
            Err(Refused::fields(named.clone(), code, vec![error]))
        };
        let kind = match (named.kind.as_str(), self.stream.only_kind()) {
            ("", Some(kind)) => kind,
            ("", None) => return refuse("kind", RejectionCode::Invalid, "Required value".into()),
            (name, _) => match Kind::parse(name).filter(|kind| self.stream.takes(*kind)) {
                Some(kind) => kind,
                None => return refuse("kind", RejectionCode::WrongKind, not_taken(name)),
            },
        };
        if named.name.is_empty() && (kind != Kind::Pod || named.uid.is_empty()) {
            return refuse("name", RejectionCode::Invalid, "Required value".into());
        }
        let namespace = match (kind.is_namespaced(), named.namespace.as_str()) {
            (false, _) => "",
            (true, "") => "default",
            (true, given) => given,
        };
        let (name, uid) = (named.name.as_str().into(), named.uid.as_str().into());
        Ok(Ready::Delete(ObjectRef { kind, namespace: namespace.into(), name, uid }))
    }

    fn assume(&mut self, assume: Assume, index: usize) -> Result<Ready, Box<Refused>> {
        let mut errors = Vec::new();
        let ttl_micros = assume.ttl_micros.unwrap_or(DEFAULT_TTL_SECS * 1_000_000);
        if let Err(message) = check_ttl(ttl_micros) {
            errors.push(FieldError { path: "assume.ttl".into(), message });
        }
        if assume.node.is_empty() {
            errors.push(FieldError { path: "assume.node".into(), message: "Required value".into() });
        }
        let pod = match assume.pod.open() {
            Ok(document) => document.pod(self.objects.options).map_err(Refused::invalid),
            Err(Refusal::Absent) => {
                let error = FieldError { path: "assume.pod".into(), message: "Required value".into() };
                Err(Refused::fields(Reference::default(), RejectionCode::Invalid, vec![error]))
            }
            Err(refusal) => Err(refusal.into()),
        };
        let mut bindings = Vec::new();
        if let Ok(Parsed { value: pod, .. }) = &pod {
            bindings = bindings_of(pod, &assume.node, assume.bindings, &mut errors);
        }
        let parsed = match pod {
            Ok(parsed) if errors.is_empty() => parsed,
            Ok(parsed) => {
                let named = Reference::of(&ObjectRef::of(&Object::from(parsed.value)));
                return Err(Refused::fields(named, RejectionCode::Invalid, errors));
            }
            Err(mut refused) => {
                refused.errors.extend(errors);
                return Err(refused);
            }
        };
        let pod = self.objects.admit(parsed.value, parsed.warnings, index);
        let id = (!assume.reservation_id.is_empty()).then(|| Str::from(assume.reservation_id));
        Ok(Ready::Assume { pod, node: assume.node.into(), bindings, id, ttl_micros })
    }
}

impl ObjectReader<'_> {
    fn object(&mut self, source: Source, index: usize, takes: impl Fn(Kind) -> bool) -> Result<Object, Box<Refused>> {
        let document = source.open()?;
        if Kind::parse(document.kind()).is_some_and(|kind| !takes(kind)) {
            return Err(self.wrong_kind(document));
        }
        let Parsed { value, warnings } = document.object(self.options).map_err(Refused::invalid)?;
        Ok(match value {
            Object::Pod(pod) => Object::Pod(self.admit(Arc::unwrap_or_clone(pod), warnings, index)),
            other => {
                self.warn(&ObjectRef::of(&other), warnings, index);
                other
            }
        })
    }

    /// Reads what is necessary to name the object.
    fn wrong_kind(&self, document: Document) -> Box<Refused> {
        let kind = document.kind().to_owned();
        let message = not_taken(&kind);
        let named = match document.object(self.options) {
            Ok(parsed) => Reference::of(&ObjectRef::of(&parsed.value)),
            Err(error) => Reference { kind, namespace: error.namespace, name: error.name, uid: String::new() },
        };
        Refused::new(named, RejectionCode::WrongKind, message)
    }

    fn refuse(&mut self, refused: Refused, index: usize) {
        let Refused { object, code, message, errors } = refused;
        self.ack.reject(ItemRejection { sequence: self.sequence, index, object, code, message, errors });
    }

    /// Fills in what needs other objects, and passes the remarks on.
    fn admit(&mut self, mut pod: Pod, mut warnings: Vec<Warning>, index: usize) -> Arc<Pod> {
        manifest::apply_classes(&mut pod, self.cluster, &mut warnings);
        let pod = Arc::new(pod);
        if !warnings.is_empty() {
            self.warn(&ObjectRef::of(&Object::Pod(pod.clone())), warnings, index);
        }
        pod
    }

    fn warn(&mut self, object: &ObjectRef, warnings: Vec<Warning>, index: usize) {
        for warning in warnings {
            let object = Reference::of(object);
            self.ack.warn(ItemWarning { sequence: self.sequence, index, object, warning });
        }
    }
}

/// The promises for a pod's claims. Whether the volumes exist isn't asked: they may come later on another stream.
fn bindings_of(pod: &Pod, node: &str, told: Vec<AssumedBinding>, errors: &mut Vec<FieldError>) -> Vec<VolumeBinding> {
    let claims: Vec<Str> = pod.spec.volumes.iter().filter_map(|volume| claim_of(pod, volume)).collect();
    let mut bindings: Vec<VolumeBinding> = Vec::with_capacity(told.len());
    for (i, AssumedBinding { namespace, claim, volume }) in told.into_iter().enumerate() {
        let mut refuse = |field: &str, message: String| {
            errors.push(FieldError { path: format!("assume.volume_bindings[{i}].{field}"), message });
        };
        if !namespace.is_empty() && *namespace != *pod.meta.namespace {
            refuse("namespace", format!("Invalid value: {namespace:?}: must be the pod's, {:?}", &*pod.meta.namespace));
        }
        let volume = (!volume.is_empty()).then(|| Str::from(volume));
        if claim.is_empty() {
            refuse("claim", "Required value".into());
        } else if !claims.iter().any(|known| **known == *claim) {
            refuse("claim", format!("Invalid value: {claim:?}: no volume of the pod names this claim"));
        } else if bindings.iter().any(|other| *other.claim.1 == *claim) {
            refuse("claim", format!("Duplicate value: {claim:?}"));
        } else if let Some(other) = bindings.iter().find(|other| volume.is_some() && other.volume == volume) {
            let message = format!("Duplicate value: claim {:?} gets this volume already", &*other.claim.1);
            refuse("volume", message);
        }
        let claim = (pod.meta.namespace.clone(), Str::from(claim));
        bindings.push(VolumeBinding { claim, node: node.into(), volume });
    }
    bindings
}

fn claim_of(pod: &Pod, volume: &Volume) -> Option<Str> {
    match &volume.source {
        VolumeSource::PersistentVolumeClaim { claim, .. } => Some(claim.clone()),
        VolumeSource::Ephemeral => Some(ephemeral_claim(pod, &volume.name)),
        _ => None,
    }
}

fn not_taken(kind: &str) -> String {
    format!("this stream doesn't take objects of kind {kind:?}")
}
