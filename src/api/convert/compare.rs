//! Truths in, differences out.

use std::cmp::Ordering;

use prost::Message;

use super::feed::{rejection, remark};
use super::object::{any_typed, structure, typed};
use crate::api::pb;
use crate::api::pb::true_object::Form;
use crate::service::compare::{Comparison, Difference, DifferenceType, FieldDifference, KindCounts};
use crate::service::feed::Ack;
use crate::service::source::Source;

/// Bytes of differences in an answer, which must stay below 4 MiB; a single one has at most some 300 KiB.
const MAX_PAGE_BYTES: usize = 3 << 20;

pub(in crate::api) fn source(object: pb::TrueObject) -> Source {
    match object.form {
        None => Source::Absent,
        Some(Form::Node(node)) => typed("v1", "Node", &node),
        Some(Form::Pod(pod)) => typed("v1", "Pod", &pod),
        Some(Form::Object(object)) => any_typed(object),
        Some(Form::Manifest(manifest)) => structure(manifest),
        Some(Form::ManifestJson(json)) => Source::Json(json),
    }
}

/// The answers of a comparison: pages, then the summary.
pub(in crate::api) fn answers(comparison: Comparison, remarks: Ack) -> impl Iterator<Item = pb::CompareResponse> {
    let Comparison { differences, kinds, revision, incarnation } = comparison;
    let kinds = kinds.into_iter().map(|(kind, counts)| kind_counts(kind.as_str(), counts));
    let summary = pb::CompareSummary {
        revision,
        incarnation: incarnation.to_string(),
        kinds: kinds.collect(),
        differences: differences.len() as u64,
        rejections: remarks.rejections.into_iter().map(rejection).collect(),
        warnings: remarks.warnings.into_iter().map(remark).collect(),
        omitted: remarks.omitted,
    };
    let mut rest = differences.into_iter().map(difference).peekable();
    let pages = std::iter::from_fn(move || {
        let mut bytes = 0;
        let mut page = Vec::new();
        while let Some(next) = rest.next_if(|next| {
            // One always goes. 8: tag and length.
            bytes += next.encoded_len() + 8;
            bytes <= MAX_PAGE_BYTES || page.is_empty()
        }) {
            page.push(next);
        }
        (!page.is_empty()).then_some(pb::CompareResponse { differences: page, summary: None })
    });
    pages.chain([pb::CompareResponse { differences: Vec::new(), summary: Some(summary) }])
}

fn kind_counts(kind: &str, counts: KindCounts) -> pb::KindComparison {
    pb::KindComparison {
        kind: kind.to_owned(),
        truth: counts.truth as u64,
        cache: counts.cache as u64,
        same: counts.same as u64,
        other_version: counts.other_version as u64,
        missing: counts.missing as u64,
        extra: counts.extra as u64,
        replaced: counts.replaced as u64,
        different: counts.different as u64,
        covered: counts.covered,
    }
}

fn difference(difference: Difference) -> pb::Difference {
    let version_order = match difference.cache_is() {
        None => pb::VersionOrder::Unspecified,
        Some(Ordering::Equal) => pb::VersionOrder::Same,
        Some(Ordering::Less) => pb::VersionOrder::CacheOlder,
        Some(Ordering::Greater) => pb::VersionOrder::CacheNewer,
    };
    let kind = match difference.kind {
        DifferenceType::MissingInCache => pb::DifferenceType::MissingInCache,
        DifferenceType::ExtraInCache => pb::DifferenceType::ExtraInCache,
        DifferenceType::Replaced => pb::DifferenceType::Replaced,
        DifferenceType::Different => pb::DifferenceType::Different,
        DifferenceType::Orphaned => pb::DifferenceType::Orphaned,
        DifferenceType::RoomMisplaced => pb::DifferenceType::RoomMisplaced,
        DifferenceType::StaleReservation => pb::DifferenceType::StaleReservation,
        DifferenceType::ViewMismatch => pb::DifferenceType::ViewMismatch,
    };
    let field = |FieldDifference { path, truth, cache }| pb::FieldDifference { field: path, truth, cache };
    pb::Difference {
        r#type: kind.into(),
        object: difference.object.map(|object| pb::ObjectRef {
            kind: object.kind.as_str().to_owned(),
            namespace: object.namespace.to_string(),
            name: object.name.to_string(),
            uid: object.uid.to_string(),
        }),
        fields: difference.fields.into_iter().map(field).collect(),
        fields_omitted: super::count(difference.fields_omitted),
        cache_uid: difference.cache_uid.to_string(),
        truth_version: difference.truth_version.to_string(),
        cache_version: difference.cache_version.to_string(),
        version_order: version_order.into(),
        message: difference.message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Str;

    fn comparison(differences: usize, message: usize) -> Comparison {
        let one = Difference {
            kind: DifferenceType::ViewMismatch,
            object: None,
            fields: Vec::new(),
            fields_omitted: 0,
            cache_uid: Str::default(),
            truth_version: Str::default(),
            cache_version: Str::default(),
            message: "x".repeat(message),
        };
        Comparison {
            differences: vec![one; differences],
            kinds: Default::default(),
            revision: 7,
            incarnation: Str::default(),
        }
    }

    #[test]
    fn pages_stay_small_lose_nothing_and_the_summary_comes_last() {
        let pages: Vec<_> = answers(comparison(10_000, 1_000), Ack::default()).collect();
        assert!(pages.len() > 3 && pages.iter().all(|page| page.encoded_len() < 4 << 20));
        assert_eq!(pages.iter().map(|page| page.differences.len()).sum::<usize>(), 10_000);
        let summaries: Vec<usize> = (0..pages.len()).filter(|i| pages[*i].summary.is_some()).collect();
        assert_eq!(summaries, [pages.len() - 1]);
        assert_eq!(pages.last().unwrap().summary.as_ref().unwrap().differences, 10_000);
    }

    #[test]
    fn no_difference_is_a_summary_alone() {
        assert_eq!(answers(comparison(0, 0), Ack::default()).count(), 1);
    }
}
