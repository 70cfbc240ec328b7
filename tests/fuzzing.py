"""`make fuzz`: the property tests of the suite with many more examples. Loaded as a pytest plugin."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "fuzz", max_examples=20_000, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
