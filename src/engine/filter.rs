//! The filter phases: PreFilter once, then every node until its first refusal.
//!
//! A node with nominated pods of the incoming pod's priority or above is judged twice, with them and without them (spec
//! section 6.5); a feasible nominated node of the pod's own is taken without looking at others (6.2).

use std::collections::BTreeSet;
use std::sync::Arc;

use super::plugin::{Cycle, NodeFilter, PreFilter};
use super::profile::is_same;
use super::status::{Code, Reason, Rejection};
use super::{EngineError, check_cancelled};
use crate::cluster::{NodeRow, Ordinal, PodInfo, View};
use crate::model::Str;

pub(super) type Filters<'a> = Vec<Box<dyn NodeFilter + 'a>>;

/// What the filters left.
pub(super) struct Filtered<'v> {
    pub(super) nodes: usize,
    pub(super) evaluated: usize,
    pub(super) feasible: Vec<NodeRow<'v>>,
    /// The pod's nominated node, if it is feasible.
    pub(super) nominated: Option<NodeRow<'v>>,
    pub(super) rejected: Vec<(Ordinal, Rejection)>,
    pub(super) pre_filter: Option<Rejection>,
    pub(super) absent: Option<Rejection>,
    /// What judged the nodes, for questions about the chosen one.
    pub(super) filters: Filters<'v>,
}

/// The outcome of PreFilter.
pub(super) struct Prepared<'a> {
    pub(super) filters: Filters<'a>,
    pub(super) rejection: Option<Rejection>,
    /// The names that all narrowing plugins agree on, and those plugins.
    only: Option<(BTreeSet<Str>, Vec<&'static str>)>,
}

/// Runs PreFilter: the profile's plugins at that point first, in its order, then the filters that have none upstream.
///
/// A filter whose PreFilter isn't enabled is prepared all the same (upstream's would fail for want of its state), but can
/// then neither refuse the pod as a whole nor narrow the nodes; one that is enabled at PreFilter only does just that.
pub(super) fn prepare<'a>(cycle: &Cycle<'a>) -> Result<Prepared<'a>, EngineError> {
    let points = cycle.profile.points();
    let mut prepared = Prepared { filters: Vec::with_capacity(points.filters.len()), rejection: None, only: None };
    let mut of_pre_filters = Vec::with_capacity(points.pre_filters.len());
    for plugin in &points.pre_filters {
        let Some(filter) = plugin.filter() else { continue };
        let said = filter.prepare(cycle);
        check_cancelled(cycle.cancel, 0)?;
        let filter = match said {
            PreFilter::Skip => None,
            PreFilter::Error(error) => return Err(EngineError::PreFilter { plugin: plugin.name(), error }),
            PreFilter::Filter(filter) => Some(filter),
            PreFilter::Narrow(names, filter) => {
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
                Some(filter)
            }
            PreFilter::Reject(rejection) => {
                // An unresolvable refusal ends the phase; a resolvable one is remembered while the others still run.
                let ends = rejection.code == Code::UnschedulableAndUnresolvable;
                if ends || prepared.rejection.is_none() {
                    prepared.rejection = Some(rejection);
                }
                if ends {
                    return Ok(prepared);
                }
                None
            }
        };
        of_pre_filters.push((plugin, filter));
    }
    for plugin in &points.filters {
        if let Some((_, filter)) = of_pre_filters.iter_mut().find(|(other, _)| is_same(other, plugin)) {
            prepared.filters.extend(filter.take());
            continue;
        }
        let Some(filter) = plugin.filter() else { continue };
        let said = filter.prepare(cycle);
        check_cancelled(cycle.cancel, 0)?;
        match said {
            PreFilter::Skip => {}
            PreFilter::Error(error) => return Err(EngineError::PreFilter { plugin: plugin.name(), error }),
            PreFilter::Filter(filter) | PreFilter::Narrow(_, filter) => prepared.filters.push(filter),
            PreFilter::Reject(rejection) => prepared.filters.push(Box::new(RejectAll(rejection))),
        }
    }
    Ok(prepared)
}

