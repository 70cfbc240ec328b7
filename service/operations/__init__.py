"""Operations: health checks, database statistics, the log of slow requests, and the audit trail."""
