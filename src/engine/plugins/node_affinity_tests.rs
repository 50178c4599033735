use super::*;
use crate::engine::testing::{Verdict, only, scene};
use crate::engine::{Code, Outcome};
use crate::model::NodeSelectorTerm;
use crate::model::node_selector::NodeRequirement;
use crate::model::testing::{NodeBuilder, PodBuilder, node, pod};

const REFUSAL: &str = "NodeAffinity UU: node(s) didn't match Pod's node affinity/selector";

fn requirement(key: &str, op: NodeOperator) -> NodeRequirement {
    NodeRequirement { key: key.into(), op }
}

fn term(key: &str, op: NodeOperator) -> NodeSelectorTerm {
    NodeSelectorTerm { expressions: vec![requirement(key, op)], fields: vec![] }
}

fn named(op: NodeOperator) -> NodeSelectorTerm {
    NodeSelectorTerm { expressions: vec![], fields: vec![requirement(NODE_NAME_FIELD, op)] }
}

fn values(list: &[&str]) -> Vec<Str> {
    list.iter().map(|v| Str::from(*v)).collect()
}

/// Nodes a (disk=ssd, gen=7), b (disk=hdd, gen=x) and c without either label.
fn nodes() -> [NodeBuilder; 3] {
    [node("a").label("disk", "ssd").label("gen", "7"), node("b").label("disk", "hdd").label("gen", "x"), node("c")]
}

fn decide(p: PodBuilder) -> Verdict {
    scene(nodes(), []).decide(p)
}

#[test]
fn expressions_match_as_the_table_says() {
    use NodeOperator::{DoesNotExist, Exists, Gt, In, Lt, NotIn};
    let disk = |op| term("disk", op);
    let generation = |op| term("gen", op);
    for (t, expected) in [
        (disk(In(values(&["ssd", "nvme"]))), vec!["a"]),
        (disk(NotIn(values(&["ssd"]))), vec!["b", "c"]),
        (disk(Exists), vec!["a", "b"]),
        (disk(DoesNotExist), vec!["c"]),
        (generation(Gt(6)), vec!["a"]),
        (generation(Gt(7)), vec![]),
        (generation(Lt(8)), vec!["a"]),
        (generation(Lt(-1)), vec![]),
    ] {
        let v = decide(pod("p").required_node_terms(vec![t.clone()]));
        assert_eq!(v.feasible(), expected, "{t:?}");
    }
}

#[test]
fn no_required_affinity_matches_all_nodes_and_an_empty_list_none() {
    assert_eq!(decide(pod("p")).feasible(), ["a", "b", "c"]);
    let v = decide(pod("p").required_node_terms(vec![]));
    assert!(v.feasible().is_empty());
    assert_eq!(v.refusal("a"), REFUSAL);
}

#[test]
fn an_empty_term_matches_no_node() {
    let empty = NodeSelectorTerm::default;
    assert!(decide(pod("p").required_node_terms(vec![empty()])).feasible().is_empty());
    let second = vec![empty(), term("disk", NodeOperator::Exists)];
    assert_eq!(decide(pod("p").required_node_terms(second)).feasible(), ["a", "b"]);
    // Also as a preference.
    let v = decide(pod("p").preferred_node_term(50, empty()));
    assert_eq!((v.score(NAME, "a"), v.score(NAME, "c")), (0, 0));
}

#[test]
fn an_unparsable_term_does_not_spoil_the_others() {
    let invalid = term("disk", NodeOperator::Invalid);
    let v = decide(pod("p").required_node_terms(vec![invalid.clone(), term("disk", NodeOperator::Exists)]));
    assert_eq!(v.feasible(), ["a", "b"]);
    assert!(decide(pod("p").required_node_terms(vec![invalid])).feasible().is_empty());
}

#[test]
fn all_expressions_of_a_term_and_the_node_selector_must_hold() {
    let both = NodeSelectorTerm {
        expressions: vec![requirement("disk", NodeOperator::Exists), requirement("gen", NodeOperator::Gt(1))],
        fields: vec![],
    };
    assert_eq!(decide(pod("p").required_node_terms(vec![both])).feasible(), ["a"]);
    let p = || pod("p").node_selector("disk", "hdd");
    assert_eq!(decide(p()).feasible(), ["b"]);
    assert!(decide(p().required_node_terms(vec![term("gen", NodeOperator::Gt(1))])).feasible().is_empty());
    assert!(decide(pod("p").node_selector("absent", "")).feasible().is_empty());
    assert_eq!(decide(pod("p").with(|p| p.spec.node_selector = Some(Default::default()))).feasible().len(), 3);
}

// --- names ---

