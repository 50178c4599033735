//! Kinds of change that may let a refused pod fit, under kube-scheduler's names: what its plugins register so that the
//! queue knows whom to wake.
//!
//! An event is a resource and what happened to it. Upstream's plugins register some of them each; so do Berth's, with the
//! same names. Where the filters here also react to something that upstream leaves to its five-minute flush (a namespace
//! that is relabelled, a storage object that goes), that is registered too: whoever waits for the events of the plugins
//! that refused it misses nothing.

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventResource {
    Node,
    /// A pod that takes room: bound, or holding a reservation.
    AssignedPod,
    /// The pod that waits.
    UnschedulablePod,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    CsiNode,
    CsiDriver,
    CsiStorageCapacity,
    VolumeAttachment,
    Namespace,
    Service,
    ReplicationController,
    ReplicaSet,
    StatefulSet,
    /// Anything at all.
    Wildcard,
}

impl EventResource {
    const ALL: [Self; 16] = [
        Self::Node,
        Self::AssignedPod,
        Self::UnschedulablePod,
        Self::PersistentVolume,
        Self::PersistentVolumeClaim,
        Self::StorageClass,
        Self::CsiNode,
        Self::CsiDriver,
        Self::CsiStorageCapacity,
        Self::VolumeAttachment,
        Self::Namespace,
        Self::Service,
        Self::ReplicationController,
        Self::ReplicaSet,
        Self::StatefulSet,
        Self::Wildcard,
    ];
}

/// What happened to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActionType {
    Add,
    Delete,
    UpdateNodeAllocatable,
    UpdateNodeLabel,
    /// Taints, or the cordon.
    UpdateNodeTaint,
    UpdateNodeCondition,
    UpdateNodeAnnotation,
    UpdateNodeDeclaredFeature,
    UpdatePodLabel,
    UpdatePodScaleDown,
    UpdatePodToleration,
    UpdatePodSchedulingGatesEliminated,
    /// Any change that has no name of its own.
    Update,
    /// Whatever may happen.
    All,
}

impl ActionType {
    const ALL: [Self; 14] = [
        Self::Add,
        Self::Delete,
        Self::UpdateNodeAllocatable,
        Self::UpdateNodeLabel,
        Self::UpdateNodeTaint,
        Self::UpdateNodeCondition,
        Self::UpdateNodeAnnotation,
        Self::UpdateNodeDeclaredFeature,
        Self::UpdatePodLabel,
        Self::UpdatePodScaleDown,
        Self::UpdatePodToleration,
        Self::UpdatePodSchedulingGatesEliminated,
        Self::Update,
        Self::All,
    ];
    /// An object comes, changes or goes.
    pub const ANY_CHANGE: &[Self] = &[Self::Add, Self::Update, Self::Delete];
}

/// One kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClusterEvent {
    pub resource: EventResource,
    pub action: ActionType,
}

/// A set of kinds: one bit an action for each resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventSet([u16; EventResource::ALL.len()]);

impl EventSet {
    pub const NONE: Self = Self([0; EventResource::ALL.len()]);
    /// Everything, as upstream wakes the pods of a plugin that registers nothing.
    pub const ALL: Self = Self::NONE.with(EventResource::Wildcard, &[ActionType::All]);

    /// The set with these too.
    #[must_use]
    pub const fn with(mut self, resource: EventResource, actions: &[ActionType]) -> Self {
        let mut i = 0;
        while i < actions.len() {
            self.0[resource as usize] |= 1 << actions[i] as u16;
            i += 1;
        }
        self
    }

    pub fn insert(&mut self, resource: EventResource, action: ActionType) {
        *self = self.with(resource, &[action]);
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    fn is_all(&self) -> bool {
        self.contains(ClusterEvent { resource: EventResource::Wildcard, action: ActionType::All })
    }

    pub fn contains(&self, event: ClusterEvent) -> bool {
        self.iter().any(|e| e == event)
    }

    #[must_use]
    pub fn union(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
        both
    }

    /// What of `happened` is in this set of awaited events; the wildcard on either side stands for all of the other.
    #[must_use]
    pub fn met_by(self, happened: Self) -> Self {
        if self.is_all() {
            return happened;
        }
        if happened.is_all() {
            return Self::ALL;
        }
        let mut common = self;
        common.0.iter_mut().zip(happened.0).for_each(|(mine, theirs)| *mine &= theirs);
        common
    }

    /// By resource and action. A set with the wildcard is told as that alone.
    pub fn iter(&self) -> impl Iterator<Item = ClusterEvent> {
        let resources = EventResource::ALL.into_iter().zip(self.0);
        resources.flat_map(|(resource, bits)| {
            let actions = ActionType::ALL.into_iter().filter(move |action| bits & (1 << *action as u16) != 0);
            actions.map(move |action| ClusterEvent { resource, action })
        })
    }
}

impl FromIterator<ClusterEvent> for EventSet {
    fn from_iter<T: IntoIterator<Item = ClusterEvent>>(events: T) -> Self {
        events.into_iter().fold(Self::NONE, |set, event| set.with(event.resource, &[event.action]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_awaited_and_happened_is_met() {
        let awaited = EventSet::NONE.with(EventResource::Node, &[ActionType::Add, ActionType::UpdateNodeTaint]);
        let happened = EventSet::NONE.with(EventResource::Node, &[ActionType::UpdateNodeTaint, ActionType::Delete]);
        let met = awaited.met_by(happened);
        assert_eq!(met, EventSet::NONE.with(EventResource::Node, &[ActionType::UpdateNodeTaint]));
        assert!(awaited.met_by(EventSet::NONE.with(EventResource::AssignedPod, &[ActionType::Add])).is_empty());
    }

    #[test]
    fn the_wildcard_meets_whatever_happened_and_nothing_if_nothing_did() {
        let happened = EventSet::NONE.with(EventResource::Service, ActionType::ANY_CHANGE);
        assert_eq!(EventSet::ALL.met_by(happened), happened);
        assert!(EventSet::ALL.met_by(EventSet::NONE).is_empty());
        assert!(!happened.met_by(EventSet::ALL).is_empty());
    }

    #[test]
    fn a_set_is_the_events_it_was_made_of() {
        let set = EventSet::NONE
            .with(EventResource::Node, &[ActionType::Add])
            .with(EventResource::StatefulSet, &[ActionType::Update]);
        assert_eq!(set.iter().collect::<EventSet>(), set);
        assert_eq!(set.iter().count(), 2);
    }
}
