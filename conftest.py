"""What every test run uses: chapters as tests, and skips that count as failures where they must."""

pytest_plugins = ["tests.frame.notebooks", "tests.frame.no_skip"]
