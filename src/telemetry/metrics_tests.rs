use super::*;

fn page_of_everything() -> String {
    let metrics = Metrics::default();
    let profile = Str::from("default-scheduler");
    metrics.attempt(AttemptResult::Scheduled, &profile, Duration::from_micros(15));
    metrics.attempt(AttemptResult::Unschedulable, &profile, Duration::from_micros(15));
    metrics.attempt(AttemptResult::Error, &profile, Duration::from_micros(15));
    metrics.dry_run(AttemptResult::Scheduled, &profile);
    metrics.algorithm(Duration::from_micros(15));
    metrics.refused("NodeResourcesFit", &profile);
    metrics.feed_events("pods", FeedResult::Applied, 3);
    metrics.feed_events("pods", FeedResult::Stale, 0);
    metrics.feed_batch(Duration::from_micros(15));
    metrics.snapshot(SnapshotEvent::Begun);
    let (_open, closed) = (Box::leak(Box::new(metrics.feed_stream("pods"))), metrics.feed_stream("pods"));
    drop(closed);
    let calls = metrics.calls("unary", "berth.v1.SchedulerService", "Schedule");
    calls.started();
    assert_eq!(calls.ended(0, Duration::from_micros(30)), "OK");
    assert_eq!(calls.ended(77, Duration::from_micros(30)), "Unknown");
    metrics.config_reloaded(false);
    metrics.policy_reloaded(true);
    metrics.plan("planned", PlanResult::Planned, Duration::from_micros(15));
    let sizes = Sizes {
        cache: vec![("nodes", 3), ("assumed_pods", 1)],
        pods: vec![("bound", 5)],
        objects: vec![("Namespace", 2)],
        reservations: vec![("decided", 1)],
        reservation_events: vec![("expired", 2)],
        revision: 7,
        ready: true,
        sources: vec![("informer".into(), 1.5)],
        started_seconds: 1.0,
        config: Some((true, 1_700_000_000.0)),
        policy: Some(false),
    };
    metrics.render(&sizes).unwrap()
}

#[test]
fn label_names_and_values_are_those_of_kube_scheduler_under_another_prefix() {
    let page = page_of_everything();
    for line in [
        "berth_schedule_attempts_total{result=\"scheduled\",profile=\"default-scheduler\"} 1",
        "berth_config_reloads_total{result=\"failure\"} 1",
        "berth_config_last_reload_successful 1",
        "berth_config_last_reload_success_timestamp_seconds 1700000000.0",
        "berth_policy_reloads_total{result=\"success\"} 1",
        "berth_policy_last_reload_successful 0",
        "berth_eviction_plans_total{mode=\"planned\",result=\"planned\"} 1",
        "berth_eviction_plan_duration_seconds_count{mode=\"planned\",result=\"planned\"} 1",
        "berth_schedule_attempts_total{result=\"unschedulable\",profile=\"default-scheduler\"} 1",
        "berth_schedule_attempts_total{result=\"error\",profile=\"default-scheduler\"} 1",
        "berth_scheduling_attempt_duration_seconds_count{result=\"error\",profile=\"default-scheduler\"} 1",
        "berth_dry_runs_total{result=\"scheduled\",profile=\"default-scheduler\"} 1",
        "berth_scheduling_algorithm_duration_seconds_bucket{le=\"0.00001\"} 0",
        "berth_scheduling_algorithm_duration_seconds_bucket{le=\"0.00002\"} 1",
        "berth_unschedulable_attempts_total{plugin=\"NodeResourcesFit\",profile=\"default-scheduler\"} 1",
        "berth_cache_size{type=\"nodes\"} 3",
        "berth_cache_size{type=\"assumed_pods\"} 1",
        "berth_pods{state=\"bound\"} 5",
        "berth_reservation_events_total{event=\"expired\"} 2",
        "berth_feed_events_total{stream=\"pods\",result=\"applied\"} 3",
        "berth_feed_streams{stream=\"pods\"} 1",
        "berth_feed_staleness_seconds{source=\"informer\"} 1.5",
        "berth_view_revision 7",
        "berth_ready 1",
        "grpc_server_started_total{grpc_type=\"unary\",grpc_service=\"berth.v1.SchedulerService\",grpc_method=\"Schedule\"} 1",
        "grpc_server_handled_total{grpc_type=\"unary\",grpc_service=\"berth.v1.SchedulerService\",grpc_method=\"Schedule\",\
         grpc_code=\"Unknown\"} 1",
        "# EOF",
    ] {
        assert!(page.lines().any(|l| l == line), "{line} is not in\n{page}");
    }
    assert!(!page.contains("stale\""), "what never happened has no line");
}

/// Dashboards and alerts name these: a change here is a change for every operator, and belongs into README's table.
#[test]
fn the_metric_families_are_these() {
    let page = page_of_everything();
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let mut families: Vec<&str> = types.filter(|family| *family != "process_resident_memory_bytes gauge").collect();
    families.sort_unstable();
    assert_eq!(
        families,
        [
            "berth_build_info gauge",
            "berth_cache_size gauge",
            "berth_config_last_reload_success_timestamp_seconds gauge",
            "berth_config_last_reload_successful gauge",
            "berth_config_reloads counter",
            "berth_dry_runs counter",
            "berth_eviction_plan_duration_seconds histogram",
            "berth_eviction_plans counter",
            "berth_feed_batch_duration_seconds histogram",
            "berth_feed_events counter",
            "berth_feed_snapshots counter",
            "berth_feed_sources gauge",
            "berth_feed_staleness_seconds gauge",
            "berth_feed_streams gauge",
            "berth_objects gauge",
            "berth_pods gauge",
            "berth_policy_last_reload_successful gauge",
            "berth_policy_reloads counter",
            "berth_ready gauge",
            "berth_reservation_events counter",
            "berth_reservations gauge",
            "berth_schedule_attempts counter",
            "berth_scheduling_algorithm_duration_seconds histogram",
            "berth_scheduling_attempt_duration_seconds histogram",
            "berth_unschedulable_attempts counter",
            "berth_view_revision gauge",
            "grpc_server_handled counter",
            "grpc_server_handling_seconds histogram",
            "grpc_server_started counter",
            "process_start_time_seconds gauge",
        ]
    );
}
