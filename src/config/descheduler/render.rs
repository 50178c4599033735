//! A policy as canonical `descheduler/v1alpha2` YAML: how Berth read it, and what a migration from v1alpha1 looks like.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Number, Value};

use super::plugins::EVICTOR;
use super::{durations, queries};
use crate::evict::policy::{
    DefaultEvictorArgs, EvictionMode, LabelQuery, Namespaces, NoEvictionPolicy, NodeAffinityType, OwnerKinds,
    PluginConfig, PodConditionFilter, PodLifeTimeArgs, PodProtection, PodSelection, Policy, PolicyProfile,
    RemoveFailedPodsArgs, TaintFilter, TaintPattern, Thresholds, UsageSource,
};
use crate::model::selector::Operator;
use crate::model::topology_spread::WhenUnsatisfiable;
use crate::model::{LabelSelector, Str};

/// An object whose fields keep their order; `null`, `{}` and `[]` are left out, since they mean the same as nothing.
#[derive(Default)]
struct Fields(Vec<(String, Tree)>);

enum Tree {
    Fields(Fields),
    List(Vec<Tree>),
    Leaf(Value),
}

impl Fields {
    fn with(mut self, name: &str, tree: impl Into<Tree>) -> Self {
        let tree = tree.into();
        let is_empty = match &tree {
            Tree::Fields(fields) => fields.0.is_empty(),
            Tree::List(list) => list.is_empty(),
            Tree::Leaf(value) => value.is_null(),
        };
        if !is_empty {
            self.0.push((name.to_owned(), tree));
        }
        self
    }

    fn with_flag(self, name: &str, flag: bool) -> Self {
        if flag { self.with(name, Value::Bool(true)) } else { self }
    }

    fn with_pods(self, pods: &PodSelection) -> Self {
        self.with("namespaces", namespaces(&pods.namespaces))
            .with_selector("labelSelector", pods.label_selector.as_ref())
    }

    /// Even an empty selector, which is not the same as none everywhere.
    fn with_selector(mut self, name: &str, selector: Option<&LabelSelector>) -> Self {
        if let Some(selector) = selector {
            self.0.push((name.to_owned(), Tree::Fields(label_selector(selector))));
        }
        self
    }

    fn with_taints(mut self, taints: &TaintFilter) -> Self {
        let text = |p: &TaintPattern| match &p.value {
            Some(value) => Value::from(format!("{}={value}", p.key)),
            None => Value::from(&*p.key),
        };
        if let Some(included) = &taints.included {
            // An empty list considers no taint, so it must stay.
            self.0.push(("includedTaints".to_owned(), list(included.iter().map(text))));
        }
        self.with("excludedTaints", list(taints.excluded.iter().map(text)))
    }
}

impl From<Fields> for Tree {
    fn from(fields: Fields) -> Self {
        Self::Fields(fields)
    }
}

impl From<Value> for Tree {
    fn from(value: Value) -> Self {
        Self::Leaf(value)
    }
}

fn list(values: impl IntoIterator<Item = Value>) -> Tree {
    Tree::List(values.into_iter().map(Tree::Leaf).collect())
}

fn texts(values: &[Str]) -> Tree {
    list(values.iter().map(|v| Value::from(&**v)))
}

fn optional<T: Into<Value>>(value: Option<T>) -> Value {
    value.map_or(Value::Null, Into::into)
}

/// A number that is not the default of 0.
fn above_zero(number: u64) -> Value {
    optional(Some(number).filter(|n| *n > 0))
}

impl Serialize for Tree {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fields(Fields(fields)) => {
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, tree) in fields {
                    map.serialize_entry(name, tree)?;
                }
                map.end()
            }
            Self::List(list) => list.serialize(serializer),
            Self::Leaf(value) => value.serialize(serializer),
        }
    }
}

/// The policy as YAML that reads back as the same policy.
pub fn to_yaml(policy: &Policy) -> String {
    let providers = policy.kubernetes_metrics.then(|| {
        let provider = Fields::default().with("source", Value::from("KubernetesMetrics"));
        Tree::List(vec![provider.into()])
    });
    let tree = Fields::default()
        .with("apiVersion", Value::from("descheduler/v1alpha2"))
        .with("kind", Value::from("DeschedulerPolicy"))
        .with("nodeSelector", query(policy.node_selector.as_ref()))
        .with("maxNoOfPodsToEvictPerNode", optional(policy.max_per_node))
        .with("maxNoOfPodsToEvictPerNamespace", optional(policy.max_per_namespace))
        .with("maxNoOfPodsToEvictTotal", optional(policy.max_total))
        .with("gracePeriodSeconds", optional(policy.grace_period_seconds))
        .with_flag("evictionFailureEventNotification", policy.eviction_failure_event_notification)
        .with("metricsProviders", providers.unwrap_or(Tree::Leaf(Value::Null)))
        .with("profiles", Tree::List(policy.profiles.iter().map(|p| profile(p).into()).collect()));
    // Only a writer that fails makes this fail, and a string doesn't.
    serde_saphyr::to_string(&Tree::Fields(tree)).unwrap_or_default()
}

