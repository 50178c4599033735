//! HTTP extenders: Berth calls none, so a file that has some is refused. What else is wrong with them is told as well.

use super::fields::Fields;
use crate::manifest::error::Cut;
use crate::model::resources::ResourceClass;

const FIELDS: &[&str] = &[
    "urlPrefix",
    "filterVerb",
    "preemptVerb",
    "prioritizeVerb",
    "weight",
    "bindVerb",
    "enableHttps",
    "tlsConfig",
    "httpTimeout",
    "nodeCacheCapable",
    "managedResources",
    "ignorable",
];
const RESOURCE_FIELDS: &[&str] = &["name", "ignoredByScheduler"];

pub(super) fn refuse(policy: &Fields<'_>) {
    let extenders = policy.list("extenders", FIELDS).unwrap_or_default();
    let mut managed: Vec<&str> = Vec::new();
    let mut binders = 0;
    for r in &extenders {
        let url = r.text("urlPrefix").unwrap_or_default();
        r.error("", format!("extender \"{}\" is not supported: Berth asks no one during a decision", Cut(url)));
        let prioritizes = r.text("prioritizeVerb").is_some_and(|verb| !verb.is_empty());
        if prioritizes && r.integer("weight").unwrap_or(0) <= 0 {
            let text = format!("Priority for extender {url} should have a positive weight applied to it");
            r.error("weight", text);
        }
        binders += usize::from(r.text("bindVerb").is_some_and(|verb| !verb.is_empty()));
        for resource in r.list("managedResources", RESOURCE_FIELDS).unwrap_or_default() {
            let Some(name) = resource.required_text("name") else { continue };
            if ResourceClass::of(name) != ResourceClass::Extended {
                resource.error("name", format!("{name} is an invalid extended resource name"));
            }
            if managed.contains(&name) {
                resource.error("name", format!("Duplicate extender managed resource name {name}"));
            }
            managed.push(name);
        }
    }
    if binders > 1 {
        policy.error("extenders", format!("Only one extender can implement bind, found {binders}"));
    }
}