/// A refusal of the whole pod by a plugin that may only refuse node by node.
struct RejectAll(Rejection);

impl NodeFilter for RejectAll {
    fn check(&self, _node: &NodeRow<'_>) -> Result<(), Rejection> {
        Err(self.0.clone())
    }
}

/// Judges the nodes of a view that can change: the incoming pod's filters, and a fork in which pods come and go.
pub(super) struct Judge<'c, 'a> {
    cycle: &'c Cycle<'a>,
    /// Made when the first pod comes or goes.
    fork: Option<View>,
}

impl<'c, 'a> Judge<'c, 'a> {
    pub(super) fn new(cycle: &'c Cycle<'a>) -> Self {
        Self { cycle, fork: None }
    }

    pub(super) fn node(&self, ordinal: Ordinal) -> Option<NodeRow<'_>> {
        self.fork.as_ref().unwrap_or(self.cycle.view).node(ordinal)
    }

    pub(super) fn add(&mut self, filters: &mut Filters<'_>, pod: &Arc<PodInfo>) {
        let fork = self.fork.get_or_insert_with(|| self.cycle.view.clone());
        if fork.add_pod(pod.clone())
            && let Some(row) = fork.node_named(&pod.node)
        {
            filters.iter_mut().for_each(|filter| filter.pod_added(&row, pod));
        }
    }

    pub(super) fn remove(&mut self, filters: &mut Filters<'_>, pod: &Arc<PodInfo>) {
        let fork = self.fork.get_or_insert_with(|| self.cycle.view.clone());
        if fork.remove_pod(&pod.pod.meta.uid).is_some()
            && let Some(row) = fork.node_named(&pod.node)
        {
            filters.iter_mut().for_each(|filter| filter.pod_removed(&row, pod));
        }
    }

    /// Whether the incoming pod passes on a node as it now is, and also with the pods that are nominated there.
    pub(super) fn check(&mut self, filters: &mut Filters<'_>, ordinal: Ordinal) -> Result<(), Rejection> {
        let Some(row) = self.node(ordinal) else { return Ok(()) };
        let nominated = nominated_before(self.cycle, &row);
        if !nominated.is_empty() {
            let cancel = self.cycle.cancel;
            cancel.guard(&nominated).for_each(|pod| self.add(filters, pod));
            let with_them = self.check_as_it_is(filters, ordinal);
            cancel.guard(nominated.iter().rev()).for_each(|pod| self.remove(filters, pod));
            with_them?;
        }
        self.check_as_it_is(filters, ordinal)
    }

    fn check_as_it_is(&self, filters: &Filters<'_>, ordinal: Ordinal) -> Result<(), Rejection> {
        let Some(row) = self.node(ordinal) else { return Ok(()) };
        if !self.cycle.profile.checks_all() {
            return filters.iter().try_for_each(|filter| filter.check(&row));
        }
        let refusals = filters.iter().filter_map(|filter| filter.check(&row).err());
        match refusals.reduce(Rejection::and) {
            None => Ok(()),
            Some(all) => Err(all),
        }
    }
}

/// The pods nominated to a node that the incoming pod must leave room for: all but those of lower priority and itself.
fn nominated_before(cycle: &Cycle<'_>, node: &NodeRow<'_>) -> Vec<Arc<PodInfo>> {
    let incoming = cycle.pod.pod;
    let others = cycle.view.nominations().on(node.name()).iter();
    let comes_first = |p: &&Arc<PodInfo>| {
        p.pod.priority() >= incoming.priority()
            && p.pod.meta.uid != incoming.meta.uid
            && cycle.view.pod(&p.pod.meta.uid).is_none()
    };
    others.filter(comes_first).cloned().collect()
}

