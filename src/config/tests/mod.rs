use std::path::Path;

use super::*;
use crate::engine::plugin::Plugin;
use crate::engine::profile::PostFilter;

/// Reads a profile list written as the value of `profiles`.
fn profiles(yaml: &str) -> Result<SchedulerConfig, Vec<ConfigError>> {
    let head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: ";
    load(&format!("{head}{yaml}\n"), "test.yaml")
}

fn one(yaml: &str) -> Profile {
    profiles(yaml).unwrap_or_else(|errors| panic!("{}", Lines(&errors))).profiles.remove(0)
}

fn refusal(yaml: &str) -> String {
    Lines(&profiles(yaml).unwrap_err()).to_string()
}

fn scores(profile: &Profile) -> Vec<(&str, i64)> {
    profile.scorers().map(|(plugin, weight)| (plugin.name(), weight)).collect()
}

fn filters(profile: &Profile) -> Vec<&str> {
    profile.filters().map(Plugin::name).collect()
}

fn pre_filters(profile: &Profile) -> Vec<&str> {
    profile.points().pre_filters.iter().map(|plugin| plugin.name()).collect()
}

#[test]
fn every_mistake_is_told_at_once() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests");
    let text = std::fs::read_to_string(folder.join("mistakes.yaml")).unwrap();
    let told = format!("{}\n", Lines(&load(&text, "mistakes.yaml").unwrap_err()));
    let golden = folder.join("mistakes.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&golden, &told).unwrap();
    }
    assert_eq!(told, std::fs::read_to_string(golden).unwrap());
}

#[test]
fn without_words_on_plugins_the_profile_is_the_default_one() {
    let default = Profile::default();
    for config in [profiles("[]").unwrap(), profiles("[{}]").unwrap(), profiles("null").unwrap()] {
        let [profile] = config.profiles.as_slice() else { panic!("{} profiles", config.profiles.len()) };
        assert_eq!(profile.name(), default.name());
        assert_eq!(scores(profile), scores(&default));
        assert_eq!(filters(profile), filters(&default));
        assert_eq!(pre_filters(profile), pre_filters(&default));
        assert_eq!(profile.points().post_filters, default.points().post_filters);
        assert_eq!(config.notes, [""; 0]);
    }
}

#[test]
fn a_default_plugin_listed_again_at_score_without_weight_weighs_1() {
    let profile = one("[{plugins: {score: {enabled: [{name: TaintToleration}]}}}]");
    assert_eq!(scores(&profile)[0], ("TaintToleration", 1));
    let profile = one("[{plugins: {score: {enabled: [{name: NodeResourcesFit, weight: 5}]}}}]");
    assert_eq!(scores(&profile)[..2], [("NodeResourcesFit", 5), ("TaintToleration", 3)], "its own entries come first");
}

#[test]
fn multi_point_replaces_in_place_and_appends_the_rest() {
    let profile = one("[{plugins: {multiPoint: {enabled: [{name: ImageLocality, weight: 7}]}}}]");
    let names: Vec<&str> = scores(&profile).iter().map(|(name, _)| *name).collect();
    let default = Profile::default();
    assert_eq!(names, scores(&default).iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert!(scores(&profile).contains(&("ImageLocality", 7)));
}

#[test]
fn disabling_and_enabling_follow_upstreams_precedence() {
    let only = "[{plugins: {multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: DefaultBinder}, \
                {name: NodeName}, {name: NodeResourcesFit}]}}}]";
    let profile = one(only);
    assert_eq!(filters(&profile), ["NodeName", "NodeResourcesFit"]);
    assert_eq!(pre_filters(&profile), ["NodeResourcesFit"]);
    assert_eq!(scores(&profile), [("NodeResourcesFit", 1)]);
    assert!(!profile.preempts());

    let without = one("[{plugins: {filter: {disabled: [{name: '*'}]}, score: {disabled: [{name: ImageLocality}]}}}]");
    assert_eq!(filters(&without), [""; 0]);
    assert!(!pre_filters(&without).is_empty());
    assert!(scores(&without).iter().all(|(name, _)| *name != "ImageLocality"));

    let back =
        one("[{plugins: {multiPoint: {disabled: [{name: NodePorts}]}, filter: {enabled: [{name: NodePorts}]}}}]");
    assert_eq!(filters(&back).last(), Some(&"NodePorts"), "enabled at a point although disabled for all");
    assert!(!pre_filters(&back).contains(&"NodePorts"));

    let both = one("[{plugins: {score: {enabled: [{name: ImageLocality}], disabled: [{name: ImageLocality}]}}}]");
    assert!(scores(&both).contains(&("ImageLocality", 1)), "enabled beats disabled in one list");

    let first = one("[{plugins: {filter: {enabled: [{name: NodePorts}]}}}]");
    assert_eq!(filters(&first)[..2], ["NodePorts", "NodeUnschedulable"], "own entries come first");

    let quiet = one("[{plugins: {postFilter: {disabled: [{name: DefaultPreemption}]}}}]");
    assert_eq!(quiet.points().post_filters, [PostFilter::DynamicResources]);
}

#[test]
fn several_profiles_have_names_of_their_own() {
    let config = profiles("[{schedulerName: a}, {schedulerName: b, plugins: {score: {disabled: [{name: '*'}]}}}]");
    let config = config.unwrap();
    let names: Vec<&str> = config.profiles.iter().map(|p| &**p.name()).collect();
    assert_eq!(names, ["a", "b"]);
    assert!(scores(&config.profiles[1]).is_empty());
    assert_eq!(refusal("[{schedulerName: a}, {}]"), "test.yaml: profiles[1].schedulerName: Required value");
    assert_eq!(refusal("[{schedulerName: ''}]"), "test.yaml: profiles[0].schedulerName: Required value");
}

#[test]
fn what_has_no_effect_is_noted() {
    let text = r#"{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "parallelism": 4, "percentageOfNodesToScore": 50, "podMaxBackoffSeconds": 30,
        "leaderElection": {"leaderElect": false}, "clientConnection": {"qps": 100},
        "profiles": [{"plugins": {"permit": {"disabled": [{"name": "*"}]}},
            "pluginConfig": [{"name": "DefaultPreemption", "args": {"minCandidateNodesAbsolute": 10}}]}]}"#;
    let config = load(text, "test.json").unwrap();
    assert_eq!(
        config.notes,
        [
            "parallelism has no effect: Berth decides on one thread a request",
            "percentageOfNodesToScore has no effect: Berth looks at every node",
            "podMaxBackoffSeconds has no effect: pending pods wait with the caller",
            "leaderElection has no effect: Berth has no leader; whoever asks decides whom to ask",
            "clientConnection has no effect: Berth doesn't talk to an API server",
            "profiles[0].plugins.permit has no effect: nothing of it is part of a decision",
            "profiles[0].pluginConfig[0].args.minCandidateNodesAbsolute has no effect: Berth tries preemption on every \
             node that it could help",
        ]
    );
}

