"""Declares all metrics for Prometheus, and reads their values from a survey of all crawls. Pure.

exposition.py writes them out. Names follow Prometheus's conventions. Counters of workers have the
worker's name as a label, even where only the sum is of interest: a sum over workers would fall when
a worker leaves, and look like a counter that was reset.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from shoal.core.ledger import Cause
from shoal.frontier.values import CrawlState
from shoal.insight.metric import (
    Labels,
    Metric,
    Value,
    by,
    of_all,
    of_crawls,
    of_hosts,
    of_workers,
    of_workers_by,
)
from shoal.insight.sample import Sample, Survey
from shoal.version import __version__


class Family(msgspec.Struct, frozen=True):
    """A metric with all its values."""

    metric: Metric
    values: list[tuple[Labels, Value]]


def families(survey: Survey) -> list[Family]:
    """All metrics with their current values. Metrics without a value are included."""
    return [Family(metric, list(_known(metric, survey))) for metric in METRICS]


def _known(metric: Metric, survey: Survey) -> Iterator[tuple[Labels, Value]]:
    """The values that are known, each set of labels once: two workers may have the same name."""
    seen = set()
    for labels, value in metric.read(survey):
        key = tuple(labels.values())
        if value is not None and key not in seen:
            seen.add(key)
            yield labels, value


def _states(sample: Sample) -> Iterator[tuple[str, float]]:
    for state in CrawlState:
        yield state.value, float(sample.stats.state is state)


def _tasks(sample: Sample) -> Iterator[tuple[str, float]]:
    stats = sample.stats
    yield "waiting", stats.waiting
    yield "delayed", stats.delayed
    yield "leased", stats.leased
    yield "dead", stats.dead


METRICS = (
    of_all(
        "build_info",
        "gauge",
        "The version of the coordinator that answers; always 1.",
        lambda survey: 1.0,
        version=__version__,
    ),
    of_all(
        "leader",
        "gauge",
        "Whether a coordinator leads: without one no schedule runs, and no alert is sent.",
        lambda survey: float(survey.leader is not None),
    ),
    of_all(
        "crawls_left_out",
        "gauge",
        "Crawls without metrics here, because there are too many.",
        lambda survey: survey.left_out,
    ),
    by("state", "crawl_state", "gauge", "1 for the state that the crawl is in.", _states),
    of_crawls(
        "crawl_started_timestamp_seconds",
        "gauge",
        "When the crawl was started.",
        lambda sample: sample.stats.started_at,
    ),
    of_crawls(
        "crawl_deadline_timestamp_seconds",
        "gauge",
        "When the window of the run ends, if its schedule has one.",
        lambda sample: sample.deadline,
    ),
    of_crawls(
        "crawl_eta_seconds",
        "gauge",
        "How long the rest will take at the recent speed; absent while that is not known.",
        lambda sample: sample.eta_s,
    ),
    of_crawls(
        "crawl_previous_items",
        "gauge",
        "The items of the finished crawl before this one, once this one is finished.",
        lambda sample: sample.items_before,
    ),
    of_crawls(
        "banned_accounts",
        "gauge",
        "Accounts whose logins failed so often that they are no longer tried.",
        lambda sample: float(len(sample.banned)) if sample.stats.rules.sessions else None,
    ),
    by(
        "state",
        "tasks",
        "gauge",
        "Tasks by state: those that have not ended, and dead ones.",
        _tasks,
    ),
    of_crawls(
        "tasks_added_total",
        "counter",
        "Tasks that were added: seeds and links.",
        lambda sample: sample.stats.added,
    ),
    of_crawls(
        "tasks_done_total",
        "counter",
        "Tasks that are done.",
        lambda sample: sample.stats.done,
    ),
    of_crawls(
        "tasks_dropped_total",
        "counter",
        "Tasks that were dropped: robots.txt, gone, not allowed, cancelled.",
        lambda sample: sample.stats.dropped,
    ),
    of_crawls(
        "inbox_tasks",
        "gauge",
        "Seeds in the inbox that no worker has taken in yet.",
        lambda sample: sample.stats.inbox,
    ),
    of_crawls(
        "missing_tasks",
        "gauge",
        "Tasks that the broker should have and does not have.",
        lambda sample: sample.stats.missing,
    ),
    of_crawls(
        "retries_total",
        "counter",
        "Failed tries that were repeated.",
        lambda sample: sample.stats.retries,
    ),
    by(
        "kind",
        "failures_total",
        "counter",
        "Tries that failed, by kind.",
        lambda sample: ((k.value, n) for k, n in sample.stats.failures_by_kind.items()),
    ),
    by(
        "name",
        "spider_count_total",
        "counter",
        "The spider's own counters, by name.",
        lambda sample: sample.stats.own_counts.items(),
    ),
    of_crawls(
        "leases_lost_total",
        "counter",
        "Leases that ended because their worker died.",
        lambda sample: sample.stats.lost,
    ),
    of_crawls(
        "requests_total",
        "counter",
        "Requests for pages that were sent.",
        lambda sample: sample.stats.sent,
    ),
    of_crawls(
        "requests_blocked_total",
        "counter",
        "Requests that the host refused to serve (403, 429, 503).",
        lambda sample: sample.stats.blocked,
    ),
    of_crawls(
        "pages_unchanged_total",
        "counter",
        "Pages that were the same as in an earlier crawl, and were not sent again (304).",
        lambda sample: sample.stats.unchanged,
    ),
    of_crawls(
        "files_total",
        "counter",
        "Files of items that were stored, or were stored already.",
        lambda sample: sample.stats.files,
    ),
    of_crawls(
        "body_bytes_total",
        "counter",
        "Bytes of bodies, unpacked.",
        lambda sample: sample.stats.body_bytes,
    ),
    of_crawls(
        "wire_bytes_total",
        "counter",
        "Bytes on the wire, of requests and answers, without TLS and TCP.",
        lambda sample: sample.stats.wire_bytes,
    ),
    of_crawls(
        "links_duplicate_total",
        "counter",
        "Links that were known already.",
        lambda sample: sample.stats.duplicates,
    ),
    of_crawls(
        "links_filtered_total",
        "counter",
        "Links that were not admitted: other hosts, too deep, not http.",
        lambda sample: sample.stats.filtered,
    ),
    of_crawls(
        "items_total",
        "counter",
        "Items that were stored.",
        lambda sample: sample.stats.items,
    ),
    of_crawls(
        "items_rejected_total",
        "counter",
        "Items that did not pass validation.",
        lambda sample: sample.stats.rejected,
    ),
    of_crawls(
        "failure_concentration_ratio",
        "gauge",
        "The share of failed tries that the three worst hosts have.",
        lambda sample: sample.concentration,
    ),
    of_crawls(
        "failing_hosts_ratio",
        "gauge",
        "The share of all tries that those three hosts have.",
        lambda sample: sample.failing_share,
    ),
    of_crawls(
        "workers",
        "gauge",
        "Workers that reported in the last 15 seconds.",
        lambda sample: len(sample.workers),
    ),
    of_crawls(
        "workers_wanted",
        "gauge",
        "Workers that the crawl should have, for autoscalers.",
        lambda sample: sample.wanted,
    ),
    of_workers(
        "worker_pages_total",
        "counter",
        "Pages that the worker has finished.",
        lambda worker: worker.pages,
    ),
    of_workers(
        "worker_requests_in_flight",
        "gauge",
        "Requests that the worker has sent and whose answers it awaits.",
        lambda worker: worker.in_flight,
    ),
    of_workers(
        "worker_memory_bytes",
        "gauge",
        "Memory of the worker's process.",
        lambda worker: worker.rss_bytes,
    ),
    of_workers(
        "worker_cpu_seconds_total",
        "counter",
        "CPU time of the worker's process.",
        lambda worker: worker.cpu_s,
    ),
    of_workers(
        "worker_backlog_pages",
        "gauge",
        "Pages that wait to be stored and finished.",
        lambda worker: worker.backlog,
    ),
    of_workers_by(
        "cause",
        "worker_slot_seconds_total",
        "counter",
        "Time of the worker's slots, by what they did or waited for.",
        lambda worker: ((cause.value, worker.slot_time.of(cause)) for cause in Cause),
    ),
    of_workers_by(
        "class",
        "worker_responses_total",
        "counter",
        "Answers that the worker got, by the class of their status.",
        lambda worker: worker.responses.items(),
    ),
    of_workers(
        "worker_fetch_seconds",
        "histogram",
        "How long answered requests took, body included.",
        lambda worker: worker.fetches,
    ),
    of_workers(
        "worker_save_seconds",
        "histogram",
        "How long batches of results took to store, archive included.",
        lambda worker: worker.saves,
    ),
    of_hosts(
        "host_tasks_waiting",
        "gauge",
        "Tasks that wait.",
        lambda host: host.waiting,
    ),
    of_hosts(
        "host_requests_in_flight",
        "gauge",
        "Tasks of the host that workers have.",
        lambda host: host.leased,
    ),
    of_hosts(
        "host_latency_seconds",
        "gauge",
        "How long the host took to answer recently.",
        lambda host: host.latency_s,
    ),
    of_hosts(
        "host_pages_total",
        "counter",
        "Tasks of the host that are done.",
        lambda host: host.done,
    ),
    of_hosts(
        "host_failures_total",
        "counter",
        "Tries at the host that failed.",
        lambda host: host.failed,
    ),
)