#[test]
fn named_nodes_alone_are_looked_at() {
    let v = decide(pod("p").required_node_terms(vec![
        named(NodeOperator::In(values(&["a"]))),
        named(NodeOperator::In(values(&["gone"]))),
    ]));
    assert_eq!((v.feasible(), v.decision.evaluated), (vec!["a"], 1));
    let absent = v.decision.absent.unwrap();
    assert_eq!(
        (absent.code, absent.message().as_str()),
        (Code::UnschedulableAndUnresolvable, "node(s) didn't satisfy plugin(s) [NodeAffinity]")
    );
}

#[test]
fn a_term_without_a_name_widens_the_look_to_all_nodes() {
    let v =
        decide(pod("p").required_node_terms(vec![
            named(NodeOperator::In(values(&["a"]))),
            term("disk", NodeOperator::DoesNotExist),
        ]));
    assert_eq!((v.feasible(), v.decision.evaluated), (vec!["a", "c"], 3));
    let v = decide(pod("p").required_node_terms(vec![named(NodeOperator::NotIn(values(&["a"])))]));
    assert_eq!((v.feasible(), v.decision.evaluated), (vec!["b", "c"], 3));
}

#[test]
fn a_name_with_further_requirements_needs_them_too() {
    let mut t = named(NodeOperator::In(values(&["a"])));
    t.expressions.push(requirement("disk", NodeOperator::In(values(&["hdd"]))));
    let v = decide(pod("p").required_node_terms(vec![t]));
    assert_eq!((v.refusal("a").as_str(), v.decision.evaluated), (REFUSAL, 1));
}

#[test]
fn a_field_with_two_names_never_matches() {
    let v = decide(pod("p").required_node_terms(vec![named(NodeOperator::In(values(&["a", "b"])))]));
    assert!(v.feasible().is_empty());
    assert_eq!((v.refusal("a").as_str(), v.decision.evaluated), (REFUSAL, 2));
}

#[test]
fn contradictory_names_refuse_the_pod_before_any_node() {
    let contradictory = NodeSelectorTerm {
        expressions: vec![],
        fields: ["a", "b"].map(|n| requirement(NODE_NAME_FIELD, NodeOperator::In(values(&[n])))).to_vec(),
    };
    let v = decide(pod("p").required_node_terms(vec![contradictory]));
    assert_eq!((&v.decision.outcome, v.decision.evaluated), (&Outcome::Unschedulable, 0));
    let rejection = v.decision.pre_filter.unwrap();
    assert_eq!(
        (rejection.code, rejection.message().as_str()),
        (Code::UnschedulableAndUnresolvable, "pod affinity terms conflict")
    );
}

// --- the profile's addedAffinity, and preferences ---

#[test]
fn affinity_of_the_profile_is_checked_first() {
    let added = NodeAffinity {
        required: Some(NodeSelector { terms: vec![term("disk", NodeOperator::Exists)] }),
        preferred: None,
    };
    let s = scene(nodes(), []).profile(only(NodeAffinityPlugin { added: Some(added) }));
    let v = s.decide(pod("p").node_selector("disk", "ssd"));
    assert_eq!((v.feasible(), v.refusal("b").as_str()), (vec!["a"], REFUSAL));
    assert_eq!(v.refusal("c"), "NodeAffinity UU: node(s) didn't match scheduler-enforced node affinity");
    assert_eq!(s.decide(pod("p")).feasible(), ["a", "b"]);
}

#[test]
fn weights_of_matching_preferences_add_up_and_the_best_node_gets_100() {
    let p = pod("p")
        .preferred_node_term(30, term("disk", NodeOperator::Exists))
        .preferred_node_term(10, term("disk", NodeOperator::In(values(&["ssd"]))));
    let v = decide(p.clone());
    assert_eq!(["a", "b", "c"].map(|n| v.score(NAME, n)), [200, 150, 0], "weight 2");
    let added = NodeAffinity {
        required: None,
        preferred: Some(vec![PreferredNodeTerm { weight: 40, term: term("disk", NodeOperator::DoesNotExist) }]),
    };
    let s = scene(nodes(), []).profile(only(NodeAffinityPlugin { added: Some(added) }));
    let v = s.decide(p);
    assert_eq!(["a", "b", "c"].map(|n| v.score(NAME, n)), [100, 75, 100]);
    assert_eq!(s.decide(pod("p")).score(NAME, "c"), 100);
}

#[test]
fn without_a_list_of_preferences_there_is_no_score() {
    assert!(!decide(pod("p")).scored(NAME));
    let v = decide(pod("p").preferred_node_term(5, term("absent", NodeOperator::Exists)));
    assert!(v.scored(NAME));
    assert_eq!(v.score(NAME, "a"), 0);
}
