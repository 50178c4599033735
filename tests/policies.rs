//! Descheduler policies: how each file of `policies/` is read, the traps of spec section 22, and that nothing panics.
//!
//! `policies/NAME.yaml` is a policy, `policies/NAME.expected` what Berth makes of it: the canonical v1alpha2 form with the
//! warnings, or all errors. For a classic example the same with `enabled: false` follows. To renew the expectations after a
//! change that is meant: `BERTH_BLESS=1 cargo test --test policies`.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests; clippy.toml only covers test functions")]

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};

use berth::config::descheduler::{PolicyRead, from_text, from_value, load, to_yaml};
use berth::evict::policy::{
    LowNodeUtilizationArgs, NodeAffinityType, PluginConfig, PodProtection, Policy, RemoveFailedPodsArgs,
};
use berth::manifest::Classes;
use berth::model::ResourceList;
use berth::model::pod::PreemptionPolicy;
use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Knows one class, `batch`.
struct OneClass;

impl Classes for OneClass {
    fn priority(&self, name: &str) -> Option<(i32, PreemptionPolicy)> {
        (name == "batch").then_some((1_000, PreemptionPolicy::PreemptLowerPriority))
    }
    fn default_priority(&self) -> Option<(i32, PreemptionPolicy)> {
        None
    }
    fn overhead(&self, _: &str) -> Option<ResourceList> {
        None
    }
}

fn tests_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// What the golden files hold: the canonical form after its warnings, or the errors.
fn outcome(text: &str) -> String {
    match from_text(text, &OneClass) {
        Ok(PolicyRead { policy, warnings }) => {
            let warnings: String = warnings.iter().map(|w| format!("# warning: {w}\n")).collect();
            format!("{warnings}{}", to_yaml(&policy))
        }
        Err(error) => format!("{error}\n"),
    }
}

