"""The metrics of a node, with their labels."""

HISTOGRAMS = {
    "isolet_session_start_seconds": set(),
    "isolet_run_seconds": {"outcome"},
    "isolet_run_queue_seconds": set(),
    "isolet_http_request_seconds": {"dialect"},
}

SERIES = {
    "isolet_sessions": set(),
    "isolet_sessions_max": set(),
    "isolet_slots_used_ratio": set(),
    "isolet_runs_running": set(),
    "isolet_runs_waiting": set(),
    "isolet_packages_preparing": set(),
    "isolet_packages_waiting": set(),
    "isolet_sessions_created_total": set(),
    "isolet_sessions_ended_total": {"reason"},
    "isolet_refused_total": {"gate"},
    "isolet_tool_calls_total": set(),
    "isolet_memory_available_bytes": set(),
    "isolet_memory_total_bytes": set(),
    "process_resident_memory_bytes": set(),
    "process_cpu_seconds_total": set(),
    "process_open_fds": set(),
    "isolet_build_info": {"version"},
    **{f"{name}_bucket": labels | {"le"} for name, labels in HISTOGRAMS.items()},
    **{
        f"{name}_{kind}": labels for name, labels in HISTOGRAMS.items() for kind in ("sum", "count")
    },
}
"""Each series of `/metrics` that a query can name."""