fn query(query: Option<&LabelQuery>) -> Value {
    optional(query.map(queries::format))
}

fn profile(profile: &PolicyProfile) -> Fields {
    let mut configs: Vec<Tree> = vec![config(EVICTOR, evictor(&profile.evictor)).into()];
    let mut seen = Vec::new();
    for plugin in profile.deschedule.iter().chain(&profile.balance) {
        if !seen.contains(&plugin.name()) {
            seen.push(plugin.name());
            configs.push(config(plugin.name().as_str(), args(plugin)).into());
        }
    }
    let enabled = |plugins: &[PluginConfig]| {
        Fields::default().with("enabled", list(plugins.iter().map(|p| Value::from(p.name().as_str()))))
    };
    let plugins =
        Fields::default().with("deschedule", enabled(&profile.deschedule)).with("balance", enabled(&profile.balance));
    Fields::default()
        .with("name", Value::from(&*profile.name))
        .with("pluginConfig", Tree::List(configs))
        .with("plugins", plugins)
}

fn config(name: &str, args: Fields) -> Fields {
    Fields::default().with("name", Value::from(name)).with("args", args)
}

fn evictor(args: &DefaultEvictorArgs) -> Fields {
    let named = |protections: &[PodProtection], on: bool| {
        let names = protections.iter().filter(|p| args.protections.contains(p) == on);
        list(names.map(|p| Value::from(p.as_str())).collect::<Vec<_>>())
    };
    let classes = args.protected_storage_classes.iter();
    let classes = classes.map(|class| Fields::default().with("name", Value::from(&**class)).into()).collect();
    let claims = Fields::default().with("protectedStorageClasses", Tree::List(classes));
    let threshold = Some(args.priority_threshold).filter(|t| *t != DefaultEvictorArgs::DEFAULT_PRIORITY_THRESHOLD);
    Fields::default()
        .with("nodeSelector", query(args.node_selector.as_ref()))
        .with_flag("nodeFit", args.node_fit)
        .with("minReplicas", above_zero(args.min_replicas))
        .with("minPodAge", optional(args.min_pod_age_micros.map(durations::format_micros)))
        .with_selector("labelSelector", args.label_selector.as_ref())
        .with_selector("namespaceLabelSelector", args.namespace_label_selector.as_ref())
        .with("priorityThreshold", Fields::default().with("value", optional(threshold)))
        .with(
            "noEvictionPolicy",
            optional((args.no_eviction_policy == NoEvictionPolicy::Mandatory).then_some("Mandatory")),
        )
        .with(
            "podProtections",
            Fields::default()
                .with("defaultDisabled", named(&PodProtection::DEFAULT, false))
                .with("extraEnabled", named(&PodProtection::EXTRA, true))
                .with("config", Fields::default().with("PodsWithPVC", claims)),
        )
}

fn args(plugin: &PluginConfig) -> Fields {
    let fields = Fields::default();
    match plugin {
        PluginConfig::RemoveDuplicates(args) => fields
            .with("namespaces", namespaces(&args.namespaces))
            .with("excludeOwnerKinds", texts(&args.exclude_owner_kinds)),
        PluginConfig::LowNodeUtilization(args) => {
            let source = (args.usage == UsageSource::KubernetesMetrics).then_some("KubernetesMetrics");
            fields
                .with("thresholds", thresholds(&args.thresholds))
                .with("targetThresholds", thresholds(&args.target_thresholds))
                .with_flag("useDeviationThresholds", args.use_deviation_thresholds)
                .with("numberOfNodes", above_zero(args.number_of_nodes))
                .with("evictableNamespaces", Fields::default().with("exclude", texts(&args.excluded_namespaces)))
                .with("evictionLimits", Fields::default().with("node", optional(args.max_per_node)))
                .with("metricsUtilization", Fields::default().with("source", optional(source)))
        }
        PluginConfig::HighNodeUtilization(args) => fields
            .with("thresholds", thresholds(&args.thresholds))
            .with("numberOfNodes", above_zero(args.number_of_nodes))
            .with(
                "evictionModes",
                list(
                    args.eviction_modes
                        .iter()
                        .map(|EvictionMode::OnlyThresholdingResources| Value::from("OnlyThresholdingResources")),
                ),
            )
            .with("evictableNamespaces", Fields::default().with("exclude", texts(&args.excluded_namespaces))),
        PluginConfig::RemovePodsViolatingInterPodAntiAffinity(args) => fields.with_pods(&args.pods),
        PluginConfig::RemovePodsViolatingNodeAffinity(args) => {
            let types = args.types.iter().map(|kind| match kind {
                NodeAffinityType::Required => Value::from("requiredDuringSchedulingIgnoredDuringExecution"),
                NodeAffinityType::Preferred => Value::from("preferredDuringSchedulingIgnoredDuringExecution"),
            });
            fields.with_pods(&args.pods).with("nodeAffinityType", list(types))
        }
        PluginConfig::RemovePodsViolatingNodeTaints(args) => fields
            .with_pods(&args.pods)
            .with_flag("includePreferNoSchedule", args.include_prefer_no_schedule)
            .with_taints(&args.taints),
        PluginConfig::RemovePodsViolatingNoExecuteTaints(args) => {
            fields.with_pods(&args.pods).with_taints(&args.taints)
        }
        PluginConfig::RemovePodsViolatingTopologySpreadConstraint(args) => {
            let constraints = args.constraints.iter().map(|when| match when {
                WhenUnsatisfiable::DoNotSchedule => Value::from("DoNotSchedule"),
                WhenUnsatisfiable::ScheduleAnyway => Value::from("ScheduleAnyway"),
            });
            fields
                .with_pods(&args.pods)
                .with("constraints", list(constraints))
                .with("topologyBalanceNodeFit", Value::Bool(args.topology_balance_node_fit))
        }
        PluginConfig::RemovePodsHavingTooManyRestarts(args) => fields
            .with_pods(&args.pods)
            .with("podRestartThreshold", Value::from(args.restart_threshold))
            .with_flag("includingInitContainers", args.including_init_containers)
            .with("states", list(args.states.iter().map(|s| Value::from(s.as_str())))),
        PluginConfig::PodLifeTime(args) => life_time(args),
        PluginConfig::RemoveFailedPods(args) => failed_pods(args),
    }
}

