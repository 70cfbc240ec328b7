"""Convert the settings to frozen option objects, one for each part of the service. Only this folder reads configuration
keys by name."""
