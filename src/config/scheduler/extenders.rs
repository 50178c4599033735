//! HTTP extenders: Berth asks nobody, so each is refused by its address; its other mistakes are told as well.

use crate::manifest::error::{Cut, invalid, invalid_number};
use crate::manifest::reader::Reader;
use crate::model::resources::ResourceClass;

/// Refuses whatever `extenders` lists.
pub(super) fn check(r: &Reader<'_>) {
    let mut binders = 0;
    let mut managed: Vec<String> = Vec::new();
    r.list("extenders", |e| {
        e.only(&[
            "bindVerb",
            "enableHTTPS",
            "filterVerb",
            "httpTimeout",
            "ignorable",
            "managedResources",
            "nodeCacheCapable",
            "preemptVerb",
            "prioritizeVerb",
            "tlsConfig",
            "urlPrefix",
            "weight",
        ]);
        let url = e.text("urlPrefix").unwrap_or_default();
        e.error(format!("extender \"{}\" is not supported: Berth asks no one during a decision", Cut(url)));
        let set = |field: &str| e.text(field).is_some_and(|verb| !verb.is_empty());
        let weight = e.integer("weight");
        if set("prioritizeVerb") && weight.unwrap_or_default() <= 0 {
            let message = "must have a positive weight applied to it";
            e.error_in("weight", invalid_number(weight.unwrap_or_default(), message));
        }
        binders += usize::from(set("bindVerb"));
        e.list("managedResources", |m| {
            m.only(&["ignoredByScheduler", "name"]);
            let name = m.text("name").unwrap_or_default();
            if ResourceClass::of(name) != ResourceClass::Extended {
                m.error_in("name", invalid(name, "is an invalid extended resource name"));
            }
            if managed.iter().any(|known| known == name) {
                m.error_in("name", invalid(name, "duplicate extender managed resource name"));
            }
            managed.push(name.to_owned());
            Some(())
        });
        Some(())
    });
    if binders > 1 {
        let found = format!("found {binders} extenders implementing bind");
        r.error_in("extenders", invalid(&found, "only one extender can implement bind"));
    }
}
