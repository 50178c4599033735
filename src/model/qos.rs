//! The BestEffort quality-of-service class.

use super::resources::{CPU, MEMORY};
use super::{Pod, ResourceRequirements};

/// Whether a pod is of class BestEffort: by its status if that says so, else because it neither asks for nor is limited in
/// cpu or memory. Pod-level resources, where there are any, decide alone.
pub fn is_best_effort(pod: &Pod) -> bool {
    if !pod.status.qos_class.is_empty() {
        return &*pod.status.qos_class == "BestEffort";
    }
    match &pod.spec.resources {
        Some(resources) => asks_for_nothing(resources),
        None => pod.spec.containers.iter().chain(&pod.spec.init_containers).all(|c| asks_for_nothing(&c.resources)),
    }
}

fn asks_for_nothing(resources: &ResourceRequirements) -> bool {
    let lists = [&resources.requests, &resources.limits];
    !lists.into_iter().any(|list| [CPU, MEMORY].iter().any(|name| list.get(*name).is_some_and(|q| q.is_positive())))
}

#[cfg(test)]
mod tests {
    use super::super::testing::{container, pod, quantity};
    use super::*;

    #[test]
    fn only_cpu_and_memory_make_a_class() {
        for (rule, p, best_effort) in [
            ("nothing", pod("p"), true),
            ("zero", pod("p").cpu("0"), true),
            ("another resource", pod("p").request("nvidia.com/gpu", "1").request("ephemeral-storage", "1Gi"), true),
            ("a request", pod("p").memory("1"), false),
            ("an init container's", pod("p").init(container("i").cpu("1m")), false),
            (
                "a limit",
                pod("p").with(|p| {
                    p.spec.containers[0].resources.limits.insert(CPU.into(), quantity("1"));
                }),
                false,
            ),
            ("pod level", pod("p").pod_level(CPU, "1"), false),
            ("pod level decides alone", pod("p").cpu("1").pod_level("hugepages-2Mi", "2Mi"), true),
            ("status", pod("p").with(|p| p.status.qos_class = "Burstable".into()), false),
            ("status over spec", pod("p").cpu("1").with(|p| p.status.qos_class = "BestEffort".into()), true),
        ] {
            assert_eq!(is_best_effort(&p.build()), best_effort, "{rule}");
        }
    }
}