/// The node that is nominated for the incoming pod: by its status, else in the view.
pub(super) fn nominated_node<'a>(cycle: &Cycle<'a>) -> Option<NodeRow<'a>> {
    let of_status = &cycle.pod.pod.status.nominated_node;
    let name = match of_status.is_empty() {
        true => cycle.view.nominations().of(&cycle.pod.pod.meta.uid)?,
        false => of_status,
    };
    cycle.view.node_named(name)
}

/// Filters the nodes. Refusals are worked out if `explain` says so or if no node passes; a placed pod's caller asks for
/// none, and making thousands of them would cost more than the filters themselves.
pub(super) fn run<'a>(
    cycle: &Cycle<'a>,
    candidates: Option<&[Ordinal]>,
    explain: bool,
) -> Result<Filtered<'a>, EngineError> {
    let nodes = candidates.map_or(cycle.view.node_count(), <[Ordinal]>::len);
    let Prepared { mut filters, rejection, only } = prepare(cycle)?;
    let mut filtered = Filtered {
        nodes,
        evaluated: 0,
        feasible: Vec::new(),
        nominated: None,
        rejected: Vec::new(),
        pre_filter: rejection,
        absent: None,
        filters: Vec::new(),
    };
    if filtered.pre_filter.is_some() {
        return Ok(filtered);
    }
    let mut judge = Judge::new(cycle);
    let no_nominations = cycle.view.nominations().is_empty();
    if let Some(node) = nominated_node(cycle)
        && candidates.is_none_or(|list| list.contains(&node.ordinal()))
        && judge.check(&mut filters, node.ordinal()).is_ok()
    {
        check_cancelled(cycle.cancel, 1)?;
        filtered.nominated = Some(node);
        if !explain {
            filtered.evaluated = 1;
            filtered.feasible.push(node);
            filtered.filters = filters;
            return Ok(filtered);
        }
    }
    if !explain {
        filtered.evaluated = visit(cycle, only.as_ref(), candidates, |node| {
            let passes = match no_nominations || nominated_before(cycle, &node).is_empty() {
                true => filters.iter().all(|filter| filter.passes(&node)),
                false => judge.check(&mut filters, node.ordinal()).is_ok(),
            };
            if passes {
                filtered.feasible.push(node);
            }
        })?;
    }
    if filtered.feasible.is_empty() {
        filtered.evaluated =
            visit(cycle, only.as_ref(), candidates, |node| match judge.check(&mut filters, node.ordinal()) {
                Ok(()) => filtered.feasible.push(node),
                Err(rejection) => filtered.rejected.push((node.ordinal(), rejection)),
            })?;
    }
    if let Some((_, plugins)) = only {
        let narrowing = plugins.first().copied().unwrap_or_default();
        filtered.absent = Some(Rejection::unresolvable(narrowing, Reason::NotAmongNodesOf(plugins)));
    }
    filtered.filters = filters;
    Ok(filtered)
}

/// Shows every node that comes into question to `judge`; how many there were.
fn visit<'a>(
    cycle: &Cycle<'a>,
    only: Option<&(BTreeSet<Str>, Vec<&'static str>)>,
    candidates: Option<&[Ordinal]>,
    mut judge: impl FnMut(NodeRow<'a>),
) -> Result<usize, EngineError> {
    let mut seen = 0;
    let mut each = |node: NodeRow<'a>| {
        seen += 1;
        judge(node);
        check_cancelled(cycle.cancel, seen)
    };
    match (only, candidates) {
        (None, None) => cycle.view.nodes().try_for_each(&mut each)?,
        (None, Some(list)) => list.iter().filter_map(|o| cycle.view.node(*o)).try_for_each(&mut each)?,
        (Some((names, _)), _) => {
            let wanted = candidates.map(|list| list.iter().copied().collect::<BTreeSet<Ordinal>>());
            let rows = cycle.cancel.guard(names).filter_map(|name| cycle.view.node_named(name));
            rows.filter(|row| wanted.as_ref().is_none_or(|w| w.contains(&row.ordinal()))).try_for_each(&mut each)?;
            check_cancelled(cycle.cancel, seen)?;
        }
    }
    Ok(seen)
}
