use super::*;
use crate::cluster::PodInfo;
use crate::engine::testing_views::view_of;
use crate::engine::{Detail, Options, decide};
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod, selector};
use crate::model::{Object, ObjectMeta, PodDisruptionBudget};

fn budget(name: &str, app: &str, allowed: i32) -> PodDisruptionBudget {
    PodDisruptionBudget {
        meta: ObjectMeta { namespace: "default".into(), name: name.into(), ..Default::default() },
        selector: selector(&[("app", app)]),
        disruptions_allowed: allowed,
        ..Default::default()
    }
}

/// A bound pod of one CPU that has run since then.
fn runs(name: &str, node: &str, priority: i32, since: i64) -> PodBuilder {
    pod(name).on(node).cpu("1").priority(priority).started(since)
}

struct Scene {
    nodes: Vec<NodeBuilder>,
    pods: Vec<PodBuilder>,
    budgets: Vec<PodDisruptionBudget>,
    nominated: Vec<(PodBuilder, &'static str)>,
}

/// Nodes n1, n2, ... with one CPU each.
fn scene(nodes: usize, pods: Vec<PodBuilder>) -> Scene {
    let nodes = (1..=nodes).map(|i| node(&format!("n{i}")).cpu("1")).collect();
    Scene { nodes, pods, budgets: Vec::new(), nominated: Vec::new() }
}

impl Scene {
    fn view(&self) -> View {
        let objects = self.budgets.iter().cloned().map(Object::from).collect();
        let mut view = view_of(self.nodes.clone(), self.pods.clone(), objects);
        for (pod, node) in &self.nominated {
            view.nominate(Arc::new(PodInfo::on(Arc::new(pod.clone().build()), (*node).into())));
        }
        view
    }

    fn preempt(&self, pod: PodBuilder) -> Preemption {
        let (view, pod, profile) = (self.view(), pod.build(), Profile::default());
        let (pod, cancel) = (IncomingPod::new(&pod), AtomicBool::new(false));
        let decision = decide(&view, &pod, &profile, &Options::default(), &cancel).unwrap();
        assert_eq!(decision.outcome, Outcome::Unschedulable);
        preempt(&view, &pod, &profile, &decision, &cancel).unwrap()
    }

    fn tail(&self, pod: PodBuilder) -> String {
        let (view, profile) = (self.view(), Profile::default());
        let built = pod.build();
        let (pod, cancel) = (IncomingPod::new(&built), AtomicBool::new(false));
        let decision = decide(&view, &pod, &profile, &Options::default(), &cancel).unwrap();
        preempt(&view, &pod, &profile, &decision, &cancel).unwrap().tail(&profile, &decision).unwrap_or_default()
    }

    /// Node and victims of the chosen candidate, and how many budgets that breaks.
    fn chosen(&self, pod: PodBuilder) -> Option<(String, Vec<String>, usize)> {
        match self.preempt(pod) {
            Preemption::Proposal(proposal) => {
                let chosen = proposal.chosen().unwrap();
                let victims = chosen.victims.iter().map(|v| v.pod.pod.meta.name.to_string()).collect();
                Some((chosen.node.to_string(), victims, chosen.budgets_broken()))
            }
            _ => None,
        }
    }

