//! How much a pod asks for (spec sections 2.3 to 2.5).
//!
//! The same pod asks for different amounts depending on who asks: the filter, the scorers and a node's books differ in
//! whether they look at resized status, at pod-level resources and at defaults for scoring. The named functions below are
//! the only combinations in use; each says which upstream caller it mirrors.

use smallvec::SmallVec;

use super::resources::{CPU, EPHEMERAL_STORAGE, MEMORY, ResourceClass};
use super::{Container, Pod, Quantity, ResourceList, Str};

/// What scoring assumes for a container that doesn't say: 0.1 core.
pub const DEFAULT_MILLI_CPU: i64 = 100;
/// What scoring assumes for a container that doesn't say: 200 MiB (not MB, whatever the folklore).
pub const DEFAULT_MEMORY: i64 = 200 * 1024 * 1024;

/// A pod's requests as the integers the scheduler compares: thousandths of cores, bytes, whole units.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Amounts {
    pub milli_cpu: i64,
    pub memory: i64,
    pub ephemeral_storage: i64,
    /// Extended and native scalars, sorted by name; an explicit zero is present.
    pub scalars: SmallVec<[(Str, i64); 2]>,
}

impl Amounts {
    /// Negative amounts count as none, untracked names are dropped.
    pub fn of(list: &ResourceList) -> Self {
        let mut amounts = Self::default();
        for (name, quantity) in list {
            let class = ResourceClass::of(name);
            let amount = class.amount(*quantity).max(0);
            match class {
                ResourceClass::Cpu => amounts.milli_cpu = amount,
                ResourceClass::Memory => amounts.memory = amount,
                ResourceClass::EphemeralStorage => amounts.ephemeral_storage = amount,
                ResourceClass::Extended | ResourceClass::NativeScalar => amounts.scalars.push((name.clone(), amount)),
                ResourceClass::Pods | ResourceClass::Ignored => {}
            }
        }
        amounts
    }

    /// The amount of a resource; 0 when it isn't asked for.
    pub fn get(&self, name: &str) -> i64 {
        match name {
            CPU => self.milli_cpu,
            MEMORY => self.memory,
            EPHEMERAL_STORAGE => self.ephemeral_storage,
            _ => self.scalars.iter().find(|(n, _)| &**n == name).map_or(0, |(_, amount)| *amount),
        }
    }
}

/// What the NodeResourcesFit filter compares for an incoming pod: spec only, pod-level resources included.
pub fn for_filter(pod: &Pod) -> Amounts {
    Amounts::of(&aggregate(pod, Options { use_status: false, pod_level: true, defaults: Defaults::NONE }))
}

/// What the descheduler counts for a pod: spec only, pod-level resources included, every name as it was asked for.
pub fn by_spec(pod: &Pod) -> ResourceList {
    aggregate(pod, Options { use_status: false, pod_level: true, defaults: Defaults::NONE })
}

/// What the NodeResourcesFit scorers add for an incoming pod: defaults filled in, pod-level resources not looked at (a
/// quirk of 1.36, see docs/differences.md).
pub fn for_fit_score(pod: &Pod) -> Amounts {
    Amounts::of(&aggregate(pod, Options { use_status: false, pod_level: false, defaults: Defaults::BOTH }))
}

/// What the NodeResourcesFit scorers would add if they looked at pod-level resources, as they do for bound pods.
pub fn for_fit_score_with_pod_level(pod: &Pod) -> Amounts {
    let options = Options { use_status: false, pod_level: true, defaults: Defaults::NONE };
    let defaults = absent_defaults(pod, options);
    Amounts::of(&aggregate(pod, Options { defaults, ..options }))
}

/// What a bound pod takes from its node, and what NodeResourcesBalancedAllocation adds for an incoming one.
pub fn in_force(pod: &Pod) -> Amounts {
    Amounts::of(&in_force_list(pod))
}

fn in_force_list(pod: &Pod) -> ResourceList {
    aggregate(pod, Options { use_status: true, pod_level: true, defaults: Defaults::NONE })
}

/// What a bound pod adds to its node's non-zero requests of cpu and memory, on which NodeResourcesFit scores.
pub fn non_zero_in_force(pod: &Pod) -> (i64, i64) {
    let options = Options { use_status: true, pod_level: true, defaults: Defaults::NONE };
    let defaults = absent_defaults(pod, options);
    let amounts = Amounts::of(&aggregate(pod, Options { defaults, ..options }));
    (amounts.milli_cpu, amounts.memory)
}

