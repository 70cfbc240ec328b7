"""Settings → the frozen options of each part. The only place that knows which key means what to whom."""