#[test]
fn fields_given_twice_and_other_kinds_of_files_are_refused() {
    let twice = Lines(&load("kind: KubeSchedulerConfiguration\nkind: Policy\n", "a.yaml").unwrap_err()).to_string();
    assert!(twice.starts_with("a.yaml:2:1: ") && twice.contains("kind"), "{twice}");
    for (text, expected) in [
        ("kind: Deployment", "a.yaml: kind: Unsupported value: \"Deployment\": supported values: "),
        ("{}", "a.yaml: kind: Required value: one of KubeSchedulerConfiguration, Policy"),
        ("", "a.yaml: holds no document"),
        ("a: 1\n---\nb: 1\n", "a.yaml: holds several documents, expected one"),
        ("[]", "a.yaml: expected an object, found a list"),
    ] {
        let told = Lines(&load(text, "a.yaml").unwrap_err()).to_string();
        assert!(told.starts_with(expected), "{told}");
    }
    let missing = Lines(&read(Path::new("/no/such/file")).unwrap_err()).to_string();
    assert_eq!(missing, "/no/such/file: no such file");
}

/// Puts `other` in the place of each value of a document in turn.
fn with_each_value_replaced(value: &Value, other: &Value, try_it: &mut impl FnMut(&Value)) {
    fn walk(root: &Value, at: &mut Vec<String>, value: &Value, other: &Value, try_it: &mut impl FnMut(&Value)) {
        let mut changed = root.clone();
        if let Some(place) = changed.pointer_mut(&at.concat()) {
            *place = other.clone();
            try_it(&changed);
        }
        let children: Vec<(String, &Value)> = match value {
            Value::Object(map) => map.iter().map(|(key, value)| (format!("/{key}"), value)).collect(),
            Value::Array(list) => list.iter().enumerate().map(|(i, value)| (format!("/{i}"), value)).collect(),
            _ => Vec::new(),
        };
        for (step, child) in children {
            at.push(step);
            walk(root, at, child, other, try_it);
            at.pop();
        }
    }
    walk(value, &mut Vec::new(), value, other, try_it);
}

#[test]
fn whatever_stands_in_a_place_is_read_or_refused_in_words() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/mistakes.yaml"));
    let (found, _) = documents(&text.unwrap());
    let others = ["null", "true", "-1", "1e300", "\"\"", "\"x/y z\"", "[]", "[null]", "[[]]", "{}", "{\"a\": {}}"];
    let mut tried = 0;
    for other in others {
        let other = serde_json::from_str(other).unwrap();
        with_each_value_replaced(&found[0].value, &other, &mut |changed| {
            tried += 1;
            match from_value(changed, "test") {
                Ok(config) => assert!(!config.profiles.is_empty()),
                Err(errors) => assert!(!errors.is_empty()),
            }
        });
    }
    assert!(tried > 1_000, "{tried}");
}
