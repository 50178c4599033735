//! Fields that look like misspelt ones.
//!
//! The API server drops unknown fields of manifests, and so does Berth; a `nodeselector` that is ignored sends the pod
//! anywhere. For the levels of an object that decisions depend on, this module knows all of Kubernetes' fields (so that no
//! real one is mistaken for a slip) and which of them Berth reads (only those are suggested).
//!
//! Cost: one merge of two sorted sequences per object, a few hundred nanoseconds for a pod.

use serde_json::{Map, Value};

/// The fields of one level. Both lists are sorted (a test checks it).
pub(crate) struct Level {
    /// Fields that Berth reads.
    read: &'static [&'static str],
    /// Kubernetes' other fields.
    other: &'static [&'static str],
}

/// The name that was probably meant, if one is close.
pub(crate) fn closest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = names.into_iter().filter_map(|name| Some((distance(written, name)?, name)));
    near.min().map(|(_, name)| name)
}

impl Level {
    /// All fields of the level.
    pub(super) fn fields(&self) -> Vec<&'static str> {
        self.read.iter().chain(self.other).copied().collect()
    }

    /// Calls `found(key, meant)` for each key that is no field but close to one that is read and not there itself.
    pub(super) fn misspelt(&self, map: &Map<String, Value>, mut found: impl FnMut(&str, &str)) {
        let (mut read, mut other) = (self.read.iter().peekable(), self.other.iter().peekable());
        // serde_json's map iterates in the order of keys, so both cursors only move forward.
        for key in map.keys() {
            let key = key.as_str();
            while read.next_if(|f| **f < key).is_some() {}
            while other.next_if(|f| **f < key).is_some() {}
            if read.peek() == Some(&&key) || other.peek() == Some(&&key) {
                continue;
            }
            if let Some(meant) = closest(key, self.read.iter().copied().filter(|f| !map.contains_key(*f))) {
                found(key, meant);
            }
        }
    }
}

/// The edit distance, case aside, if it is small for names of this length.
fn distance(key: &str, field: &str) -> Option<usize> {
    // Short names have many neighbours: `tty` is not a slip for `key`.
    let most = if field.len() <= 4 { 1 } else { 2 };
    if key.len().abs_diff(field.len()) > most {
        return None;
    }
    let (key, field) = (key.as_bytes(), field.as_bytes());
    let mut row: Vec<usize> = (0..=field.len()).collect();
    for (i, k) in key.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, f) in field.iter().enumerate() {
            let substituted = diagonal + usize::from(!k.eq_ignore_ascii_case(f));
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    Some(row[field.len()]).filter(|d| *d <= most)
}

macro_rules! levels {
    ($($name:ident: [$($read:literal)*] [$($other:literal)*];)*) => {
        $(pub(super) const $name: Level = Level { read: &[$($read),*], other: &[$($other),*] };)*
        #[cfg(test)]
        const ALL: &[(&str, &Level)] = &[$((stringify!($name), &$name)),*];
    };
}

