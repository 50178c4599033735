//! Taints of nodes and tolerations of pods.

use super::error::{invalid, invalid_number};
use super::names::{label_value_problem, qualified_name_problem};
use super::near_miss;
use super::reader::Reader;
use crate::model::taint::TolerationOperator;
use crate::model::{Effect, Taint, Toleration};

const EFFECTS: [(&str, Effect); 3] = [
    ("NoExecute", Effect::NoExecute),
    ("NoSchedule", Effect::NoSchedule),
    ("PreferNoSchedule", Effect::PreferNoSchedule),
];

const OPERATORS: [(&str, TolerationOperator); 4] = [
    ("Equal", TolerationOperator::Equal),
    ("Exists", TolerationOperator::Exists),
    ("Gt", TolerationOperator::Gt),
    ("Lt", TolerationOperator::Lt),
];

pub(super) fn taint(r: &Reader<'_>) -> Option<Taint> {
    r.known(&near_miss::TAINT);
    let key = r.required_str("key");
    check_key(r, &key);
    let value = r.str("value");
    if let Some(problem) = label_value_problem(&value) {
        r.error_in("value", invalid(&value, problem));
    }
    let effect = r.required_choice("effect", &EFFECTS);
    let added = r.time("timeAdded");
    Some(Taint { key, value, effect: effect?, added })
}

pub(super) fn toleration(r: &Reader<'_>) -> Option<Toleration> {
    r.known(&near_miss::TOLERATION);
    let key = r.str("key");
    check_key(r, &key);
    let op = r.choice_or("operator", &OPERATORS, TolerationOperator::Equal);
    let value = r.str("value");
    if key.is_empty() && op.is_some_and(|op| op != TolerationOperator::Exists) {
        let name = r.text("operator").unwrap_or_default();
        let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        r.error_in("operator", invalid(name, detail));
    }
    match op {
        Some(TolerationOperator::Exists) if !value.is_empty() => {
            r.error_in("value", invalid(&value, "value must be empty when `operator` is 'Exists'"));
        }
        Some(TolerationOperator::Equal) => {
            if let Some(problem) = label_value_problem(&value) {
                r.error_in("value", invalid(&value, problem));
            }
        }
        _ => {}
    }
    let effect = r.choice("effect", &EFFECTS);
    let seconds = r.integer("tolerationSeconds");
    if let Some(seconds) = seconds
        && effect != Some(Effect::NoExecute)
    {
        let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        r.error_in("tolerationSeconds", invalid_number(seconds, detail));
    }
    Some(Toleration { key, op: op?, value, effect, seconds })
}

fn check_key(r: &Reader<'_>, key: &str) {
    if !key.is_empty()
        && let Some(problem) = qualified_name_problem(key)
    {
        r.error_in("key", invalid(key, problem));
    }
}
