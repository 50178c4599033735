//! What a plan guarantees, in the words of the issue that asked for it.

use std::collections::BTreeMap;

use super::story::{Round, Story, each};
use crate::cluster::cancel::looks;
use crate::engine::EngineError;
use crate::evict::Mode;
use crate::evict::outcome::Suggestion;
use crate::evict::policy::PluginName;
use crate::evict::snapshot::is_healthy;
use crate::model::pod_status::Phase;

fn steps<'s>(story: &'s Story) -> impl Iterator<Item = (&'s Round, &'s Suggestion, &'s super::story::Step)> {
    let of =
        |round: &'s Round| round.outcome.suggestions.iter().zip(&round.steps).map(move |(s, step)| (round, s, step));
    story.rounds.iter().flat_map(of)
}

/// a, b: the promised landing is where the engine sends the replacement with all earlier suggestions carried out, free to
/// choose the source. Only strategies that ask for a fresh pod may get it back on the source.
#[test]
fn every_replacement_lands_where_the_plan_says() {
    each(|story| {
        for (_, suggestion, step) in steps(story) {
            let landing = suggestion.landing.as_ref().unwrap();
            assert_eq!(step.landed.as_ref(), Some(&landing.node), "seed {}: {suggestion:?}", story.seed);
            let fresh =
                [PluginName::PodLifeTime, PluginName::RemovePodsHavingTooManyRestarts, PluginName::RemoveFailedPods];
            assert_eq!(landing.is_source, landing.node == suggestion.node, "seed {}", story.seed);
            assert!(!landing.is_source || fresh.contains(&suggestion.strategy), "seed {}: {suggestion:?}", story.seed);
        }
    });
}

/// Whenever the flag is set: some looks at it later, however many nodes, pods and terms are left.
#[test]
fn a_plan_in_either_mode_ends_soon_after_its_flag_is_set() {
    for seed in 0..40 {
        let story = Story::of(seed);
        let snapshot = story.rounds[0].before.cluster(false).snapshot();
        for mode in [Mode::Compatible, Mode::Planned] {
            let (outcome, all) = looks::set_after(u64::MAX, || story.try_asking(mode, &snapshot));
            assert!(outcome.is_ok());
            for part in 0..10 {
                let after = all * part / 10;
                let (outcome, looks) = looks::set_after(after, || story.try_asking(mode, &snapshot));
                let is_cancelled = matches!(outcome, Err(EngineError::Cancelled(_)));
                assert!(is_cancelled, "seed {seed} after {after} of {all}: {outcome:?}");
                assert!(looks <= after + 150, "seed {seed}: {} more looks after {after}", looks - after);
            }
        }
    }
}

/// c: as the eviction API would count, unhealthy pods included.
#[test]
fn no_budget_and_no_limit_is_exceeded() {
    each(|story| {
        for round in &story.rounds {
            limits_hold(story, round);
            let mut spent = BTreeMap::new();
            for suggestion in &round.outcome.suggestions {
                let pod = &suggestion.pod;
                let ignored = pod.is_terminal() || pod.status.phase == Phase::Pending || pod.meta.is_terminating();
                let budgets = if ignored { Vec::new() } else { round.before.budgets_of(pod) };
                assert!(budgets.len() < 2, "seed {}: the API refuses pods with several budgets", story.seed);
                let Some(budget) = budgets.first() else { continue };
                let used: &mut i32 = spent.entry(budget.meta.name.clone()).or_default();
                let enough = budget.desired_healthy > 0 && budget.current_healthy - *used >= budget.desired_healthy;
                if !is_healthy(pod) && (budget.always_allow_unhealthy || enough) {
                    continue;
                }
                *used += 1;
                assert!(*used <= budget.disruptions_allowed, "seed {}: {budget:?}: {pod:?}", story.seed);
            }
        }
    });
}

fn limits_hold(story: &Story, round: &Round) {
    let suggestions = &round.outcome.suggestions;
    let most = |key: fn(&Suggestion) -> String| {
        let mut counts = BTreeMap::<String, u64>::new();
        suggestions.iter().for_each(|s| *counts.entry(key(s)).or_default() += 1);
        counts.into_values().max().unwrap_or(0)
    };
    let policy = &story.policy;
    let holds = |limit: Option<u64>, found: u64| limit.is_none_or(|limit| found <= limit);
    assert!(holds(policy.max_total, most(|_| String::new())), "seed {}", story.seed);
    assert!(holds(policy.max_per_node, most(|s| s.node.to_string())), "seed {}", story.seed);
    assert!(holds(policy.max_per_namespace, most(|s| s.pod.meta.namespace.to_string())), "seed {}", story.seed);
}

/// d: no replacement is suggested again, and asking again comes to an end.
#[test]
fn no_lineage_moves_twice_and_the_plan_runs_dry() {
    each(|story| {
        for (round, suggestion, step) in steps(story) {
            assert!(round.outcome.look_ahead.is_some_and(|ahead| ahead.complete), "seed {}", story.seed);
            assert_eq!(step.generation, 0, "seed {}: lineage {}: {suggestion:?}", story.seed, step.lineage);
        }
        let pods = story.rounds[0].before.pods.len();
        assert!(story.rounds.last().unwrap().steps.is_empty(), "seed {}: it never ends", story.seed);
        assert!(story.rounds.len() <= pods + 1, "seed {}", story.seed);
    });
}

/// e: each suggestion lowers what its strategy measures, and what an answer says of the measures adds up: the next
/// request, which measures anew, begins where this one ended.
#[test]
fn no_suggestion_makes_worse_what_its_strategy_measures() {
    each(|story| {
        for (_, suggestion, _) in steps(story) {
            let gain = suggestion.gain.unwrap();
            assert!(gain.after < gain.before, "seed {}: {suggestion:?}", story.seed);
        }
        for pair in story.rounds.windows(2) {
            let (first, second) = (&pair[0].outcome.measures, &pair[1].outcome.measures);
            assert_eq!(first.len(), second.len());
            for (first, second) in first.iter().zip(second) {
                // What nodes report doesn't follow the plan.
                if first.gain.metric.starts_with("load") {
                    continue;
                }
                assert_eq!(first.gain.after, second.gain.before, "seed {}: {:?}", story.seed, first.strategy);
            }
        }
    });
}

/// f: also when the view came about in another order.
#[test]
fn equal_requests_on_equal_views_give_equal_plans() {
    each(|story| {
        let round = &story.rounds[0];
        for turned in [false, true] {
            assert_eq!(story.ask(&round.before, turned), round.outcome, "seed {}", story.seed);
        }
    });
}

/// The random clusters have something to say about: otherwise the properties hold for want of suggestions.
#[test]
fn stories_are_eventful() {
    let mut by_strategy = BTreeMap::<PluginName, usize>::new();
    let counts = std::cell::RefCell::new(&mut by_strategy);
    each(|story| {
        for (_, suggestion, _) in steps(story) {
            *counts.borrow_mut().entry(suggestion.strategy).or_default() += 1;
        }
    });
    for strategy in PluginName::ALL {
        assert!(by_strategy.get(strategy).is_some_and(|n| *n >= 3), "{strategy:?}: {by_strategy:?}");
    }
}
