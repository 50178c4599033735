//! The profiles that decisions can be made with, by `schedulerName`.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ServiceError;
use crate::engine::Profile;
use crate::model::Str;

#[derive(Debug, Clone)]
pub struct Profiles {
    by_name: BTreeMap<Str, Arc<Profile>>,
}

impl Default for Profiles {
    fn default() -> Self {
        Self::new([Profile::default()])
    }
}

impl Profiles {
    pub fn new(profiles: impl IntoIterator<Item = Profile>) -> Self {
        Self { by_name: profiles.into_iter().map(|p| (p.name().clone(), Arc::new(p))).collect() }
    }

    pub fn get(&self, name: &str) -> Result<Arc<Profile>, ServiceError> {
        self.by_name.get(name).cloned().ok_or_else(|| ServiceError::NotFound {
            what: "profile",
            name: name.to_owned(),
            known: self.by_name.keys().take(20).cloned().collect(),
        })
    }

    /// The profile of this name, if there is one.
    pub fn find(&self, name: &str) -> Option<Arc<Profile>> {
        self.by_name.get(name).cloned()
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Profile>> {
        self.by_name.values()
    }
}