fn life_time(args: &PodLifeTimeArgs) -> Fields {
    let owner_kinds = match &args.owner_kinds {
        OwnerKinds::Any => Fields::default(),
        OwnerKinds::Include(kinds) => Fields::default().with("include", texts(kinds)),
        OwnerKinds::Exclude(kinds) => Fields::default().with("exclude", texts(kinds)),
    };
    let condition = |c: &PodConditionFilter| {
        let fields = Fields::default()
            .with("type", optional(c.kind.as_deref()))
            .with("status", optional(c.status.as_deref()))
            .with("reason", optional(c.reason.as_deref()));
        fields.with("minTimeSinceLastTransitionSeconds", optional(c.min_seconds_since_last_transition)).into()
    };
    Fields::default()
        .with_pods(&args.pods)
        .with("maxPodLifeTimeSeconds", optional(args.max_seconds))
        .with("states", texts(&args.states))
        .with("conditions", Tree::List(args.conditions.iter().map(condition).collect()))
        .with("exitCodes", list(args.exit_codes.iter().map(|c| Value::from(*c))))
        .with("ownerKinds", owner_kinds)
        .with_flag("includingInitContainers", args.including_init_containers)
        .with_flag("includingEphemeralContainers", args.including_ephemeral_containers)
}

fn failed_pods(args: &RemoveFailedPodsArgs) -> Fields {
    Fields::default()
        .with_pods(&args.pods)
        .with("excludeOwnerKinds", texts(&args.exclude_owner_kinds))
        .with("minPodLifetimeSeconds", Value::from(args.min_pod_lifetime_seconds))
        .with("reasons", texts(&args.reasons))
        .with("exitCodes", list(args.exit_codes.iter().map(|c| Value::from(*c))))
        .with_flag("includingInitContainers", args.including_init_containers)
}

fn namespaces(namespaces: &Namespaces) -> Fields {
    match namespaces {
        Namespaces::All => Fields::default(),
        Namespaces::Include(names) => Fields::default().with("include", texts(names)),
        Namespaces::Exclude(names) => Fields::default().with("exclude", texts(names)),
    }
}

/// Whole percentages without a point.
fn thresholds(thresholds: &Thresholds) -> Fields {
    thresholds.iter().fold(Fields::default(), |fields, (resource, percent)| {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // In [0, 100] and whole.
        let number = if percent.fract() == 0.0 && (0.0..=100.0).contains(percent) {
            Some(Number::from(*percent as u64))
        } else {
            Number::from_f64(*percent)
        };
        fields.with(resource, number.map_or(Value::Null, Value::Number))
    })
}

/// Pairs as `matchLabels`, the rest as `matchExpressions`.
fn label_selector(selector: &LabelSelector) -> Fields {
    let LabelSelector::Requirements(requirements) = selector else { return Fields::default() };
    let (mut labels, mut expressions) = (Fields::default(), Vec::new());
    for requirement in requirements {
        let (operator, values) = match &requirement.op {
            Operator::In(values) => match values.as_slice() {
                [value] if !labels.0.iter().any(|(key, _)| *key == *requirement.key) => {
                    labels = labels.with(&requirement.key, Value::from(&**value));
                    continue;
                }
                values => ("In", values),
            },
            Operator::NotIn(values) => ("NotIn", values.as_slice()),
            Operator::Exists => ("Exists", [].as_slice()),
            Operator::DoesNotExist => ("DoesNotExist", [].as_slice()),
        };
        let expression = Fields::default()
            .with("key", Value::from(&*requirement.key))
            .with("operator", Value::from(operator))
            .with("values", texts(values));
        expressions.push(expression.into());
    }
    Fields::default().with("matchLabels", labels).with("matchExpressions", Tree::List(expressions))
}
