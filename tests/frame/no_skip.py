"""A pytest plugin: with ``MHALIB_NO_SKIP=1`` a skipped test fails the run, and the last lines say which."""

import os

import pytest


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a passing run with skips into a failing one."""
    if _skipped(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """List the skips that fail the run."""
    for report in _skipped(terminalreporter.config):
        terminalreporter.write_line(f"SKIPPED, but MHALIB_NO_SKIP=1: {report.nodeid}", red=True)


def _skipped(config: pytest.Config) -> list:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("MHALIB_NO_SKIP") != "1" or reporter is None:
        return []
    return reporter.stats.get("skipped", [])
