//! Over random histories: a pod that would now fit is always named, within the bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::*;
use crate::engine::random_cluster::{Dice, History, random_pod};
use crate::engine::{IncomingPod, Options, decide};
use crate::service::ManualClock;
use crate::service::schedule::{Request, Verdict};

/// A history, the pods that are refused in its course, and what a watcher is told.
struct Play {
    service: Service,
    history: History,
    watch: RetryWatch,
    limit: usize,
    refused: BTreeMap<Str, (Arc<Pod>, Vec<String>)>,
    named: BTreeSet<Str>,
}

impl Play {
    fn new(limit: usize) -> Self {
        let mut service = Service::new(Profiles::default(), Arc::new(ManualClock::default()));
        service.retries = Arc::new(Retries::with_limits(limit, MAX_BYTES));
        let watch = service.watch_retries(Vec::new(), "").unwrap();
        let (history, refused, named) = (History::new(), BTreeMap::new(), BTreeSet::new());
        Self { service, history, watch, limit, refused, named }
    }

    fn step(&mut self, event: u64) {
        let mut dice = Dice::new(event ^ 0x5eed);
        match dice.below(8) {
            0..=1 => self.ask(&mut dice),
            2 => {
                self.service.look(dice.pick(&[1, 200, 100_000]));
            }
            3 => {
                let held: Vec<Str> = {
                    let writer = self.service.cluster.writer();
                    let mut ids: Vec<Str> = writer.reservations().iter().map(|r| r.id.clone()).collect();
                    ids.sort();
                    ids
                };
                if !held.is_empty() {
                    self.service.release(&held[dice.below(held.len())]);
                }
            }
            _ => {
                std::mem::swap(&mut self.service.cluster, &mut self.history.cluster);
                self.history.apply(event, &Profile::default());
                std::mem::swap(&mut self.service.cluster, &mut self.history.cluster);
            }
        }
        self.read();
    }

    fn ask(&mut self, dice: &mut Dice) {
        let name = format!("r{}", dice.below(12));
        let pod = random_pod(dice, &name, false).uid(&name).priority(dice.pick(&[0, 5]));
        let mut request = Request::new(pod.build());
        request.nominate = dice.one_in(4);
        if dice.one_in(4) {
            let view = self.service.cluster.fork();
            request.candidates = view.nodes().map(|row| row.name().to_string()).filter(|_| dice.one_in(2)).collect();
        }
        let candidates = request.candidates.clone();
        let Ok(answer) = self.service.schedule(request, &AtomicBool::new(false)) else { return };
        let uid = answer.pod.meta.uid.clone();
        self.named.remove(&uid);
        match answer.verdict {
            Verdict::Unschedulable => {
                self.refused.insert(uid, (answer.pod, candidates));
            }
            _ => {
                self.refused.remove(&uid);
            }
        }
        // An overflow may be due to this very refusal: it then speaks of this pod too.
        self.read();
    }

    fn read(&mut self) {
        assert!(self.service.retries.len() <= self.limit);
        let news = self.watch.read(3);
        if news.overflow {
            self.named.extend(self.refused.keys().cloned());
        }
        let again = !news.pods.is_empty();
        self.named.extend(news.pods.into_iter().map(|freed| freed.pod.meta.uid.clone()));
        if again {
            self.read();
        }
    }

    /// Refused pods that fit now and that nobody named.
    fn forgotten(&mut self) -> Vec<Str> {
        while self.service.look(100_000) > 0 {}
        self.read();
        let view = self.service.cluster.fork();
        let fits = |pod: &Pod, candidates: &[String]| {
            let ordinals: Vec<_> = candidates.iter().filter_map(|name| view.ordinal(name)).collect();
            let options = Options { candidates: (!candidates.is_empty()).then_some(&*ordinals), ..Options::default() };
            let cancel = AtomicBool::new(false);
            decide(&view, &IncomingPod::new(pod), &Profile::default(), &options, &cancel)
                .is_ok_and(|d| d.node().is_some())
        };
        let unnamed = self.refused.iter().filter(|(uid, _)| !self.named.contains(*uid) && view.pod(uid).is_none());
        unnamed.filter(|(_, (pod, candidates))| fits(pod, candidates)).map(|(uid, _)| uid.clone()).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_pod_that_would_now_fit_is_always_named(
        before in proptest::collection::vec(any::<u64>(), 40),
        events in proptest::collection::vec(any::<u64>(), 240),
        limit in prop_oneof![Just(3_usize), Just(1_000)],
    ) {
        let mut play = Play::new(limit);
        for event in before {
            play.step(event);
        }
        for (i, event) in events.iter().enumerate() {
            play.step(*event);
            if i % 20 == 19 {
                prop_assert_eq!(play.forgotten(), Vec::<Str>::new());
            }
        }
    }
}
