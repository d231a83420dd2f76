"""Prints the dashboard for Grafana as JSON:

    python deploy/grafana/dashboard.py > deploy/grafana/dashboards/shoal.json

Needs grafana-foundation-sdk, one of the development tools. A test compares that file with what this
prints.
"""

from __future__ import annotations

import sys

from grafana_foundation_sdk.builders import (
    common,
    dashboard,
    prometheus,
    stat,
    timeseries,
)
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common as units
from grafana_foundation_sdk.models.dashboard import (
    DashboardCursorSync,
    DataSourceRef,
    Threshold,
    ThresholdsMode,
    VariableHide,
    VariableRefresh,
)

SOURCE = DataSourceRef(type_val="prometheus", uid="${source}")
CHOSEN = 'crawl=~"$crawl",schedule=~"$schedule"'
"""Selects the crawls and schedules that are chosen in the dashboard's variables."""
WIDTH = 24
SMALL, LARGE = 4, 8

Query = tuple[str, str]
"""An expression, and the legend of its lines."""
Panel = timeseries.Panel | stat.Panel


def targets(*queries: Query) -> list[prometheus.Dataquery]:
    return [
        prometheus.Dataquery()
        .expr(expression)
        .legend_format(name)
        .ref_id(chr(ord("A") + number))
        .range()
        for number, (expression, name) in enumerate(queries)
    ]


def limits(*steps: tuple[float | None, str]) -> dashboard.ThresholdsConfig:
    return (
        dashboard.ThresholdsConfig()
        .mode(ThresholdsMode.ABSOLUTE)
        .steps([Threshold(value=value, color=color) for value, color in steps])
    )


