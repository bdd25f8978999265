"""What a run tells the outside: listeners for progress, sinks for metrics."""

from proxmo.reporting.listener import Listener
from proxmo.reporting.sinks import JsonlSink, read_rows

__all__ = ["JsonlSink", "Listener", "read_rows"]
