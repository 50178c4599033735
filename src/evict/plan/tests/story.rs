//! A cluster and a policy, asked and played until nothing is suggested any more.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::policies;
use super::world::{NOW, World, recreated, running};
use crate::cluster::Snapshot;
use crate::engine::plugins::ScoringStrategy;
use crate::engine::random_cluster::Dice;
use crate::engine::{self, EngineError, IncomingPod, Options, Override, Profile};
use crate::evict::{self, Mode, Outcome, Policy};
use crate::model::{Str, Time};

/// A suggestion, carried out.
#[derive(Debug)]
pub(super) struct Step {
    /// Which pod of the world, and how often it moved before.
    pub(super) lineage: usize,
    pub(super) generation: usize,
    /// Where the scheduler sent the replacement, with all earlier suggestions carried out.
    pub(super) landed: Option<Str>,
}

/// A request and its suggestions, carried out one by one.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) before: World,
    pub(super) outcome: Outcome,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug)]
pub(super) struct Story {
    pub(super) seed: u64,
    pub(super) policy: Policy,
    profile: Arc<Profile>,
    /// The last one suggests nothing, unless there are too many.
    pub(super) rounds: Vec<Round>,
}

/// The default profile, or the same with a preference for full nodes.
fn profile(packs_pods: bool) -> Profile {
    let packs = Override { strategy: Some((ScoringStrategy::MostAllocated, Vec::new())), ..Override::default() };
    let packs = Override { disable: ["NodeResourcesBalancedAllocation".to_owned()].into(), ..packs };
    if packs_pods { packs.apply(&Profile::default()).unwrap() } else { Profile::default() }
}

impl Story {
    pub(super) fn ask(&self, world: &World, turned: bool) -> Outcome {
        self.try_asking(Mode::Planned, &world.cluster(turned).snapshot()).unwrap()
    }

    /// # Errors
    /// The flag of the test's thread was set.
    pub(super) fn try_asking(&self, mode: Mode, snapshot: &Snapshot) -> Result<Outcome, EngineError> {
        let profiles = |name: &str| (name == &**self.profile.name()).then(|| self.profile.clone());
        let (now, never) = (Time::from_secs(NOW), AtomicBool::new(false));
        match mode {
            Mode::Planned => evict::planned(snapshot, &self.policy, &profiles, now, &never),
            Mode::Compatible => evict::compatible(snapshot, &self.policy, now, &never),
        }
    }

    pub(super) fn of(seed: u64) -> Self {
        let mut dice = Dice::new(seed);
        let mut world = World::random(&mut dice);
        let packs = dice.one_in(3);
        let (policy, profile) = (policies::random(&mut dice, packs), Arc::new(profile(packs)));
        let mut story = Self { seed, policy, profile, rounds: Vec::new() };
        // One more than there should be, so that too many are seen.
        for _ in 0..world.pods.len() + 2 {
            let outcome = story.ask(&world, false);
            let before = world.clone();
            let steps = play(&mut world, &outcome, &story.profile, seed);
            let ends = steps.is_empty();
            story.rounds.push(Round { before, outcome, steps });
            if ends {
                break;
            }
        }
        story
    }
}

/// Evicts, recreates, schedules and binds.
fn play(world: &mut World, outcome: &Outcome, profile: &Profile, seed: u64) -> Vec<Step> {
    let mut steps = Vec::new();
    for suggestion in &outcome.suggestions {
        let lineage = world.pods.iter().position(|l| l.pod.meta.uid == suggestion.pod.meta.uid).unwrap();
        let gone = world.pods.remove(lineage);
        let cluster = world.cluster(false);
        let new = recreated(&gone.pod, gone.generation + 1, seed);
        let view = cluster.fork();
        let decision =
            engine::decide(&view, &IncomingPod::new(&new), profile, &Options::default(), &AtomicBool::new(false));
        let landed = decision.unwrap().node().cloned();
        // A pod that landed nowhere breaks a promise; the story goes on where it was.
        let node = landed.clone().unwrap_or_else(|| suggestion.node.clone());
        let pod = Arc::new(running(new, &node));
        world.pods.insert(lineage, super::world::Lineage { pod, generation: gone.generation + 1 });
        steps.push(Step { lineage, generation: gone.generation, landed });
    }
    steps
}

fn count() -> u64 {
    std::env::var("BERTH_STORIES").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

/// Where the seeds begin, so that a long run can be done in parts.
fn first() -> u64 {
    std::env::var("BERTH_FIRST_STORY").ok().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Calls with every story. They are kept for the other properties as long as they are few.
pub(super) fn each(check: impl Fn(&Story)) {
    static KEPT: OnceLock<Vec<Story>> = OnceLock::new();
    let seeds = || (0..count()).map(|i| (i + first()).wrapping_mul(0x9e37_79b9));
    if count() <= 1_000 {
        KEPT.get_or_init(|| seeds().map(Story::of).collect()).iter().for_each(check);
    } else {
        seeds().for_each(|seed| check(&Story::of(seed)));
    }
}
