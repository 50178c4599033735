//! The served binary as an operator meets it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

struct Served {
    child: Child,
    greeting: Vec<String>,
    addr: String,
}

fn berth(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.args(args).current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli")).env_remove("RUST_LOG");
    command
}

/// Starts `berth serve` on a free port and waits for what it prints.
fn serve(args: &[&str]) -> Served {
    let mut command = berth(&["serve", "--addr", "127.0.0.1:0"]);
    let mut child = command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut greeting = Vec::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        greeting.push(line.unwrap());
        if greeting.last().is_some_and(|line| line.contains("SchedulerService/Schedule")) {
            break;
        }
    }
    let addr = greeting[0].rsplit(' ').next().unwrap().to_owned();
    Served { child, greeting, addr }
}

impl Served {
    fn signal(&self, name: &str) {
        assert!(Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Where the greeting says that the admin port is.
    fn admin(&self) -> String {
        let line = self.greeting.iter().find_map(|line| line.trim().strip_prefix("admin")).expect("an admin port");
        line.split(['/', ',']).find(|part| part.contains(':') && !part.contains("http")).unwrap().to_owned()
    }

    /// Status and body of an answer of the admin port.
    fn http(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.admin()).unwrap();
        let length = body.len();
        write!(stream, "{method} {path} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn end(mut self) -> (Option<i32>, String) {
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap().code(), log)
    }
}

fn healthcheck(addr: &str) -> (Option<i32>, String) {
    let Output { status, stdout, .. } = berth(&["healthcheck", "--addr", addr]).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn it_says_what_it_serves_and_ends_well_on_sigterm() {
    let served = serve(&["--cluster", "cluster.yaml"]);
    let text = served.greeting.join("\n");
    assert!(text.contains("2 nodes") && text.contains("berth.v1.FeedService"), "{text}");
    assert!(text.contains(&format!("{} berth.v1.SchedulerService/Schedule", served.addr)), "{text}");
    assert_eq!(healthcheck(&served.addr), (Some(0), "SERVING\n".to_owned()));
    served.signal("-TERM");
    let (code, log) = served.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("SIGTERM"), "{log}");
}

#[test]
fn without_nodes_it_is_not_serving_and_sigint_ends_it_quietly() {
    let served = serve(&["--log", "warn"]);
    assert_eq!(healthcheck(&served.addr), (Some(1), "NOT_SERVING\n".to_owned()));
    served.signal("-INT");
    let (code, log) = served.end();
    assert_eq!((code, log.as_str()), (Some(0), ""));
}

#[test]
fn an_address_in_use_is_a_failure_and_a_wrong_option_is_wrong_usage() {
    let served = serve(&[]);
    for (args, code, part) in [
        (&["serve", "--addr", &served.addr][..], 1, "can't listen on"),
        (&["serve", "--addr", "127.0.0.1:0", "--admin-addr", &served.addr], 1, "name another with --admin-addr"),
        (&["serve", "--addr", "nowhere"], 2, "--addr nowhere"),
        (&["serve", "--addr", "127.0.0.1:0", "--admin-addr", "nowhere"], 2, "--admin-addr nowhere"),
        (&["serve", "--addr", "127.0.0.1:0", "--admin-addr", "0.0.0.0:0"], 2, "refusing to listen on 0.0.0.0:0"),
        (&["serve", "--addr", "127.0.0.1:0", "--log", "inof"], 2, "\"inof\" is no level"),
        (&["serve", "--addr", "127.0.0.1:0", "--log-format", "xml"], 2, "[possible values: text, json]"),
        (&["serve", "--addr", "127.0.0.1:0", "--log", "a=b=c"], 2, "log filter"),
        (&["serve", "--addr", "127.0.0.1:0", "--require", "Deployment"], 2, "there is Node, Pod"),
    ] {
        let output = berth(args).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{args:?}: {text}");
        assert!(text.contains(part), "{args:?}: {text}");
    }
    served.signal("-TERM");
    assert_eq!(served.end().0, Some(0));
}

fn compare(addr: &str, args: &[&str], dump: &str) -> (Option<i32>, String, String) {
    let mut child = berth(&[&["compare", "--addr", addr, "-f", "-"], args].concat())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), dump.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// As the table is, without widths and without the incarnation, which is another each time.
fn squeezed(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
    lines.map(|line| line.split(" at revision ").next().unwrap().to_owned()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn a_dump_is_compared_with_what_is_served() {
    let served = serve(&["--cluster", "cluster.yaml"]);
    let dump = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/cluster.yaml")).unwrap();
    let (code, table, log) = compare(&served.addr, &[], &dump);
    assert_eq!((code, log.as_str()), (Some(0), ""), "{table}");
    let expected = [
        "KIND TRUTH CACHE SAME MISSING EXTRA REPLACED DIFFERENT",
        "Node 2 2 2 0 0 0 0",
        "Pod 1 1 1 0 0 0 0",
        "no difference",
    ];
    assert_eq!(squeezed(&table), expected);

    let moved = dump
        .replace("name: n2, labels: {kubernetes.io/hostname: n2}", "name: n9")
        .replace("nodeName: n1", "nodeName: n2");
    let moved = moved.replace("cpu: \"4\"", "cpu: 4500m");
    let (code, table, _) = compare(&served.addr, &[], &moved);
    let expected = [
        "DIFFERENCE OBJECT FIELD TRUTH CACHE BEHIND",
        "different Node n1 status.allocatable[\"cpu\"] 4500m 4",
        "extra Node n2",
        "missing Node n9",
        "different Pod default/web-1 spec.nodeName n2 n1",
        "room-misplaced Pod default/web-1 takes room on n1, is bound to n2",
        "KIND TRUTH CACHE SAME MISSING EXTRA REPLACED DIFFERENT",
        "Node 2 2 0 1 1 0 1",
        "Pod 1 1 0 0 0 0 1",
        "5 differences",
    ];
    assert_eq!((code, squeezed(&table)), (Some(3), expected.map(str::to_owned).to_vec()), "{table}");

    let (code, json, _) = compare(&served.addr, &["-o", "json"], &moved);
    let told: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &told["differences"][3]["fields"][0]["truth"]), (Some(3), &serde_json::json!("n2")));
    assert_eq!(told["kinds"][0]["missing"], 1);
    let (code, yaml, _) =
        compare(&served.addr, &["-o", "yaml", "--kinds", "services"], "{apiVersion: v1, kind: List, items: []}");
    assert!(code == Some(0) && yaml.contains("kind: Service"), "{yaml}");

    let (code, _, log) =
        compare(&served.addr, &[], "{apiVersion: v1, kind: Pod, metadata: {name: Bad_Name}, spec: {}}");
    assert_eq!(code, Some(2));
    assert!(log.contains("standard input: document 1: Pod default/Bad_Name: metadata.name: "), "{log}");
    let (code, _, log) = compare(&served.addr, &[], "{apiVersion: v1, kind: List, items: []}");
    assert_eq!(code, Some(2), "{log}");
    let (code, _, log) = compare("127.0.0.1:1", &[], &dump);
    assert_eq!(code, Some(1));
    assert!(log.contains("127.0.0.1:1"), "{log}");
    served.signal("-TERM");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn the_admin_port_answers_probes_and_scrapes() {
    let served = serve(&["--cluster", "cluster.yaml"]);
    assert_eq!(served.http("GET", "/healthz", ""), (200, "ok\n".to_owned()));
    assert_eq!(served.http("GET", "/readyz", ""), (200, "ok\n".to_owned()));
    healthcheck(&served.addr);
    let (status, page) = served.http("GET", "/metrics", "");
    assert_eq!(status, 200);
    let checked =
        "grpc_type=\"unary\",grpc_service=\"grpc.health.v1.Health\",grpc_method=\"Check\",grpc_code=\"OK\"} 1";
    assert!(page.lines().any(|line| line.ends_with(checked)), "{page}");
    assert!(page.contains("berth_cache_size{type=\"nodes\"} 2\n"), "{page}");
    let (status, dump) = served.http("GET", "/debug/cache", "");
    assert!(status == 200 && dump.contains("\nnodes (2)\n"), "{dump}");
    served.signal("-TERM");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn admin_addr_none_opens_no_admin_port() {
    let served = serve(&["--admin-addr", "none"]);
    assert!(!served.greeting.join("\n").contains("admin"), "{:?}", served.greeting);
    served.signal("-TERM");
    assert_eq!(served.end().0, Some(0));
}

#[test]
fn json_lines_of_a_call_carry_its_request_id_once_the_level_is_raised_live() {
    let served = serve(&["--log", "warn", "--log-format", "json"]);
    healthcheck(&served.addr);
    assert_eq!(served.http("PUT", "/debug/log", "warn,berth::api=debug").0, 200);
    healthcheck(&served.addr);
    let (status, reason) = served.http("PUT", "/debug/log", "loud");
    assert!(status == 400 && reason.contains("\"loud\" is no level"), "{status} {reason}");
    assert_eq!(served.http("GET", "/debug/log", "").1.trim(), "berth::api=debug,warn");
    served.signal("-TERM");
    let (code, log) = served.end();
    assert_eq!(code, Some(0), "{log}");
    let lines: Vec<serde_json::Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let calls: Vec<_> = lines.iter().filter(|line| line["message"] == "call ended").collect();
    assert_eq!(calls.len(), 1, "only the call after the change was logged: {log}");
    assert_eq!(calls[0]["span"]["method"], "/grpc.health.v1.Health/Check", "{log}");
    assert!(calls[0]["span"]["request_id"].as_str().is_some_and(|id| id.ends_with("-2")), "{log}");
    assert_eq!(calls[0]["code"], "OK");
}

const CONFIG: &str =
    "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{schedulerName: NAME}]\n";

/// A file of this process alone, with a profile of this name.
fn config(file: &str, profile: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("berth-serve-{}-{file}", std::process::id()));
    std::fs::write(&path, CONFIG.replace("NAME", profile)).unwrap();
    path
}

impl Served {
    /// Waits until the metrics page has this line.
    fn metric(&self, line: &str) {
        let begun = std::time::Instant::now();
        loop {
            let (_, page) = self.http("GET", "/metrics", "");
            if page.lines().any(|l| l == line) {
                return;
            }
            assert!(begun.elapsed().as_secs() < 60, "{line} didn't come: {page}");
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}

#[test]
fn a_changed_configuration_is_taken_and_a_wrong_one_is_not() {
    let path = config("reload.yaml", "one");
    let served = serve(&["--cluster", "cluster.yaml", "--scheduler-config", path.to_str().unwrap()]);
    let text = served.greeting.join("\n");
    assert!(text.contains(&format!("profiles one of {}", path.display())), "{text}");
    served.metric("berth_config_last_reload_successful 1");

    std::fs::write(&path, CONFIG.replace("NAME", "two")).unwrap();
    served.metric("berth_config_reloads_total{result=\"success\"} 1");
    std::fs::write(&path, CONFIG.replace("NAME", "''")).unwrap();
    served.metric("berth_config_reloads_total{result=\"failure\"} 1");
    served.metric("berth_config_last_reload_successful 0");
    // Unchanged, and read all the same.
    served.signal("-HUP");
    served.metric("berth_config_reloads_total{result=\"failure\"} 2");
    std::fs::write(&path, CONFIG.replace("NAME", "three")).unwrap();
    served.metric("berth_config_last_reload_successful 1");
    served.signal("-HUP");
    served.metric("berth_config_reloads_total{result=\"success\"} 3");

    served.signal("-TERM");
    let (code, log) = served.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("profiles in force: two") && log.contains("profiles in force: three"), "{log}");
    assert!(log.contains("profiles[0].schedulerName: Required value"), "{log}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_wrong_configuration_at_the_start_is_refused_with_all_its_mistakes() {
    let path = config("wrong.yaml", "{}, extra: 1");
    let file = path.to_str().unwrap();
    for command in [
        &["serve", "--addr", "127.0.0.1:0", "--scheduler-config", file][..],
        &["schedule", "--cluster", "cluster.yaml", "-f", "small.yaml", "--scheduler-config", file],
    ] {
        let output = berth(command).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("{file}: profiles[0].extra: unknown field")), "{text}");
        assert!(text.contains(&format!("{file}: profiles[0].schedulerName: expected a string")), "{text}");
    }
    std::fs::remove_file(path).unwrap();
}

/// A policy that names a priority class, which nobody has fed yet.
const POLICY: &str = "apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: p
  pluginConfig: [{name: DefaultEvictor, args: {priorityThreshold: {name: CLASS}}}]
";

#[test]
fn a_changed_descheduler_policy_is_taken_and_a_wrong_one_is_not() {
    let path = std::env::temp_dir().join(format!("berth-serve-{}-policy.yaml", std::process::id()));
    std::fs::write(&path, POLICY.replace("CLASS", "one")).unwrap();
    let served = serve(&["--cluster", "cluster.yaml", "--descheduler-policy", path.to_str().unwrap()]);
    let text = served.greeting.join("\n");
    assert!(text.contains(&format!("policy   {}", path.display())), "{text}");
    served.metric("berth_policy_last_reload_successful 1");

    std::fs::write(&path, POLICY.replace("CLASS", "two")).unwrap();
    served.metric("berth_policy_reloads_total{result=\"success\"} 1");
    std::fs::write(&path, POLICY.replace("pluginConfig", "pluginConfigs")).unwrap();
    served.metric("berth_policy_reloads_total{result=\"failure\"} 1");
    served.metric("berth_policy_last_reload_successful 0");
    std::fs::write(&path, POLICY).unwrap();
    served.metric("berth_policy_reloads_total{result=\"success\"} 2");
    served.signal("-HUP");
    served.metric("berth_policy_reloads_total{result=\"success\"} 3");

    served.signal("-TERM");
    let (code, log) = served.end();
    assert_eq!(code, Some(0), "{log}");
    assert!(log.contains("descheduler policy has 1 mistake, that of before stays"), "{log}");
    assert!(log.contains("profiles[0].pluginConfigs: unknown field"), "{log}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_wrong_descheduler_policy_at_the_start_is_refused_with_all_its_mistakes() {
    let path = std::env::temp_dir().join(format!("berth-serve-{}-wrong-policy.yaml", std::process::id()));
    std::fs::write(&path, POLICY.replace("pluginConfig", "pluginConfigs").replace("name: p", "nam: p")).unwrap();
    let file = path.to_str().unwrap();
    let output = berth(&["serve", "--addr", "127.0.0.1:0", "--descheduler-policy", file]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains(&format!("{file}: profiles[0].pluginConfigs: unknown field")), "{text}");
    assert!(text.contains(&format!("{file}: profiles[0].nam: unknown field")), "{text}");
    std::fs::remove_file(path).unwrap();
    let output = berth(&["serve", "--addr", "127.0.0.1:0", "--descheduler-policy", "no-such.yaml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}
