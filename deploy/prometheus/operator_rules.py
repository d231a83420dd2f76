"""Prints the alerting rules in the form that the Prometheus operator needs:

    python deploy/prometheus/operator_rules.py > deploy/kubernetes/components/monitoring/rules.yaml

A test compares that file with what this prints.
"""

from __future__ import annotations

import sys
from pathlib import Path
from textwrap import indent

RULES = Path(__file__).with_name("shoal.rules.yml")
HEAD = """\
# Generated from deploy/prometheus/shoal.rules.yml by deploy/prometheus/operator_rules.py.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: shoal
spec:
"""


def main() -> None:
    """Print the rules."""
    text = RULES.read_text("utf-8")
    sys.stdout.write(HEAD + indent(text[text.index("groups:") :], "  "))


if __name__ == "__main__":
    main()
