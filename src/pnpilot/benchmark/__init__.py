"""Measuring: metrics, test suites, and the tables of the paper beside ours."""
