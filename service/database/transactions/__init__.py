"""Connections that one request holds for several commands (`lanes.exclusive.ExclusiveLane.hold`)."""