/// With pod-level requests, a default only for what is absent from the pod as a whole; else one for each container.
fn absent_defaults(pod: &Pod, options: Options) -> Defaults {
    if pod_level_requests(pod).is_none() {
        return Defaults::BOTH;
    }
    let real = aggregate(pod, options);
    Defaults { cpu: !real.contains_key(CPU), memory: !real.contains_key(MEMORY) }
}

#[derive(Clone, Copy)]
struct Defaults {
    cpu: bool,
    memory: bool,
}

impl Defaults {
    const NONE: Self = Self { cpu: false, memory: false };
    const BOTH: Self = Self { cpu: true, memory: true };
}

#[derive(Clone, Copy)]
struct Options {
    /// Take resized containers at what their status says is in force.
    use_status: bool,
    /// Let `spec.resources` replace the sum of the containers.
    pod_level: bool,
    defaults: Defaults,
}

fn aggregate(pod: &Pod, options: Options) -> ResourceList {
    let infeasible = options.use_status && pod.status.resize_infeasible();
    let mut total = containers(pod, infeasible, options);
    if options.pod_level
        && let Some(spec) = pod_level_requests(pod)
    {
        let in_force = pod_level_in_force(pod, spec, infeasible, options.use_status);
        for name in spec.keys().filter(|n| is_pod_level(n)) {
            total.insert(name.clone(), in_force.get(name).copied().unwrap_or_default());
        }
    }
    add(&mut total, &pod.spec.overhead);
    total
}

/// What the containers ask for together by their specs, without overhead and pod-level resources: what the API server takes
/// for absent pod-level requests.
pub fn of_containers(pod: &Pod) -> ResourceList {
    containers(pod, false, Options { use_status: false, pod_level: false, defaults: Defaults::NONE })
}

fn containers(pod: &Pod, infeasible: bool, options: Options) -> ResourceList {
    let mut total = ResourceList::new();
    for container in &pod.spec.containers {
        add(&mut total, &effective(pod, container, false, infeasible, options));
    }
    let mut sidecars = ResourceList::new();
    let mut init_peak = ResourceList::new();
    for container in &pod.spec.init_containers {
        let mut own = effective(pod, container, true, infeasible, options);
        if container.restart_always {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut init_peak, &sidecars);
        } else {
            add(&mut own, &sidecars);
            raise(&mut init_peak, &own);
        }
    }
    raise(&mut total, &init_peak);
    total
}

/// `spec.resources.requests`, if it names something that pod level supports.
fn pod_level_requests(pod: &Pod) -> Option<&ResourceList> {
    let requests = &pod.spec.resources.as_ref()?.requests;
    requests.keys().any(|n| is_pod_level(n)).then_some(requests)
}

/// The names that pod-level resources support.
pub fn is_pod_level(name: &str) -> bool {
    name == CPU || name == MEMORY || name.starts_with("hugepages-")
}

fn pod_level_in_force(pod: &Pod, spec: &ResourceList, infeasible: bool, use_status: bool) -> ResourceList {
    match &pod.status.resources {
        Some(actual) if use_status => {
            let mut list = if infeasible { ResourceList::new() } else { spec.clone() };
            raise(&mut list, actual);
            raise(&mut list, &pod.status.allocated_resources);
            list
        }
        _ => spec.clone(),
    }
}

fn effective(pod: &Pod, container: &Container, is_init: bool, infeasible: bool, options: Options) -> ResourceList {
    let spec = &container.resources.requests;
    let mut list = None;
    // An ordinary init container has ended by the time anything could resize it: spec only.
    if options.use_status && (!is_init || container.restart_always) {
        let statuses = if is_init { &pod.status.init_containers } else { &pod.status.containers };
        let status = statuses.iter().find(|s| s.name == container.name);
        if let Some((status, actual)) = status.and_then(|s| Some((s, s.requests.as_ref()?))) {
            let mut in_force = if infeasible { ResourceList::new() } else { spec.clone() };
            raise(&mut in_force, actual);
            raise(&mut in_force, &status.allocated);
            list = Some(in_force);
        }
    }
    let mut list = list.unwrap_or_else(|| spec.clone());
    if options.defaults.cpu {
        list.entry(CPU.into()).or_insert(Quantity::from_milli(DEFAULT_MILLI_CPU));
    }
    if options.defaults.memory {
        list.entry(MEMORY.into()).or_insert(Quantity::from_units(DEFAULT_MEMORY));
    }
    list
}

