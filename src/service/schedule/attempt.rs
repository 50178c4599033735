//! What a request asks, checked and complete: made without the writer, whatever the pod's size.

use std::sync::Arc;
use std::time::Instant;

use super::messages::Request;
use super::preempt::DEFAULT_NOMINATION_SECS;
use super::{DEFAULT_TTL_SECS, check_ttl};
use crate::cluster::reservation::{Basis, Reservation};
use crate::engine::overrides::Mistake;
use crate::engine::{Override, Profile};
use crate::manifest::{self, Warning};
use crate::model::{Pod, Str};
use crate::service::explain::DetailLevel;
use crate::service::holds::Taker;
use crate::service::profiles::Profiles;
use crate::service::{FieldError, Service, ServiceError};

/// One request on its way.
#[derive(Debug)]
pub struct Attempt {
    pub(super) pod: Arc<Pod>,
    pub(super) profile: Arc<Profile>,
    /// Those in force when it began.
    pub(super) profiles: Arc<Profiles>,
    /// What the request changed of the profile; empty: nothing.
    pub(super) overrides: Str,
    /// The only nodes that come into question, sorted; empty: all.
    pub(super) candidates: Vec<Str>,
    pub(super) warnings: Vec<Warning>,
    pub(super) detail: DetailLevel,
    pub(super) dry_run: bool,
    pub(super) nominate: bool,
    pub(super) ttl_micros: i64,
    pub(super) nomination_ttl_micros: i64,
    pub(super) incarnation: String,
    pub(super) min_revision: Option<u64>,
    /// If its controller has holds.
    pub(super) taker: Option<Taker>,
    pub(super) begun: Instant,
}

impl Attempt {
    /// # Errors
    /// All mistakes of the request at once; a profile that isn't known.
    pub(super) fn new(service: &Service, request: Request) -> Result<Self, ServiceError> {
        let begun = Instant::now();
        let profiles = service.profiles();
        let profile = profiles.get(request.profile.as_deref().unwrap_or(&request.pod.spec.scheduler_name))?;
        let profile = overridden(profile, &request.overrides)?;
        let Request { mut pod, mut warnings, dry_run, .. } = request;
        manifest::apply_classes(&mut pod, &service.cluster, &mut warnings);
        let ttl_micros = request.ttl_micros.unwrap_or(DEFAULT_TTL_SECS * 1_000_000);
        let nomination_ttl_micros = request.nomination_ttl_micros.unwrap_or(DEFAULT_NOMINATION_SECS * 1_000_000);
        let mut wrong = Vec::new();
        for (path, micros) in [("reservation_ttl", ttl_micros), ("nomination_ttl", nomination_ttl_micros)] {
            if let Err(message) = check_ttl(micros) {
                wrong.push(FieldError { path: path.to_owned(), message });
            }
        }
        if request.nominate && dry_run {
            let message = "a dry run records nothing; leave one of both out".to_owned();
            wrong.push(FieldError { path: "nominate".to_owned(), message });
        }
        if !wrong.is_empty() {
            return Err(ServiceError::Invalid(wrong));
        }
        let mut candidates = request.candidates;
        candidates.sort();
        candidates.dedup();
        Ok(Self {
            taker: service.taker(&pod),
            pod: Arc::new(pod),
            profile,
            profiles,
            overrides: request.overrides.key(),
            candidates: candidates.into_iter().map(Str::from).collect(),
            warnings,
            detail: request.detail,
            dry_run,
            nominate: request.nominate,
            ttl_micros,
            nomination_ttl_micros,
            incarnation: request.incarnation,
            min_revision: request.min_revision,
            begun,
        })
    }

    /// Whether an earlier reservation of the pod was made for the same question.
    pub(super) fn asks_the_same(&self, earlier: &Reservation) -> bool {
        let (old, new) = (&earlier.pod.pod, &self.pod);
        let same_basis = match &earlier.basis {
            Basis::Decided { profile, overrides, candidates } => {
                *profile == *self.profile.name() && *overrides == self.overrides && *candidates == self.candidates
            }
            Basis::Assumed => self.candidates.is_empty() && self.overrides.is_empty(),
            // Of a placeholder, which nobody asks for.
            Basis::Held { .. } => false,
        };
        same_basis && old.spec == new.spec && old.meta.labels == new.meta.labels
    }
}

/// The profile as the request wants it.
fn overridden(profile: Arc<Profile>, overrides: &Override) -> Result<Arc<Profile>, ServiceError> {
    if overrides.is_empty() {
        return Ok(profile);
    }
    let in_request = |(path, message): Mistake| FieldError { path: format!("override.{path}"), message };
    let changed = overrides.apply(&profile);
    changed.map(Arc::new).map_err(|mistakes| ServiceError::Invalid(mistakes.into_iter().map(in_request).collect()))
}
