//! The filter phases: PreFilter once, then every node until its first refusal.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

use super::plugin::{Cycle, NodeFilter, PreFilter};
use super::status::{Reason, Rejection};
use super::{EngineError, check_cancelled};
use crate::cluster::{NodeRow, Ordinal};
use crate::model::Str;

/// What the filters left.
pub(super) struct Filtered<'v> {
    pub(super) nodes: usize,
    pub(super) evaluated: usize,
    pub(super) feasible: Vec<NodeRow<'v>>,
    pub(super) rejected: Vec<(Ordinal, Rejection)>,
    pub(super) pre_filter: Option<Rejection>,
    pub(super) absent: Option<Rejection>,
    /// What judged the nodes, for questions about the chosen one.
    pub(super) filters: Vec<Box<dyn NodeFilter + 'v>>,
}

/// The outcome of PreFilter.
struct Prepared<'a> {
    filters: Vec<Box<dyn NodeFilter + 'a>>,
    rejection: Option<Rejection>,
    /// The names that all narrowing plugins agree on, and those plugins.
    only: Option<(BTreeSet<Str>, Vec<&'static str>)>,
}

fn prepare<'a>(cycle: &Cycle<'a>) -> Result<Prepared<'a>, EngineError> {
    let mut prepared = Prepared { filters: Vec::new(), rejection: None, only: None };
    for plugin in cycle.profile.filters() {
        let Some(filter) = plugin.filter() else { continue };
        match filter.prepare(cycle) {
            PreFilter::Skip => {}
            PreFilter::Error(error) => return Err(EngineError::PreFilter { plugin: plugin.name(), error }),
            PreFilter::Filter(filter) => prepared.filters.push(filter),
            PreFilter::Narrow(names, filter) => {
                prepared.filters.push(filter);
                let names: BTreeSet<Str> = names.into_iter().collect();
                let (left, mut plugins) = match prepared.only.take() {
                    None => (names, Vec::new()),
                    Some((before, plugins)) => (before.intersection(&names).cloned().collect(), plugins),
                };
                plugins.push(plugin.name());
                plugins.sort_unstable();
                if left.is_empty() {
                    prepared.rejection = Some(Rejection::unresolvable(plugin.name(), Reason::NoNodeOf(plugins)));
                    return Ok(prepared);
                }
                prepared.only = Some((left, plugins));
            }
            PreFilter::Reject(rejection) => {
                // An unresolvable refusal ends the phase; a resolvable one is remembered while the others still run.
                let ends = rejection.code == super::Code::UnschedulableAndUnresolvable;
                if ends || prepared.rejection.is_none() {
                    prepared.rejection = Some(rejection);
                }
                if ends {
                    return Ok(prepared);
                }
            }
        }
    }
    Ok(prepared)
}

/// Filters the nodes. Refusals are worked out if `explain` says so or if no node passes; a placed pod's caller asks for
/// none, and making thousands of them would cost more than the filters themselves.
pub(super) fn run<'a>(
    cycle: &Cycle<'a>,
    candidates: Option<&[Ordinal]>,
    explain: bool,
    cancel: &AtomicBool,
) -> Result<Filtered<'a>, EngineError> {
    let nodes = candidates.map_or(cycle.view.node_count(), <[Ordinal]>::len);
    let prepared = prepare(cycle)?;
    let mut filtered = Filtered {
        nodes,
        evaluated: 0,
        feasible: Vec::new(),
        rejected: Vec::new(),
        pre_filter: prepared.rejection.clone(),
        absent: None,
        filters: Vec::new(),
    };
    if filtered.pre_filter.is_some() {
        return Ok(filtered);
    }
    if !explain {
        filtered.evaluated = visit(cycle, &prepared, candidates, cancel, |node| {
            if prepared.filters.iter().all(|filter| filter.passes(&node)) {
                filtered.feasible.push(node);
            }
        })?;
    }
    if filtered.feasible.is_empty() {
        filtered.evaluated = visit(cycle, &prepared, candidates, cancel, |node| {
            match prepared.filters.iter().try_for_each(|filter| filter.check(&node)) {
                Ok(()) => filtered.feasible.push(node),
                Err(rejection) => filtered.rejected.push((node.ordinal(), rejection)),
            }
        })?;
    }
    if let Some((_, plugins)) = &prepared.only {
        let narrowing = plugins.first().copied().unwrap_or_default();
        filtered.absent = Some(Rejection::unresolvable(narrowing, Reason::NotAmongNodesOf(plugins.clone())));
    }
    filtered.filters = prepared.filters;
    Ok(filtered)
}

/// Shows every node that comes into question to `judge`; how many there were.
fn visit<'a>(
    cycle: &Cycle<'a>,
    prepared: &Prepared<'a>,
    candidates: Option<&[Ordinal]>,
    cancel: &AtomicBool,
    mut judge: impl FnMut(NodeRow<'a>),
) -> Result<usize, EngineError> {
    let mut seen = 0;
    let mut each = |node: NodeRow<'a>| {
        check_cancelled(cancel, seen)?;
        seen += 1;
        judge(node);
        Ok(())
    };
    match (&prepared.only, candidates) {
        (None, None) => cycle.view.nodes().try_for_each(&mut each)?,
        (None, Some(list)) => list.iter().filter_map(|o| cycle.view.node(*o)).try_for_each(&mut each)?,
        (Some((names, _)), _) => {
            let rows = names.iter().filter_map(|name| cycle.view.node_named(name));
            rows.filter(|row| candidates.is_none_or(|c| c.contains(&row.ordinal()))).try_for_each(&mut each)?;
        }
    }
    Ok(seen)
}
