//! JSON and YAML text, files, and the places that errors name.

use std::path::Path;

use super::super::{FileContents, Options, parse_json, read_files, read_pods, read_pods_str, read_str};
use crate::model::testing::quantity;
use crate::model::{Object, Pod};

fn read(text: &str) -> FileContents {
    read_str(text, "cluster.yaml", Options::default())
}

fn names<T>(contents: &FileContents<T>, name: impl Fn(&T) -> String) -> Vec<String> {
    assert_eq!(errors(contents), Vec::<String>::new());
    contents.objects.iter().map(|o| name(&o.value)).collect()
}

fn keys(text: &str) -> Vec<String> {
    names(&read(text), |o: &Object| o.meta().key())
}

fn errors<T>(contents: &FileContents<T>) -> Vec<String> {
    contents.errors.iter().map(ToString::to_string).collect()
}

fn node(name: &str) -> String {
    format!("apiVersion: v1\nkind: Node\nmetadata:\n  name: {name}\n")
}

#[test]
fn documents_in_yaml_and_json_are_read_in_order() {
    assert_eq!(keys(&format!("{}---\n{}", node("a"), node("b"))), ["a", "b"]);
    assert_eq!(keys(&format!("# head\n---\n{}\n---\n# nothing\n---\n{}...\n", node("a"), node("b"))), ["a", "b"]);
    assert_eq!(keys(&format!("%YAML 1.2\n---\n{}", node("a"))), ["a"]);
    let json =
        |name: &str| format!("{{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {{\"name\": \"{name}\"}}}}");
    assert_eq!(keys(&format!("{}{}\n\n{}", json("a"), json("b"), json("c"))), ["a", "b", "c"]);
    assert_eq!(keys(&format!("{}\n---\n{}\n--- {}", json("a"), node("b"), json("c"))), ["a", "b", "c"]);
    assert_eq!(keys(&format!("\u{feff}{}", node("a"))), ["a"]);
    assert_eq!(keys("{apiVersion: v1, kind: Node, metadata: {name: flow}}"), ["flow"]);
    assert_eq!(keys(&node("a").replace('\n', "\r\n")), ["a"]);
    for empty in ["", "\n\n", "# comment", "---", "---\n---\n", "null", "kind: List\nitems: []"] {
        assert_eq!(keys(empty), Vec::<String>::new(), "{empty:?}");
    }
}

#[test]
fn a_marker_inside_a_string_is_no_border() {
    let text =
        "apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n  annotations:\n    a: |\n      x\n      ---\n      y\n";
    assert_eq!(keys(text), ["a"]);
}

#[test]
fn errors_name_file_document_object_and_field() {
    let bad = "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus:\n  allocatable: {cpu: 4x, memory: -1}\n";
    let found = read(&format!("{}---\n{bad}---\n{}", node("a"), node("b")));
    assert_eq!(found.objects.len(), 2);
    assert_eq!(found.objects[1].place.to_string(), "cluster.yaml: document 3");
    assert_eq!(
        errors(&found),
        ["cluster.yaml: document 2: Node n1: status.allocatable[cpu]: quantities must match the regular expression \
          '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'; status.allocatable[memory]: Invalid value: \"-1\": must be \
          greater than or equal to 0"]
    );
    let list =
        "kind: List\napiVersion: v1\nitems:\n- {apiVersion: v1, kind: Node, metadata: {name: a}}\n- {kind: Node}\n";
    assert_eq!(
        errors(&read(list)),
        ["cluster.yaml: document 1 items[1]: Node: apiVersion: Required value; metadata.name: Required value"]
    );
}

#[test]
fn broken_text_is_located_by_line_and_column_and_costs_only_its_document() {
    let found = read(&format!("{}---\nkind: Node\n  name: [\n---\n{}", node("a"), node("b")));
    assert_eq!(found.objects.len(), 2);
    assert_eq!(errors(&found).len(), 1);
    assert!(errors(&found)[0].starts_with("cluster.yaml:7:"), "{:?}", errors(&found));
    let found = read("\n{\"kind\": \"Node\",\n \"metadata\": }");
    assert_eq!(errors(&found), ["cluster.yaml:3:14: expected value"]);
    let found = read("{\"apiVersion\": \"v1\", \"kind\": \"Node\", \"metadata\": {\"name\": \"a\"}} {,}");
    assert_eq!((found.objects.len(), errors(&found).len()), (1, 1));
}

#[test]
fn repeated_keys_are_an_error() {
    let found = read("kind: Node\nmetadata:\n  name: a\n  labels: {x: a, x: b}\n");
    assert_eq!(errors(&found), ["cluster.yaml:4:18: duplicate mapping key `x` is not allowed here"]);
    let json = "{\"spec\": {\"containers\": [{\"name\": \"a\",\n \"name\": \"b\"}]}}";
    let error = "duplicate key: spec.containers[0].name is given twice";
    assert_eq!(errors(&read(json)), [format!("cluster.yaml:2:7: {error}")]);
    assert_eq!(parse_json(json.as_bytes()).unwrap_err().to_string(), format!("2:7: {error}"));
    assert!(parse_json(b"{\"a\": {\"b\": 1}, \"c\": {\"b\": 1}}").is_ok());
}

#[test]
fn json_bytes_must_be_text() {
    let error = parse_json(b"{\"a\": \"\xff\"}").unwrap_err();
    assert_eq!((error.line, error.message.as_str()), (1, "invalid unicode code point"));
    assert_eq!(parse_json(b"{} x").unwrap_err().message, "trailing characters");
}

