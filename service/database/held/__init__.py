"""Connections that one request holds for several commands (see `service.database.lanes.ExclusiveLane.hold`)."""