def figure(
    title: str, unit: str, expression: str, *worse: tuple[float | None, str], help_: str = ""
) -> stat.Panel:
    """A panel with one number, whose colour depends on the thresholds in `worse`."""
    made = (
        stat.Panel()
        .title(title)
        .description(help_)
        .datasource(SOURCE)
        .unit(unit)
        .thresholds(limits((None, "green"), *worse))
        .graph_mode(units.BigValueGraphMode.AREA)
        .color_mode(units.BigValueColorMode.VALUE)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .span(WIDTH // 6)
        .height(SMALL)
    )
    for target in targets((expression, "")):
        made = made.with_target(target)
    return made


def chart(
    title: str, unit: str, *queries: Query, help_: str = "", stacked: bool = False, span: int = 12
) -> timeseries.Panel:
    """A panel with lines over time."""
    made = (
        timeseries.Panel()
        .title(title)
        .description(help_)
        .datasource(SOURCE)
        .unit(unit)
        .min(0)
        .line_width(1)
        .fill_opacity(25 if stacked else 8)
        .show_points(units.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(units.LegendDisplayMode.LIST)
            .placement(units.LegendPlacement.BOTTOM)
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(units.TooltipDisplayMode.MULTI)
            .sort(units.SortOrder.DESCENDING)
        )
        .span(span)
        .height(LARGE)
    )
    if stacked:
        made = made.stacking(common.StackingConfig().mode(units.StackingMode.NORMAL))
    for target in targets(*queries):
        made = made.with_target(target)
    return made


def rate(metric: str, by: str = "crawl", more: str = "") -> str:
    chosen = f"{CHOSEN},{more}" if more else CHOSEN
    return f"sum by ({by}) (rate({metric}{{{chosen}}}[$__rate_interval]))"


def total(metric: str, by: str = "crawl", more: str = "") -> str:
    chosen = f"{CHOSEN},{more}" if more else CHOSEN
    return f"sum by ({by}) ({metric}{{{chosen}}})"


def quantile(share: float, metric: str) -> str:
    return f"histogram_quantile({share}, {rate(f'{metric}_bucket', 'le')})"


REMAINING = 'state=~"waiting|delayed|leased"'
PAGES = f"sum(rate(shoal_tasks_done_total{{{CHOSEN}}}[$__rate_interval]))"
FAILED = f"sum(rate(shoal_failures_total{{{CHOSEN}}}[$__rate_interval]))"
REQUESTS = f"sum(rate(shoal_requests_total{{{CHOSEN}}}[$__rate_interval]))"
BLOCKED = f"sum(rate(shoal_requests_blocked_total{{{CHOSEN}}}[$__rate_interval]))"
DEAD = f'sum(shoal_tasks{{{CHOSEN},state="dead"}})'
DONE = f"sum(shoal_tasks_done_total{{{CHOSEN}}})"
WARN, BAD = "orange", "red"

ROWS: list[tuple[str, list[Panel]]] = [
    (
        "Now",
        [
            figure("Pages per second", "short", PAGES),
            figure("Waiting", "short", f"sum(shoal_tasks{{{CHOSEN},{REMAINING}}})"),
            figure("Done in", "s", f"max(shoal_crawl_eta_seconds{{{CHOSEN}}})"),
            figure(
                "Failing",
                "percentunit",
                f"{FAILED} / ({FAILED} + {PAGES})",
                (0.1, WARN),
                (0.2, BAD),
                help_="The share of tries that fail.",
            ),
            figure("Blocked", "percentunit", f"{BLOCKED} / {REQUESTS}", (0.05, WARN), (0.1, BAD)),
            figure(
                "Dead", "percentunit", f"{DEAD} / ({DEAD} + {DONE})", (0.005, WARN), (0.01, BAD)
            ),
        ],
    ),
    (
        "Progress",
        [
            chart("Pages per second", "short", (rate("shoal_tasks_done_total"), "{{crawl}}")),
            chart("Queue", "short", (total("shoal_tasks", "crawl", REMAINING), "{{crawl}}")),
            chart(
                "Done in",
                "s",
                (f"max by (crawl) (shoal_crawl_eta_seconds{{{CHOSEN}}})", "{{crawl}}"),
                help_="At the recent speed. A line that rises is a crawl that may never end.",
                span=8,
            ),
            chart(
                "Items per second",
                "short",
                (rate("shoal_items_total"), "{{crawl}}"),
                (rate("shoal_items_rejected_total"), "{{crawl}}, rejected"),
                span=8,
            ),
            chart(
                "Counted by spiders, per second",
                "short",
                (rate("shoal_spider_count_total", "crawl, name"), "{{crawl}}, {{name}}"),
                help_="What spiders count themselves, with self.count().",
                span=8,
            ),
        ],
    ),
    (
        "What goes wrong",
        [
            chart(
                "Failures per second, by kind",
                "short",
                (rate("shoal_failures_total", "kind"), "{{kind}}"),
                stacked=True,
            ),
            chart(
                "Answers per second, by class",
                "short",
                (rate("shoal_worker_responses_total", "class"), "{{class}}"),
                stacked=True,
            ),
            chart(
                "Blocked per second",
                "short",
                (rate("shoal_requests_blocked_total"), "{{crawl}}"),
                span=8,
            ),
            chart(
                "Failures that three hosts have",
                "percentunit",
                (f"max by (crawl) (shoal_failure_concentration_ratio{{{CHOSEN}}})", "{{crawl}}"),
                help_="Near 100 %, it is them and not us.",
                span=8,
            ),
            chart(
                "Lost leases per second",
                "short",
                (rate("shoal_leases_lost_total"), "{{crawl}}"),
                help_="Leases of workers that died.",
                span=8,
            ),
        ],
    ),
    (
        "Workers",
        [
            chart(
                "Workers",
                "short",
                (total("shoal_workers"), "{{crawl}}"),
                (total("shoal_workers_wanted"), "{{crawl}}, wanted"),
                help_="Those at work, and as many as an autoscaler should start.",
                span=8,
            ),
            chart(
                "Pages per second, by worker",
                "short",
                (rate("shoal_worker_pages_total", "worker"), "{{worker}}"),
                span=8,
            ),
            chart(
                "Memory",
                "bytes",
                (f"max by (worker) (shoal_worker_memory_bytes{{{CHOSEN}}})", "{{worker}}"),
                span=8,
            ),
            chart(
                "How long hosts take",
                "s",
                (quantile(0.5, "shoal_worker_fetch_seconds"), "half"),
                (quantile(0.95, "shoal_worker_fetch_seconds"), "95 %"),
                span=8,
            ),
            chart(
                "How long results take to store",
                "s",
                (quantile(0.5, "shoal_worker_save_seconds"), "half"),
                (quantile(0.95, "shoal_worker_save_seconds"), "95 %"),
                span=8,
            ),
            chart(
                "Pages that wait to be stored",
                "short",
                (f"max by (worker) (shoal_worker_backlog_pages{{{CHOSEN}}})", "{{worker}}"),
                span=8,
            ),
            chart(
                "Where the time goes",
                "short",
                (rate("shoal_worker_slot_seconds_total", "cause"), "{{cause}}"),
                (rate("shoal_worker_cpu_seconds_total", ""), "CPU"),
                help_="Slots of all workers, by what they do or wait for; and cores in use.",
            ),
            chart(
                "Bytes per second",
                "Bps",
                (rate("shoal_wire_bytes_total"), "{{crawl}}, on the wire"),
                (rate("shoal_body_bytes_total"), "{{crawl}}, unpacked"),
            ),
        ],
    ),
]


def build() -> str:
    """The dashboard as JSON."""
    made = (
        dashboard.Dashboard("Shoal")
        .uid("shoal")
        .tags(["shoal"])
        .refresh("15s")
        .time("now-1h", "now")
        .timezone("browser")
        .tooltip(DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(
            dashboard.DatasourceVariable("source")
            .type("prometheus")
            .label("Source")
            .hide(VariableHide.DONT_HIDE)
        )
        .with_variable(variable("schedule", "Schedule", "label_values(shoal_workers, schedule)"))
        .with_variable(
            variable("crawl", "Crawl", 'label_values(shoal_workers{schedule=~"$schedule"}, crawl)')
        )
    )
    for title, panels in ROWS:
        made = made.with_row(dashboard.Row(title))
        for panel in panels:
            made = made.with_panel(panel)
    return JSONEncoder(sort_keys=True, indent=2).encode(made.build()) + "\n"


def variable(name: str, label: str, query: str) -> dashboard.QueryVariable:
    return (
        dashboard.QueryVariable(name)
        .label(label)
        .datasource(SOURCE)
        .query(query)
        .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
        .multi(True)
        .include_all(True)
        .all_value(".*")
    )


if __name__ == "__main__":
    sys.stdout.write(build())