fn add(total: &mut ResourceList, more: &ResourceList) {
    for (name, quantity) in more {
        *total.entry(name.clone()).or_default() += *quantity;
    }
}

/// Per name the larger of both.
fn raise(list: &mut ResourceList, other: &ResourceList) {
    for (name, quantity) in other {
        let entry = list.entry(name.clone()).or_insert(*quantity);
        *entry = (*entry).max(*quantity);
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{container, pod};
    use super::*;

    #[test]
    fn an_init_container_stacks_on_the_sidecars_before_it() {
        let mut p = pod("a").no_containers().container(container("m1").cpu("1")).container(container("m2").cpu("1"));
        p = p.init(container("i1").cpu("2")).init(container("s").cpu("1").sidecar()).init(container("i2").cpu("2"));
        assert_eq!(for_filter(&p.build()).milli_cpu, 3000);
        let p = pod("b")
            .no_containers()
            .container(container("m").cpu("1"))
            .init(container("s").cpu("1").sidecar())
            .init(container("i").cpu("3"))
            .build();
        assert_eq!(for_filter(&p).milli_cpu, 4000);
    }

    #[test]
    fn overhead_is_added_after_the_maximum() {
        let p = pod("a")
            .no_containers()
            .container(container("m").cpu("1"))
            .init(container("i").cpu("3"))
            .overhead("cpu", "100m");
        assert_eq!(for_filter(&p.build()).milli_cpu, 3100);
    }

    #[test]
    fn pod_level_requests_replace_the_sum_for_the_filter_but_not_for_the_fit_score() {
        let p = pod("a").cpu("2").pod_level("cpu", "500m").build();
        assert_eq!(for_filter(&p).milli_cpu, 500);
        assert_eq!(in_force(&p).milli_cpu, 500);
        assert_eq!(for_fit_score(&p).milli_cpu, 2000);
    }

    #[test]
    fn defaults_fill_only_absent_requests_of_every_container() {
        let p = pod("a").no_containers().container(container("x").cpu("50m")).container(container("y")).build();
        let amounts = for_fit_score(&p);
        assert_eq!((amounts.milli_cpu, amounts.memory), (150, 2 * DEFAULT_MEMORY));
        let zero = pod("b").cpu("0").build();
        assert_eq!(for_fit_score(&zero).milli_cpu, 0);
        let with_init = pod("c").no_containers().init(container("i")).build();
        assert_eq!(for_fit_score(&with_init).milli_cpu, DEFAULT_MILLI_CPU);
    }

    #[test]
    fn a_wanted_resize_counts_until_it_is_infeasible() {
        let p = pod("a").cpu("4").container_in_force("cpu", "2", "2");
        assert_eq!(in_force(&p.clone().build()).milli_cpu, 4000);
        assert_eq!(for_filter(&p.clone().build()).milli_cpu, 4000);
        assert_eq!(in_force(&p.condition("PodResizePending", "True", "Infeasible").build()).milli_cpu, 2000);
    }

    #[test]
    fn non_zero_defaults_respect_pod_level_requests() {
        let p = pod("a").pod_level("cpu", "1").build();
        assert_eq!(non_zero_in_force(&p), (1000, DEFAULT_MEMORY));
        let p = pod("b").pod_level("cpu", "1").memory("1Gi").build();
        assert_eq!(non_zero_in_force(&p), (1000, 1 << 30));
        // One container names memory, so that the pod as a whole does: the other gets no default, as it would else.
        let two = || pod("c").memory("1Gi").container(container("d"));
        assert_eq!(non_zero_in_force(&two().pod_level("cpu", "1").build()), (1000, 1 << 30));
        assert_eq!(for_fit_score_with_pod_level(&two().pod_level("cpu", "1").build()).memory, 1 << 30);
        assert_eq!(non_zero_in_force(&two().build()).1, (1 << 30) + DEFAULT_MEMORY);
    }
}