#[test]
fn every_policy_file_is_read_as_expected() {
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(tests_folder().join("policies")).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|f| f.extension().is_some_and(|e| e == "yaml")) {
        let text = fs::read_to_string(file).unwrap();
        let mut found = outcome(&text);
        // A classic example: one strategy of v1alpha1.
        if text.contains("v1alpha1") && text.matches("enabled: true").count() == 1 {
            found.push_str("\n# With enabled: false\n");
            found.push_str(&outcome(&text.replace("enabled: true", "enabled: false")));
        }
        let golden = file.with_extension("expected");
        if std::env::var_os("BERTH_BLESS").is_some() {
            fs::write(&golden, &found).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if expected != found {
            wrong.push(format!("{}:\n--- expected\n{expected}\n--- found\n{found}", file.display()));
        }
    }
    assert!(files.len() >= 13 && wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn the_canonical_form_reads_back_as_the_same_policy() {
    let mut policies: Vec<Policy> = conformance_policies().into_iter().map(|(_, policy)| policy).collect();
    for name in ["v1alpha1-everything", "v1alpha2-everything", "low-node-utilization-number-of-nodes"] {
        let path = tests_folder().join("policies").join(name).with_extension("yaml");
        policies.push(load(&path, &OneClass).unwrap().policy);
    }
    for policy in policies {
        let yaml = to_yaml(&policy);
        assert_eq!(from_text(&yaml, &OneClass).unwrap().policy, policy, "{yaml}");
    }
}

/// The policies of all eviction vectors, each with the name of its scenario.
fn conformance_policies() -> Vec<(String, Policy)> {
    let mut policies = Vec::new();
    for entry in fs::read_dir(tests_folder().join("conformance/eviction")).unwrap() {
        for line in BufReader::new(GzDecoder::new(File::open(entry.unwrap().path()).unwrap())).lines() {
            let scenario: Value = serde_json::from_str(&line.unwrap()).unwrap();
            let name = scenario["name"].as_str().unwrap().to_owned();
            let read = from_value(&scenario["policy"], &OneClass);
            policies.push((name.clone(), read.unwrap_or_else(|e| panic!("{name}: {e}")).policy));
        }
    }
    policies
}

#[test]
fn every_policy_of_the_conformance_vectors_loads() {
    let policies = conformance_policies();
    assert!(policies.len() > 600, "{} policies", policies.len());
    for (name, policy) in policies {
        let plugins: usize = policy.profiles.iter().map(|p| p.deschedule.len() + p.balance.len()).sum();
        assert!(plugins > 0, "{name}: no plugin is enabled");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = load(Path::new("no/such/policy.yaml"), &OneClass).unwrap_err();
    assert!(error.to_string().starts_with("no/such/policy.yaml: "), "{error}");
}

/// A policy of one profile: args of the evictor, then (name, args) of enabled plugins.
fn with_plugins(evictor: &Value, plugins: &[(&str, Value)]) -> Value {
    let mut configs = vec![json!({"name": "DefaultEvictor", "args": evictor})];
    configs.extend(plugins.iter().map(|(name, args)| json!({"name": name, "args": args})));
    let balance = |name: &str| ["RemoveDuplicates", "LowNodeUtilization", "HighNodeUtilization"].contains(&name);
    let (balance, deschedule): (Vec<&str>, Vec<&str>) = plugins.iter().map(|(n, _)| *n).partition(|n| balance(n));
    json!({
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [{
            "name": "p",
            "pluginConfig": configs,
            "plugins": {"balance": {"enabled": balance}, "deschedule": {"enabled": deschedule}}
        }]
    })
}

fn read(value: &Value) -> PolicyRead {
    from_value(value, &OneClass).unwrap_or_else(|e| panic!("{e}"))
}

fn first_plugin(value: &Value) -> PluginConfig {
    let profile = &read(value).policy.profiles[0];
    profile.deschedule.iter().chain(&profile.balance).next().unwrap().clone()
}

fn with_field(mut policy: Value, pointer: &str, field: &str, value: Value) -> Value {
    policy.pointer_mut(pointer).unwrap().as_object_mut().unwrap().insert(field.to_owned(), value);
    policy
}

/// The traps of spec section 22 that are errors here, by their numbers.
#[test]
fn traps_that_are_errors_say_where_and_why() {
    let failed = || with_plugins(&json!({}), &[("RemoveFailedPods", json!({}))]);
    let evictor = |args: Value| with_plugins(&args, &[]);
    let of = |plugin: &'static str, args: Value| with_plugins(&json!({}), &[(plugin, args)]);
    for (trap, policy, error) in [
        (
            2,
            with_field(failed(), "/profiles/0", "pluginConfig", json!([])),
            "profiles[0].plugins.deschedule.enabled[0]: unable to find \"RemoveFailedPods\" plugin config",
        ),
        (
            3,
            with_field(
                of("RemovePodsHavingTooManyRestarts", json!({"podRestartThreshold": 0})),
                "/profiles/0",
                "plugins",
                json!({}),
            ),
            "profiles[0].pluginConfig[1].args.podRestartThreshold: invalid PodsHavingTooManyRestarts threshold",
        ),
        (
            4,
            with_field(failed(), "/profiles/0/pluginConfig/0", "nodeFit", json!(true)),
            "profiles[0].pluginConfig[0].nodeFit: unknown field; it belongs in args: args.nodeFit",
        ),
        (5, evictor(json!({"nodeFits": true})), "args.nodeFits: unknown field; did you mean nodeFit?"),
        (
            6,
            with_field(failed(), "/profiles/0/plugins", "preEvictionFilter", json!({})),
            "profiles[0].plugins.preEvictionFilter: unknown field; it is spelt preevictionfilter",
        ),
        (
            8,
            with_field(failed(), "/profiles/0/plugins", "filter", json!({"enabled": ["X"]})),
            "profile \"p\" configures filter extension point of non-existing plugins: X",
        ),
        (
            9,
            evictor(json!({"priorityThreshold": {"value": 2_000_000_001}})),
            "args.priorityThreshold.value: Invalid value: 2000000001: priority threshold can't be greater than 2000000000",
        ),
        (
            15,
            of("LowNodeUtilization", json!({"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 20}})),
            "args.thresholds: thresholds' cpu percentage is greater than targetThresholds'",
        ),
        (
            16,
            of("RemovePodsViolatingNodeAffinity", json!({"nodeAffinityType": ["required"]})),
            "args.nodeAffinityType[0]: Unsupported value: \"required\"",
        ),
        (
            19,
            of("PodLifeTime", json!({"ownerKinds": {"include": ["Job"]}})),
            "args: at least one of maxPodLifeTimeSeconds, states, conditions, or exitCodes must be set",
        ),
        (
            21,
            evictor(json!({"evictDaemonSetPods": true, "podProtections": {"extraEnabled": ["PodsWithPVC"]}})),
            "args.evictDaemonSetPods: can't be used together with podProtections",
        ),
    ] {
        let found = from_value(&policy, &OneClass).unwrap_err();
        assert!(found.errors.len() == 1 && found.to_string().contains(error), "trap {trap}: {found}\nexpected {error}");
    }
}

#[test]
fn limits_of_zero_are_kept_apart_from_none() {
    // Trap 1.
    let policy = with_field(with_plugins(&json!({}), &[]), "", "maxNoOfPodsToEvictPerNode", json!(0));
    let policy = read(&policy).policy;
    assert_eq!((policy.max_per_node, policy.max_total), (Some(0), None));
}

#[test]
fn the_evictor_cannot_be_disabled() {
    // Trap 7: its args still count, and a warning says so.
    let policy = with_plugins(&json!({"nodeFit": true}), &[]);
    let policy = with_field(policy, "/profiles/0/plugins", "filter", json!({"disabled": ["DefaultEvictor"]}));
    let read = read(&policy);
    assert!(read.policy.profiles[0].evictor.node_fit && read.warnings.len() == 1, "{read:?}");
}

#[test]
fn priority_thresholds_are_resolved_to_numbers() {
    // Traps 9 and 10, and the names of classes.
    for (threshold, expected) in [
        (json!({"value": 2_000_000_000}), 2_000_000_000),
        (json!({"name": ""}), 2_000_000_000),
        (json!({}), 2_000_000_000),
        (json!({"value": -5}), -5),
        (json!({"name": "batch"}), 1_000),
        (json!({"name": "system-cluster-critical"}), 2_000_000_000),
    ] {
        let policy = read(&with_plugins(&json!({"priorityThreshold": threshold}), &[])).policy;
        assert_eq!(policy.profiles[0].evictor.priority_threshold, expected, "{threshold}");
    }
}

#[test]
fn the_selector_of_the_policy_is_not_that_of_node_fit() {
    // Trap 11.
    let policy = with_field(with_plugins(&json!({"nodeFit": true}), &[]), "", "nodeSelector", json!("a=b"));
    let policy = read(&policy).policy;
    assert!(policy.node_selector.is_some() && policy.profiles[0].evictor.node_selector.is_none());
}

#[test]
fn equal_thresholds_are_valid_and_deviations_may_cross() {
    // Traps 14 and 15.
    let low = |args: Value| match first_plugin(&with_plugins(&json!({}), &[("LowNodeUtilization", args)])) {
        PluginConfig::LowNodeUtilization(args) => args,
        other => panic!("{other:?}"),
    };
    let args = low(json!({"thresholds": {"cpu": 50}, "targetThresholds": {"cpu": 50}}));
    assert_eq!((args.thresholds["cpu"], args.target_thresholds["cpu"]), (50.0, 50.0));
    let args = low(json!({"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 20}, "useDeviationThresholds": true}));
    let expected = LowNodeUtilizationArgs {
        thresholds: [("cpu".into(), 60.0)].into(),
        target_thresholds: [("cpu".into(), 20.0)].into(),
        use_deviation_thresholds: true,
        ..LowNodeUtilizationArgs::default()
    };
    assert_eq!(args, expected);
}

#[test]
fn an_empty_list_of_included_taints_is_not_unset() {
    // Trap 17.
    let included = |args: Value| {
        let policy = with_plugins(&json!({}), &[("RemovePodsViolatingNodeTaints", args)]);
        match first_plugin(&policy) {
            PluginConfig::RemovePodsViolatingNodeTaints(args) => args.taints.included,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(included(json!({"includedTaints": []})), Some(Vec::new()));
    assert_eq!(included(json!({})), None);
}

#[test]
fn failed_pods_are_left_alone_for_an_hour_unless_told_otherwise() {
    // Trap 18.
    for (args, seconds) in [(json!({}), 3_600), (json!(null), 3_600), (json!({"minPodLifetimeSeconds": 0}), 0)] {
        let plugin = first_plugin(&with_plugins(&json!({}), &[("RemoveFailedPods", args)]));
        let expected = RemoveFailedPodsArgs { min_pod_lifetime_seconds: seconds, ..RemoveFailedPodsArgs::default() };
        assert_eq!(plugin, PluginConfig::RemoveFailedPods(expected));
    }
}

#[test]
fn protections_come_from_the_lists_or_else_from_the_older_booleans() {
    // Trap 20, and the table of spec 5.1.
    use PodProtection::{
        DaemonSetPods, FailedBarePods, PodsWithLocalStorage, PodsWithPVC, PodsWithoutPDB, SystemCriticalPods,
    };
    let config = json!({"PodsWithPVC": {"protectedStorageClasses": [{"name": "fast"}]}});
    for (args, expected, classes) in [
        (json!({}), PodProtection::DEFAULT.to_vec(), 0),
        (
            json!({"evictLocalStoragePods": true, "ignorePvcPods": true, "podProtections": {"config": config}}),
            vec![DaemonSetPods, SystemCriticalPods, FailedBarePods, PodsWithPVC],
            0,
        ),
        (
            json!({"podProtections": {"defaultDisabled": ["DaemonSetPods"], "extraEnabled": ["PodsWithoutPDB"]}}),
            vec![PodsWithLocalStorage, SystemCriticalPods, FailedBarePods, PodsWithoutPDB],
            0,
        ),
        (
            json!({"podProtections": {"extraEnabled": ["PodsWithPVC"], "config": config}}),
            vec![PodsWithLocalStorage, DaemonSetPods, SystemCriticalPods, FailedBarePods, PodsWithPVC],
            1,
        ),
    ] {
        let policy = read(&with_plugins(&args, &[])).policy;
        let evictor = &policy.profiles[0].evictor;
        assert_eq!((&evictor.protections, evictor.protected_storage_classes.len()), (&expected, classes), "{args}");
    }
}

#[test]
fn plugins_run_in_the_order_in_which_they_are_enabled_and_as_often() {
    let path = tests_folder().join("policies/v1alpha2-everything.yaml");
    let policy = load(&path, &OneClass).unwrap().policy;
    let names: Vec<&str> = policy.profiles[0].deschedule.iter().map(|p| p.name().as_str()).collect();
    assert_eq!(names, ["PodLifeTime", "RemoveFailedPods", "RemovePodsHavingTooManyRestarts", "PodLifeTime"]);
    let PluginConfig::RemovePodsViolatingNodeAffinity(args) = &policy.profiles[1].deschedule[2] else { panic!() };
    assert_eq!(args.types, [NodeAffinityType::Required, NodeAffinityType::Preferred]);
}

#[test]
fn the_first_of_two_configurations_counts() {
    let policy = with_plugins(
        &json!({}),
        &[("RemoveFailedPods", json!({"reasons": ["a"]})), ("RemoveFailedPods", json!({"reasons": ["b"]}))],
    );
    let read = read(&policy);
    let plugins = &read.policy.profiles[0].deschedule;
    // Named twice in `enabled` as well, so it runs twice.
    assert!(plugins.len() == 2 && plugins[0] == plugins[1] && read.warnings.len() == 1, "{read:?}");
    assert_eq!(plugins[0], first_plugin(&with_plugins(&json!({}), &[("RemoveFailedPods", json!({"reasons": ["a"]}))])));
}

/// Field names and words of policies, and things that are neither.
const WORDS: &[&str] = &[
    "apiVersion",
    "kind",
    "profiles",
    "strategies",
    "pluginConfig",
    "plugins",
    "name",
    "args",
    "params",
    "enabled",
    "balance",
    "deschedule",
    "filter",
    "DefaultEvictor",
    "LowNodeUtilization",
    "HighNodeUtilization",
    "PodLifeTime",
    "podLifeTime",
    "RemoveFailedPods",
    "nodeResourceUtilizationThresholds",
    "thresholds",
    "targetThresholds",
    "podProtections",
    "defaultDisabled",
    "config",
    "PodsWithPVC",
    "protectedStorageClasses",
    "priorityThreshold",
    "minPodAge",
    "labelSelector",
    "matchLabels",
    "matchExpressions",
    "namespaces",
    "include",
    "conditions",
    "exitCodes",
    "nodeSelector",
    "metricsProviders",
    "source",
    "Prometheus",
    "prometheus",
    "url",
    "metricsUtilization",
    "includedTaints",
    "descheduler/v1alpha1",
    "descheduler/v1alpha2",
    "DeschedulerPolicy",
    "",
    "a in (b,",
    "%",
    "-9223372036854775808ns",
    "\u{b5}s",
];

fn word() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(WORDS).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((word(), inner), 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every place in a value, so that one of them can be replaced.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                places(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(list) => {
            for (i, value) in list.iter().enumerate() {
                places(value, &format!("{at}/{i}"), found);
            }
        }
        _ => {}
    }
}

/// One policy of each version that uses every field.
fn good_policies() -> [Value; 2] {
    ["v1alpha1", "v1alpha2"].map(|version| {
        let text = fs::read_to_string(tests_folder().join(format!("policies/{version}-everything.yaml"))).unwrap();
        serde_saphyr::from_str(&text).unwrap()
    })
}

proptest! {
    #[test]
    fn no_value_panics(value in any_value()) {
        let _ = from_value(&value, &OneClass);
        let versioned = json!({"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy", "strategies": value});
        let _ = from_value(&versioned, &OneClass);
        let _ = from_value(&with_plugins(&value, &[("PodLifeTime", value.clone())]), &OneClass);
    }

    #[test]
    fn a_policy_with_one_value_replaced_reads_back_or_says_where(
        of in 0..2_usize, place in any::<prop::sample::Index>(), value in any_value()
    ) {
        let mut policy = good_policies()[of].clone();
        let mut found = Vec::new();
        places(&policy, "", &mut found);
        let at: &String = place.get(&found[..]);
        *policy.pointer_mut(at).unwrap() = value;
        match from_value(&policy, &OneClass) {
            Ok(read) => prop_assert_eq!(&from_text(&to_yaml(&read.policy), &OneClass).unwrap().policy, &read.policy),
            Err(error) => prop_assert!(!error.errors.is_empty()),
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let _ = from_text(&text, &OneClass);
    }
}