#[test]
fn yaml_keeps_words_and_numbers_apart() {
    let text = "apiVersion: v1\nkind: Pod\nmetadata: {name: a, uid: u, labels: {ssd: yes, zone: 007, on: off}}\n\
                spec:\n  containers:\n  - name: main\n    resources:\n      requests:\n        cpu: 1.5\n\
                \x20       memory: 9007199254740993\n        example.com/x: 4\n        ephemeral-storage: 1e3\n";
    let contents = read(text);
    assert_eq!(errors(&contents), Vec::<String>::new());
    let Object::Pod(pod) = &contents.objects[0].value else { panic!() };
    assert_eq!(pod.meta.labels, [("ssd", "yes"), ("zone", "007"), ("on", "off")].into_iter().collect());
    let requests = &pod.spec.containers[0].resources.requests;
    assert_eq!((requests["cpu"], requests["memory"]), (quantity("1.5"), quantity("9007199254740993")));
    assert_eq!(requests["ephemeral-storage"], quantity("1000"));
    let huge =
        read("apiVersion: v1\nkind: Node\nmetadata: {name: a}\nstatus: {allocatable: {x: 99999999999999999999999}}");
    assert_eq!(errors(&huge), Vec::<String>::new());
}

#[test]
fn anchors_and_merges_work() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- &base\n  apiVersion: v1\n  kind: Node\n  metadata: {name: a}\n\
                \x20 status: {allocatable: &r {cpu: 4}}\n- <<: *base\n  metadata: {name: b}\n";
    assert_eq!(keys(text), ["a", "b"]);
}

#[test]
fn a_yaml_bomb_is_refused() {
    let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for i in 1..9 {
        let list = vec![format!("*a{}", i - 1); 10].join(", ");
        text.push_str(&format!("a{i}: &a{i} [{list}]\n"));
    }
    assert_eq!(errors(&read(&text)).len(), 1);
}

#[test]
fn nesting_is_bounded() {
    let json = format!("{}{}", "[".repeat(5000), "]".repeat(5000));
    let yaml = format!("a: {json}");
    let block: String = (0..2000).map(|i| format!("{}a:\n", " ".repeat(i))).collect();
    for text in [json, yaml, block, "[".repeat(100_000), "- ".repeat(5_000)] {
        assert_eq!(errors(&read(&text)).len(), 1, "{}", &text[..20]);
    }
}

#[test]
fn other_kinds_are_counted() {
    let text = "kind: ConfigMap\n---\nkind: ConfigMap\n---\napiVersion: apps/v1\nkind: Deployment\n";
    let contents = read(text);
    assert_eq!(
        contents.skipped.into_iter().collect::<Vec<_>>(),
        [("ConfigMap".to_owned(), 2), ("Deployment".to_owned(), 1)]
    );
}

#[test]
fn the_same_object_twice_is_an_error_with_both_places() {
    let pod = |name: &str, uid: &str| {
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}, uid: {uid}}}\nspec: {{containers: [{{name: c}}]}}\n"
        )
    };
    let text = format!("{}---\n{}---\n{}", pod("a", "u1"), pod("a", "u2"), pod("b", "u1"));
    let contents = read(&text);
    assert_eq!(contents.objects.len(), 1);
    assert_eq!(
        errors(&contents),
        [
            "cluster.yaml: document 2: Pod default/a: already given at cluster.yaml: document 1",
            "cluster.yaml: document 3: Pod default/b: uid u1 is that of Pod default/a at cluster.yaml: document 1",
        ]
    );
}

#[test]
fn files_are_read_together() {
    let dir = std::env::temp_dir().join(format!("berth-manifest-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let (first, second, binary) = (dir.join("a.yaml"), dir.join("b.json"), dir.join("c.bin"));
    std::fs::write(&first, format!("{}---\n{}", node("a"), node("b"))).unwrap();
    std::fs::write(&second, "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\"}}").unwrap();
    std::fs::write(&binary, [0xff, 0xfe, 0x00]).unwrap();
    let missing = dir.join("missing.yaml");
    let contents = read_files(&[&first, &second, &missing, &binary, &dir], Options::default());
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(contents.objects.len(), 2);
    let found = errors(&contents);
    let show = |p: &Path| p.display().to_string();
    assert_eq!(found[0], format!("{}: no such file", show(&missing)));
    assert_eq!(found[1], format!("{}: isn't UTF-8 text", show(&binary)));
    assert!(found[2].starts_with(&format!("{}: can't be read: ", show(&dir))), "{}", found[2]);
    let places = (format!("{}: document 1", show(&second)), format!("{}: document 1", show(&first)));
    assert_eq!(found[3], format!("{}: Node a: already given at {}", places.0, places.1));
    assert_eq!(errors(&read_pods(&missing, Options::default())), [format!("{}: no such file", show(&missing))]);
}

#[test]
fn pods_are_read_from_workloads_beside_other_objects() {
    let text = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n---\napiVersion: apps/v1\nkind: Deployment\n\
                metadata: {name: web}\nspec: {template: {spec: {containers: [{name: c}]}}}\n";
    let contents = read_pods_str(text, "app.yaml", Options::default());
    assert_eq!(names(&contents, |p: &Pod| p.meta.key()), ["default/web-pod"]);
    assert_eq!(contents.skipped.get("Service"), Some(&1));
    assert_eq!(contents.objects[0].warnings.len(), 1);
}