    fn node_chosen(&self, pod: PodBuilder) -> Option<String> {
        self.chosen(pod).map(|(node, ..)| node)
    }
}

fn incoming() -> PodBuilder {
    pod("in").cpu("1").priority(100)
}

#[test]
fn only_pods_of_strictly_lower_priority_leave() {
    let scene = scene(2, vec![runs("same", "n1", 100, 0), runs("lower", "n2", 99, 0)]);
    assert_eq!(scene.chosen(incoming()), Some(("n2".into(), vec!["lower".into()], 0)));
    let Preemption::NoCandidate { tried, nodes: 2 } = scene.preempt(pod("in").cpu("1").priority(99)) else {
        panic!("nobody is lower")
    };
    assert!(tried.iter().all(|(_, r)| r.reasons[0] == Reason::NoPreemptionVictims));
}

#[test]
fn as_many_as_possible_stay_the_most_important_first() {
    let mut scene = scene(1, vec![]);
    scene.nodes = vec![node("n1").cpu("3")];
    scene.pods = vec![runs("a", "n1", 5, 9), runs("b", "n1", 7, 9), runs("c", "n1", 5, 1)];
    let victims = |pod| scene.chosen(pod).unwrap().1;
    assert_eq!(victims(incoming()), ["a"], "of equal priority the younger leaves");
    assert_eq!(victims(incoming().cpu("2")), ["c", "a"], "and more important ones are named first");
}

#[test]
fn a_refusal_that_no_pod_can_lift_leaves_the_node_out() {
    let mut scene = scene(2, vec![runs("a", "n1", 0, 0), runs("b", "n2", 0, 0)]);
    scene.nodes[0] = node("n1").cpu("1").cordoned();
    assert_eq!(scene.node_chosen(incoming()), Some("n2".into()));
    scene.nodes[1] = node("n2").cpu("1").cordoned();
    assert_eq!(scene.node_chosen(incoming()), None);
}

#[test]
fn a_pod_that_needs_its_victim_beside_it_can_not_preempt_it() {
    let friend = runs("friend", "n1", 0, 0).label("app", "web");
    let scene = scene(1, vec![friend]);
    let pod = incoming().pod_affinity("kubernetes.io/hostname", selector(&[("app", "web")]));
    let Preemption::NoCandidate { tried, .. } = scene.preempt(pod) else { panic!("the victim is needed") };
    assert_eq!(tried[0].1.plugin, "InterPodAffinity");
}

#[test]
fn victims_are_of_one_node_though_the_conflict_is_of_a_zone() {
    let foe = |name: &str, on: &str| pod(name).on(on).label("app", "foe").priority(0);
    let mut scene = scene(2, vec![foe("a", "n1"), foe("b", "n2")]);
    scene.nodes = vec![node("n1").zone("z"), node("n2").zone("z")];
    let apart = |key| incoming().pod_anti_affinity(key, selector(&[("app", "foe")]));
    assert_eq!(scene.node_chosen(apart("topology.kubernetes.io/zone")), None);
    assert!(scene.node_chosen(apart("kubernetes.io/hostname")).is_some());
}

#[test]
fn never_and_victims_that_still_leave_make_a_pod_not_eligible() {
    let leaving = |reason: &str| {
        let scene = scene(1, vec![runs("a", "n1", 0, 0).terminating().condition("DisruptionTarget", "True", reason)]);
        scene.preempt(incoming().nominated("n1"))
    };
    let waits = Preemption::NotEligible(NotEligible::TerminatingOnNominatedNode);
    assert_eq!(leaving("PreemptionByScheduler"), waits);
    assert!(matches!(leaving("DeletionByTaintManager"), Preemption::Proposal(_)), "it leaves for another reason");
    let scene = scene(1, vec![runs("a", "n1", 0, 0)]);
    let never = incoming().with(|p| p.spec.preemption_policy = PreemptionPolicy::Never);
    assert_eq!(scene.preempt(never), Preemption::NotEligible(NotEligible::Never));
}

#[test]
fn a_nominated_node_that_nothing_can_mend_is_given_up() {
    let leaving = runs("a", "n1", 0, 0).terminating().condition("DisruptionTarget", "True", "PreemptionByScheduler");
    let mut scene = scene(2, vec![leaving, runs("b", "n2", 0, 0)]);
    scene.nodes[0] = node("n1").cpu("1").cordoned();
    assert_eq!(scene.node_chosen(incoming().nominated("n1")), Some("n2".into()));
}

#[test]
fn budgets_are_used_up_pod_by_pod_and_protect_first() {
    let web = |name: &str, on: &str, since| runs(name, on, 0, since).label("app", "web");
    let mut scene = scene(1, vec![web("a", "n1", 1), web("b", "n1", 2)]);
    scene.nodes = vec![node("n1").cpu("2")];
    scene.budgets = vec![budget("web", "web", 1)];
    // The second in importance is one too many, and so comes back first.
    assert_eq!(scene.chosen(incoming()), Some(("n1".into(), vec!["a".into()], 0)));
    assert_eq!(scene.chosen(incoming().cpu("2")), Some(("n1".into(), vec!["a".into(), "b".into()], 1)));
    scene.budgets[0].disrupted_pods = vec!["a".into()];
    assert_eq!(scene.chosen(incoming().cpu("2")).unwrap().2, 0, "what was granted already isn't counted again");
    scene.budgets = vec![PodDisruptionBudget { selector: selector(&[]), ..budget("all", "", 0) }];
    assert_eq!(scene.chosen(incoming().cpu("2")).unwrap().2, 0, "an empty selector protects nothing here");
}

#[test]
fn the_ranking_goes_criterion_by_criterion() {
    let mut budgets = scene(2, vec![runs("a", "n1", 0, 0).label("app", "web"), runs("b", "n2", 9, 0)]);
    budgets.budgets = vec![budget("web", "web", 0)];
    assert_eq!(budgets.node_chosen(incoming()), Some("n2".into()), "fewest broken budgets");
    let highest = scene(2, vec![runs("a", "n1", 8, 0), runs("b", "n2", 7, 0)]);
    assert_eq!(highest.node_chosen(incoming()), Some("n2".into()), "lowest of the highest priorities");
    let half = |name: &str, on: &str, priority| pod(name).on(on).cpu("500m").priority(priority).started(0);
    let sum = scene(2, vec![half("a", "n1", 7), half("b", "n1", 6), half("c", "n2", 7), half("d", "n2", 5)]);
    assert_eq!(sum.node_chosen(incoming()), Some("n2".into()), "lowest sum of priorities");
    let negative = scene(2, vec![half("a", "n1", -10), half("b", "n1", -10), runs("c", "n2", -10, 0)]);
    assert_eq!(negative.node_chosen(incoming()), Some("n2".into()), "fewer pods, also of negative priority");
    let late = scene(2, vec![runs("a", "n1", 0, 5), runs("b", "n2", 0, 6)]);
    assert_eq!(late.node_chosen(incoming()), Some("n2".into()), "latest start");
    let never = scene(2, vec![runs("a", "n1", 0, 5), pod("b").on("n2").cpu("1")]);
    assert_eq!(never.node_chosen(incoming()), Some("n2".into()), "one that has not started is later than all");
}

#[test]
fn equals_are_told_and_the_seed_decides_between_them() {
    let scene = scene(3, (1..=3).map(|i| runs(&format!("p{i}"), &format!("n{i}"), 0, 0)).collect());
    let Preemption::Proposal(proposal) = scene.preempt(incoming()) else { panic!("all three would do") };
    assert_eq!((proposal.candidates.len(), proposal.best), (3, vec![0, 1, 2]));
}

#[test]
fn nominated_pods_keep_their_room_against_equals_and_not_against_more_important_ones() {
    let mut scene = scene(1, vec![]);
    scene.nominated = vec![(pod("waits").cpu("1").priority(50), "n1")];
    let fits = |priority| {
        let (view, pod) = (scene.view(), pod("in").cpu("1").priority(priority).build());
        let options = Options { detail: Detail::Full, ..Options::default() };
        let cancel = AtomicBool::new(false);
        decide(&view, &IncomingPod::new(&pod), &Profile::default(), &options, &cancel).unwrap().node().is_some()
    };
    assert_eq!([fits(49), fits(50), fits(51)], [false, false, true]);
}

#[test]
fn a_nominated_node_is_taken_without_comparing_it() {
    let mut scene = scene(2, vec![]);
    scene.nodes = vec![node("n1").cpu("1"), node("n2").cpu("64")];
    let decision = |detail, pod: PodBuilder| {
        let (view, pod) = (scene.view(), pod.build());
        let options = Options { detail, ..Options::default() };
        decide(&view, &IncomingPod::new(&pod), &Profile::default(), &options, &AtomicBool::new(false)).unwrap()
    };
    for detail in [Detail::Choice, Detail::Full] {
        assert_eq!(&**decision(detail, incoming()).node().unwrap(), "n2", "by score");
        assert_eq!(&**decision(detail, incoming().nominated("n1")).node().unwrap(), "n1");
        assert_eq!(&**decision(detail, incoming().cpu("2").nominated("n1")).node().unwrap(), "n2", "it doesn't pass");
    }
}

#[test]
fn the_text_says_why_preemption_does_not_help() {
    let mut scene = scene(3, vec![runs("a", "n1", 100, 0), runs("b", "n2", 100, 0), runs("c", "n3", 0, 0)]);
    scene.nodes[2] = node("n3").cpu("1").cordoned();
    assert_eq!(
        scene.tail(incoming()),
        "no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, \
         2 No preemption victims found for incoming pod."
    );
    scene.nodes[2] = node("n3").cpu("1");
    assert_eq!(scene.tail(incoming()), "", "it helps");
}
