use super::*;
use crate::engine::testing::{Verdict, only, scene};
use crate::model::testing::{NodeBuilder, PodBuilder, container, node, pod};

const NAME: &str = "ImageLocality";

/// Ten nodes, n0 to n9, of which the first `having` report the image.
fn decide(image: &str, size_mib: i64, having: usize, p: PodBuilder) -> Verdict {
    let nodes = (0..10).map(|i| {
        let n: NodeBuilder = node(&format!("n{i}"));
        if i < having { n.image(image, size_mib * MIB) } else { n }
    });
    scene(nodes, []).profile(only(ImageLocality)).decide(p)
}

#[test]
fn the_score_grows_with_size_and_with_how_many_nodes_have_the_image() {
    let p = || pod("p").image("app:1");
    // 500 MiB on one of ten is 50 MiB: 100 * 27 / 977.
    assert_eq!(decide("app:1", 500, 1, p()).score(NAME, "n0"), 2);
    assert_eq!(decide("app:1", 500, 1, p()).score(NAME, "n1"), 0);
    assert_eq!(decide("app:1", 500, 10, p()).score(NAME, "n0"), 48);
    assert_eq!(decide("app:1", 5000, 10, p()).score(NAME, "n0"), 100, "capped");
    assert_eq!(decide("app:1", 23, 10, p()).score(NAME, "n0"), 0, "too small to matter");
}

#[test]
fn only_a_missing_tag_is_normalised() {
    for (reported, wanted, found) in [
        ("nginx:latest", "nginx", true),
        ("registry.example/library/nginx:latest", "nginx", false),
        ("registry.example/nginx:latest", "registry.example/nginx", true),
        ("localhost:5000/app:latest", "localhost:5000/app", true),
        ("localhost:5000/app:1", "localhost:5000/app:1", true),
        ("app@sha256:ab", "app@sha256:ab", true),
        ("nginx:1", "nginx", false),
    ] {
        let score = decide(reported, 500, 10, pod("p").image(wanted)).score(NAME, "n0");
        assert_eq!(score > 0, found, "{wanted} on a node with {reported}");
    }
}

#[test]
fn containers_raise_the_cap_and_repeats_count_each_time() {
    let twice = pod("p").image("app:1").container(container("d").image("app:1"));
    // 2 x 500 MiB between 23 and 2,000.
    assert_eq!(decide("app:1", 500, 10, twice).score(NAME, "n0"), 100 * 977 / 1977);
    let init = pod("p").image("app:1").init(container("i").image("none"));
    assert_eq!(decide("app:1", 500, 10, init).score(NAME, "n0"), 100 * 477 / 1977);
}

#[test]
fn an_image_volume_adds_its_size_and_no_cap() {
    let volume = VolumeSource::Image { reference: "model:1".into() };
    let p = pod("p").image("none").volume("m", volume);
    assert_eq!(decide("model:1", 500, 10, p).score(NAME, "n0"), 48);
}

#[test]
fn all_nodes_count_not_only_the_feasible_ones() {
    let nodes = [node("n0").image("app:1", 500 * MIB), node("n1"), node("n2").cordoned(), node("n3").cordoned()];
    let v = scene(nodes, []).decide(pod("p").image("app:1"));
    // 500 / 4 = 125 MiB.
    assert_eq!(v.score(NAME, "n0"), 100 * 102 / 977);
}