levels! {
    OBJECT: ["apiVersion" "kind" "metadata" "spec" "status"] [];
    METADATA:
        ["annotations" "creationTimestamp" "deletionTimestamp" "generateName" "labels" "name" "namespace"
         "ownerReferences" "resourceVersion" "uid"]
        ["clusterName" "deletionGracePeriodSeconds" "finalizers" "generation" "managedFields" "selfLink"];
    POD_SPEC:
        ["affinity" "containers" "hostNetwork" "hostUsers" "initContainers" "nodeName" "nodeSelector" "overhead"
         "preemptionPolicy" "priority" "priorityClassName" "resourceClaims" "resources" "runtimeClassName"
         "schedulerName" "schedulingGates" "schedulingGroup" "terminationGracePeriodSeconds" "tolerations"
         "topologySpreadConstraints" "volumes"]
        ["activeDeadlineSeconds" "automountServiceAccountToken" "dnsConfig" "dnsPolicy" "enableServiceLinks"
         "ephemeralContainers" "hostAliases" "hostIPC" "hostPID" "hostname" "hostnameOverride" "imagePullSecrets" "os"
         "readinessGates" "restartPolicy" "securityContext" "serviceAccount" "serviceAccountName" "setHostnameAsFQDN"
         "shareProcessNamespace" "subdomain" "workloadRef"];
    CONTAINER:
        ["image" "name" "ports" "resources" "restartPolicy" "restartPolicyRules"]
        ["args" "command" "env" "envFrom" "imagePullPolicy" "lifecycle" "livenessProbe" "readinessProbe" "resizePolicy"
         "securityContext" "startupProbe" "stdin" "stdinOnce" "terminationMessagePath" "terminationMessagePolicy" "tty"
         "volumeDevices" "volumeMounts" "workingDir"];
    RESOURCES: ["limits" "requests"] ["claims"];
    PORT: ["containerPort" "hostIP" "hostPort" "protocol"] ["name"];
    AFFINITY: ["nodeAffinity" "podAffinity" "podAntiAffinity"] [];
    RULES: ["preferredDuringSchedulingIgnoredDuringExecution" "requiredDuringSchedulingIgnoredDuringExecution"] [];
    NODE_SELECTOR: ["nodeSelectorTerms"] [];
    NODE_TERM: ["matchExpressions" "matchFields"] [];
    PREFERRED_NODE_TERM: ["preference" "weight"] [];
    POD_TERM:
        ["labelSelector" "matchLabelKeys" "mismatchLabelKeys" "namespaceSelector" "namespaces" "topologyKey"] [];
    WEIGHTED_POD_TERM: ["podAffinityTerm" "weight"] [];
    SELECTOR: ["matchExpressions" "matchLabels"] [];
    REQUIREMENT: ["key" "operator" "values"] [];
    TOLERATION: ["effect" "key" "operator" "tolerationSeconds" "value"] [];
    SPREAD:
        ["labelSelector" "matchLabelKeys" "maxSkew" "minDomains" "nodeAffinityPolicy" "nodeTaintsPolicy" "topologyKey"
         "whenUnsatisfiable"] [];
    TAINT: ["effect" "key" "timeAdded" "value"] [];
    NODE_SPEC: ["taints" "unschedulable"] ["configSource" "externalID" "podCIDR" "podCIDRs" "providerID"];
    NODE_STATUS:
        ["allocatable" "capacity" "conditions" "declaredFeatures" "images"]
        ["addresses" "config" "daemonEndpoints" "features" "nodeInfo" "phase" "runtimeHandlers" "volumesAttached"
         "volumesInUse"];
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suggestions(level: &Level, keys: &[&str]) -> Vec<(String, String)> {
        let map: Map<String, Value> = keys.iter().map(|k| ((*k).to_owned(), Value::Null)).collect();
        let mut found = Vec::new();
        level.misspelt(&map, |key, meant| found.push((key.to_owned(), meant.to_owned())));
        found
    }

    #[test]
    fn levels_are_sorted_and_name_each_field_once() {
        for (name, level) in ALL {
            for list in [level.read, level.other] {
                assert!(list.is_sorted_by(|a, b| a < b), "{name}");
            }
            assert!(level.read.iter().all(|f| !level.other.contains(f)), "{name}");
        }
    }

    #[test]
    fn real_fields_are_never_taken_for_slips() {
        for (name, level) in ALL {
            let all: Vec<&str> = level.read.iter().chain(level.other).copied().collect();
            assert_eq!(suggestions(level, &all), [], "{name}");
            for field in level.other {
                assert_eq!(suggestions(level, &[field]), [], "{name} {field}");
            }
        }
    }

    #[test]
    fn wrong_case_and_small_slips_are_found() {
        for (slip, meant) in [
            ("schedulername", "schedulerName"),
            ("nodeselector", "nodeSelector"),
            ("toleration", "tolerations"),
            ("NodeName", "nodeName"),
            ("topologySpreadConstraint", "topologySpreadConstraints"),
        ] {
            assert_eq!(suggestions(&POD_SPEC, &[slip]), [(slip.to_owned(), meant.to_owned())]);
        }
        assert_eq!(suggestions(&METADATA, &["lables"]), [("lables".to_owned(), "labels".to_owned())]);
    }

    #[test]
    fn unrelated_fields_and_fields_beside_the_right_one_are_left_alone() {
        assert_eq!(suggestions(&POD_SPEC, &["somethingElse", "x", ""]), []);
        assert_eq!(suggestions(&POD_SPEC, &["nodeSelector", "nodeselector"]), []);
    }
}
