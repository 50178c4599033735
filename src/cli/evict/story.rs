//! The whole story of one pod, for people and for programs.

use std::fmt::Write as _;

use comfy_table::{Table, presets};
use serde_json::{Value, json};

use super::report::{landing, landing_value, object_value, pod, pruned};
use crate::api::pb;
use crate::cli::schedule::trimmed;

pub(super) fn page(story: &pb::PodEvictionStory) -> String {
    let mut page = String::new();
    // Writing to a String can't fail.
    let _ = write_page(&mut page, story);
    page
}

fn write_page(page: &mut String, story: &pb::PodEvictionStory) -> std::fmt::Result {
    let place = if story.node.is_empty() { "on no node".to_owned() } else { format!("on {}", story.node) };
    write!(page, "The story of {}, {place}", pod(story.pod.as_ref()))?;
    if !story.not_considered.is_empty() {
        write!(page, "\n No strategy looks at it: {}", story.not_considered)?;
    }
    for budget in &story.budgets {
        let (name, allowed) = (pod(budget.budget.as_ref()), budget.disruptions_allowed);
        write!(page, "\n PodDisruptionBudget {name} selects it and lets {allowed} go now")?;
    }
    if story.budgets.len() > 1 {
        write!(page, "\n The eviction API refuses pods that several budgets select")?;
    }
    match &story.landing {
        Some(to) => write!(page, "\n If it alone were evicted, its replacement would go to {}", landing(Some(to)))?,
        None if story.no_landing.is_empty() => {}
        None => write!(page, "\n If it alone were evicted, its replacement would go nowhere: {}", story.no_landing)?,
    }
    for profile in &story.profiles {
        write!(page, "\n\n Profile {:?}", profile.profile)?;
        match &profile.protections[..] {
            [] => write!(page, "\n No rule of the evictor protects it")?,
            protections => {
                for protection in protections {
                    write!(page, "\n Protected by {}: {}", protection.protection, protection.message)?;
                }
            }
        }
        if !profile.pre_eviction.is_empty() {
            write!(page, "\n Held back: {}", profile.pre_eviction)?;
        }
        if !profile.strategies.is_empty() {
            write!(page, "\n{}", strategies(&profile.strategies))?;
        }
    }
    Ok(())
}

fn strategies(strategies: &[pb::StrategyStory]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(["STRATEGY", "VERDICT", "WHY"]);
    for story in strategies {
        let verdict = match story.verdict() {
            pb::StrategyVerdict::Suggested => format!("suggested, number {}", u64::from(story.position) + 1),
            pb::StrategyVerdict::LeftAlone => format!("left alone: {}", story.kind),
            pb::StrategyVerdict::NotReached => "not reached".to_owned(),
            pb::StrategyVerdict::RuleDoesNotApply => "rule doesn't apply".to_owned(),
            pb::StrategyVerdict::Failed => "failed".to_owned(),
            pb::StrategyVerdict::Unspecified => "unknown".to_owned(),
        };
        table.add_row([story.strategy.clone(), verdict, story.message.clone()]);
    }
    trimmed(&table)
}

pub(super) fn value(story: &pb::PodEvictionStory) -> Value {
    let budgets = story.budgets.iter().map(|budget| {
        json!({ "budget": object_value(budget.budget.as_ref()), "disruptionsAllowed": budget.disruptions_allowed })
    });
    pruned(json!({
        "pod": object_value(story.pod.as_ref()),
        "node": story.node,
        "notConsidered": story.not_considered,
        "budgets": budgets.collect::<Vec<_>>(),
        "profiles": story.profiles.iter().map(profile_value).collect::<Vec<_>>(),
        "landing": story.landing.as_ref().map(landing_value),
        "noLanding": story.no_landing,
    }))
}

fn profile_value(profile: &pb::ProfileStory) -> Value {
    let protections = profile.protections.iter().map(|p| json!({ "protection": p.protection, "message": p.message }));
    let strategies = profile.strategies.iter().map(|story| {
        let verdict = story.verdict();
        let mut value = pruned(json!({
            "strategy": story.strategy,
            "verdict": verdict.as_str_name().trim_start_matches("STRATEGY_VERDICT_"),
            "kind": story.kind,
            "message": story.message,
        }));
        if verdict == pb::StrategyVerdict::Suggested {
            value["position"] = json!(story.position);
        }
        value
    });
    pruned(json!({
        "profile": profile.profile,
        "protections": protections.collect::<Vec<_>>(),
        "preEviction": profile.pre_eviction,
        "strategies": strategies.collect::<Vec<_>>(),
    }))
}
