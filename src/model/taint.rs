//! Taints and tolerations (spec section 4.3).

use super::{Str, Time};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    NoSchedule,
    PreferNoSchedule,
    NoExecute,
}

impl Effect {
    pub const ALL: [Effect; 3] = [Effect::NoSchedule, Effect::PreferNoSchedule, Effect::NoExecute];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|e| e.as_str() == text)
    }

    /// Whether the effect keeps new pods off the node.
    pub fn forbids_scheduling(self) -> bool {
        matches!(self, Self::NoSchedule | Self::NoExecute)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taint {
    pub key: Str,
    pub value: Str,
    pub effect: Effect,
    /// When a NoExecute taint was added: from here `tolerationSeconds` count.
    pub added: Option<Time>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// Empty: every key.
    pub key: Str,
    pub op: TolerationOperator,
    pub value: Str,
    /// None: every effect.
    pub effect: Option<Effect>,
    /// How long a NoExecute taint is tolerated; None: for ever. Means nothing to the filter.
    pub seconds: Option<i64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    Equal,
    Exists,
    /// Behind upstream's gate TaintTolerationComparisonOperators, which is off: tolerates nothing.
    Gt,
    /// As `Gt`.
    Lt,
}

impl Toleration {
    pub fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|e| e == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match self.op {
                TolerationOperator::Equal => self.value == taint.value,
                TolerationOperator::Exists => true,
                TolerationOperator::Gt | TolerationOperator::Lt => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: Effect) -> Taint {
        Taint { key: key.into(), value: value.into(), effect, added: None }
    }

    fn toleration(key: &str, op: TolerationOperator, value: &str, effect: Option<Effect>) -> Toleration {
        Toleration { key: key.into(), op, value: value.into(), effect, seconds: None }
    }

    #[test]
    fn empty_key_with_exists_tolerates_everything() {
        let all = toleration("", TolerationOperator::Exists, "", None);
        for effect in Effect::ALL {
            assert!(all.tolerates(&taint("node.kubernetes.io/unschedulable", "", effect)));
        }
    }

    #[test]
    fn empty_effect_tolerates_all_effects_and_a_named_one_only_its_own() {
        let any = toleration("k", TolerationOperator::Equal, "v", None);
        let execute = toleration("k", TolerationOperator::Equal, "v", Some(Effect::NoExecute));
        assert!(
            any.tolerates(&taint("k", "v", Effect::NoSchedule)) && any.tolerates(&taint("k", "v", Effect::NoExecute))
        );
        assert!(!execute.tolerates(&taint("k", "v", Effect::NoSchedule)));
    }

    #[test]
    fn equal_compares_values_and_exists_ignores_them() {
        assert!(!toleration("k", TolerationOperator::Equal, "x", None).tolerates(&taint("k", "v", Effect::NoSchedule)));
        assert!(toleration("k", TolerationOperator::Exists, "x", None).tolerates(&taint("k", "v", Effect::NoSchedule)));
        assert!(!toleration("other", TolerationOperator::Exists, "", None).tolerates(&taint(
            "k",
            "v",
            Effect::NoSchedule
        )));
    }

    #[test]
    fn comparison_operators_are_gated_off_and_tolerate_nothing() {
        assert!(!toleration("k", TolerationOperator::Gt, "5", None).tolerates(&taint("k", "7", Effect::NoSchedule)));
    }
}
